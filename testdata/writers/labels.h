/* SPDX-License-Identifier: Apache-2.0 */
/* The labels of the calling thread. */
#ifndef WRITERS_LABELS_H
#define WRITERS_LABELS_H

#include <stdbool.h>

#include "publish.h"

extern const struct publisher *publisher;

/*
 * Makes set the current one: builds it, publishes it, destroys the one before.
 * in_place changes the current record instead, where the ABI can.
 */
void labels_swap(const struct label_set *set, bool in_place);

/*
 * With --print-variables, once in each thread that has published: a line
 * "variable TID ADDRESS" on stdout, before the program says that it is ready.
 */
void labels_print_variable(void);

/* No labels from here on. */
void labels_clear(void);

#endif
