// SPDX-License-Identifier: Apache-2.0
/*
 * A process context that comes late, of a program that has mapped code until then, as
 * those with a just-in-time compiler do: --warmup-ms of CPU time, then it only burns.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "burn.h"
#include "modes.h"
#include "options.h"
#include "process_context.h"
#include "run.h"

#define CODE_BYTES 4096
#define LATE_INTERVAL_NS 20000000u

/* Where it burns tells a sample on which side of the publication it was. */
static HOT uint64_t late_before(void)
{
	const uint64_t until = thread_cpu_ns() + LATE_INTERVAL_NS;

	return burn_until(until, until);
}

static HOT uint64_t late_after(void)
{
	const uint64_t until = thread_cpu_ns() + LATE_INTERVAL_NS;

	return burn_until(until, until) + 1;
}

static void body(int index)
{
	static struct label label = { .key = "tenant", .value = "late" };
	static const struct label_set set = { .count = 1, .labels = &label };
	const uint64_t published = thread_cpu_ns() + (uint64_t)options.warmup_ms * 1000000;

	(void)index;
	run_published();
	while (thread_cpu_ns() < published) {
		void *code = mmap(NULL, CODE_BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (code == MAP_FAILED) {
			perror("mmap");
			exit(1);
		}
		late_before();
		munmap(code, CODE_BYTES);
	}
	process_context_publish(&set);
	while (!run_over())
		late_after();
}

void mode_late(void)
{
	run_threads(1, body, NULL);
}
