/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TLS_PUBLISH_H
#define TLS_PUBLISH_H

#include "definer.h"

/*
 * Publishes, for good, on the calling thread, in the variable at an address:
 *
 *   cell    what the program was started as
 *   thread  the thread's name
 *   in.NAME "1", with the definer's name
 *
 * In a thread context these are the attributes with the indexes below, the span
 * id is the thread's name, and the trace id a hash of the cell.
 */
void publish(const struct definer *definer, void *variable, const char *cell, const char *thread);

/* Key indexes of a thread context; the names of definers have to be among these. */
#define CONTEXT_KEYS { "cell", "thread", "in.exe", "in.lib", "in.a", "in.b", "in.dl" }

#endif
