/* SPDX-License-Identifier: Apache-2.0 */
/* What the programs do in turn, for some milliseconds each. */
#ifndef UNWIND_CASES_H
#define UNWIND_CASES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "frames.h"

struct turn {
	struct walk walk;
	struct truth truth;
	char path[600];
	unsigned long seed;
	uint64_t end_ns;
};

struct unwind_case {
	const char *name;
	void (*run)(struct turn *turn);
	bool main_only; /* not for two threads at a time */
};

extern const struct unwind_case spin_cases[], library_cases[], signal_cases[], thread_cases[];

/* The path of the case "deep". */
extern size_t deep_calls;
#define DEEP_CALLS 500

/* Whether the turn is over. */
bool turn_over(const struct turn *turn);

/* Some work, without a call. */
#define WORK(value, count)                                                                                             \
	do {                                                                                                           \
		for (unsigned long work_ = (count); work_ > 0; work_--)                                                \
			__asm__ volatile("" : "+r"(value), "+r"(work_));                                               \
	} while (0)

/* About 50 us. */
#define WORK_UNIT 100000

#endif
