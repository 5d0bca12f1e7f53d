/* SPDX-License-Identifier: Apache-2.0 */
/* Four tenants, each with its share of the CPU time, its routes and its own code. */
#ifndef WRITERS_WORKLOAD_H
#define WRITERS_WORKLOAD_H

#include <stdint.h>

#define TENANTS 4
#define MAX_ROUTES 3

struct tenant {
	const char *name;
	int percent;
	const char *routes[MAX_ROUTES]; /* NULL: fewer */
	/* Works on a request for so long, in nanoseconds of CPU time. */
	uint64_t (*serve)(int route, uint64_t ns);
};

extern const struct tenant tenants[TENANTS];

#endif
