// SPDX-License-Identifier: Apache-2.0
/* Publishes what a broken or malicious program could, and burns CPU time meanwhile. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "burn.h"
#include "hostile.h"
#include "labels.h"
#include "modes.h"
#include "options.h"
#include "run.h"

#define KIND_NS 10000000 /* of each kind by turns, when all are asked for */

#ifdef __x86_64__
#define KERNEL_ADDRESS 0xffff888000100000u
#else
#define KERNEL_ADDRESS 0xffff000000100000u
#endif
#define NON_CANONICAL_ADDRESS 0x8000000000001000u

struct places places = {
	.kernel = (void *)KERNEL_ADDRESS,
	.non_canonical = (void *)NON_CANONICAL_ADDRESS,
};

static const struct hostile_kind *kinds(void)
{
	static const struct hostile_kind none[] = { { NULL, NULL } };

	switch (publisher->abi) {
	case ABI_V0:
	case ABI_V1:
		return hostile_label_kinds;
	case ABI_CONTEXT:
		return hostile_context_kinds;
	default:
		return none;
	}
}

void hostile_list(void)
{
	for (const struct hostile_kind *kind = kinds(); kind->name; kind++)
		puts(kind->name);
}

static void find_places(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	unsigned char *at = mmap(NULL, 4 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED || mprotect(at, page, PROT_READ | PROT_WRITE) != 0 || munmap(at + 2 * page, page) != 0) {
		perror("map pages");
		exit(1);
	}
	places.page_end = at + page;
	places.unmapped = at + 2 * page;
}

static HOT uint64_t burn(uint64_t cpu_ns)
{
	return burn_until(cpu_ns, cpu_ns);
}

static const struct hostile_kind *find(const char *name)
{
	const struct hostile_kind *kind = kinds();

	while (kind->name && strcmp(kind->name, name) != 0)
		kind++;
	if (!kind->name) {
		fprintf(stderr, "%s: no such kind for %s\n", name, publisher->name);
		exit(2);
	}
	return kind;
}

void mode_hostile(void)
{
	const bool all = strcmp(options.kind, "all") == 0;
	const struct hostile_kind *kind = all ? kinds() : find(options.kind);

	if (!kind->name)
		find(options.kind); /* says that there is none */
	find_places();
	kind->publish();
	labels_print_variable();
	run_ready();
	while (!run_over()) {
		burn(thread_cpu_ns() + KIND_NS);
		if (all) {
			kind = kind[1].name ? kind + 1 : kinds();
			kind->publish();
		}
	}
}
