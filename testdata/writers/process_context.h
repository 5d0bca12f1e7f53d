/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WRITERS_PROCESS_CONTEXT_H
#define WRITERS_PROCESS_CONTEXT_H

#include <stddef.h>

#include "publish.h"

/*
 * Publishes the process context (OTEP 4719): a resource with service.name, and
 * the names of the thread context's key indexes, index i for label i of the set.
 * Does nothing when these have been published; new ones make an update in place.
 * Several threads may call it.
 */
void process_context_publish(const struct label_set *set);

/* What a forked child does: it has not inherited the mapping. */
void process_context_forget(void);

#endif
