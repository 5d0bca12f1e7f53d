// SPDX-License-Identifier: Apache-2.0
#include "truth.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "workload.h"

static uint64_t cpu_ns[TENANTS][MAX_ROUTES];

void truth_add(int tenant, int route, uint64_t ns)
{
	__atomic_add_fetch(&cpu_ns[tenant][route], ns, __ATOMIC_RELAXED);
}

static void write_sets(FILE *file, const char *prefix)
{
	const char *comma = "";

	for (int t = 0; t < TENANTS; t++) {
		for (int r = 0; r < MAX_ROUTES && tenants[t].routes[r]; r++) {
			fprintf(file,
				"%s\n{\"labels\": {\"tenant\": \"%s%s\", \"route\": \"%s\"}, \"cpu_ns\": %" PRIu64 "}",
				comma, prefix, tenants[t].name, tenants[t].routes[r],
				__atomic_load_n(&cpu_ns[t][r], __ATOMIC_RELAXED));
			comma = ",";
		}
	}
}

void truth_write(const char *path, const char *abi, const char *prefix)
{
	char part[PATH_MAX];
	FILE *file;

	snprintf(part, sizeof(part), "%s.part", path);
	file = fopen(part, "w");
	if (!file)
		goto fail;
	fprintf(file, "{\"pid\": %d, \"abi\": \"%s\", \"sets\": [", (int)getpid(), abi);
	write_sets(file, prefix);
	fputs("\n]}\n", file);
	if (fclose(file) != 0 || rename(part, path) != 0)
		goto fail;
	return;
fail:
	perror(path);
	exit(1);
}
