// SPDX-License-Identifier: Apache-2.0
/*
 * A short life: one label, `life`, that no other process has, and work until --life-ms
 * have passed since main. At its end the process says on stdout, in one write:
 *
 *   life PID VALUE PUBLISHED UNTIL CPU
 *
 * From PUBLISHED to UNTIL (CLOCK_MONOTONIC, ns) the label was there on the only thread;
 * CPU is the CPU time of that, in ns.
 */
#include <stdio.h>
#include <unistd.h>

#include "burn.h"
#include "labels.h"
#include "modes.h"
#include "options.h"

#define LOOK_ROUNDS 20000 /* tens of microseconds */
#define LINE_BYTES 256	  /* less than PIPE_BUF: a write of it is whole */

static HOT uint64_t brief_work(uint64_t until_ns)
{
	uint64_t x = until_ns;

	while (mono_ns() < until_ns)
		x = burn_rounds(LOOK_ROUNDS, x);
	return x;
}

static HOT uint64_t brief_turn(uint64_t until_ns)
{
	return brief_work(until_ns) + 1;
}

void mode_brief(void)
{
	uint64_t begin = mono_ns(), end = begin + (uint64_t)options.life_ms * 1000000;
	uint64_t published, published_cpu, until, cpu;
	char value[64], line[LINE_BYTES];
	struct label label = { "life", value };
	struct label_set set = { .count = 1, .labels = &label };
	int n;

	snprintf(value, sizeof(value), "%d-%llu", (int)getpid(), (unsigned long long)begin);
	labels_swap(&set, false);
	published = mono_ns();
	published_cpu = thread_cpu_ns();
	brief_turn(end);
	cpu = thread_cpu_ns() - published_cpu;
	until = mono_ns();
	labels_clear();
	n = snprintf(line, sizeof(line), "life %d %s %llu %llu %llu\n", (int)getpid(), value,
		     (unsigned long long)published, (unsigned long long)until, (unsigned long long)cpu);
	if (write(STDOUT_FILENO, line, (size_t)n) != n)
		perror("tell the life");
}
