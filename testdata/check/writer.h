/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CHECK_WRITER_H
#define CHECK_WRITER_H

#include <stdbool.h>
#include <stdint.h>

/* The address of the calling thread's variable. */
void *variable(void);

/* Whether a rule is the one that is to be broken. */
bool breaks(const char *rule);

/* A page that is not mapped. */
void *unmapped(void);

/* Publishes the process context, and again when it is called again. */
void publish_context(void);

#endif
