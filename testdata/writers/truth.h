/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CPU time of each label set as the writer itself measured it, in a JSON file:
 *
 *   {"pid": 1, "abi": "v1", "sets": [{"labels": {"tenant": "t", "route": "/r"}, "cpu_ns": 1}]}
 *
 * A request counts when it is over.
 */
#ifndef WRITERS_TRUTH_H
#define WRITERS_TRUTH_H

#include <stdint.h>

/* Any thread. */
void truth_add(int tenant, int route, uint64_t cpu_ns);

/* Replaces the file; the names of the tenants get the prefix. */
void truth_write(const char *path, const char *abi, const char *prefix);

#endif
