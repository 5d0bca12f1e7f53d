/* SPDX-License-Identifier: Apache-2.0 */
/* Burns CPU time in the function that it is inlined into. */
#ifndef WRITERS_BURN_H
#define WRITERS_BURN_H

#include "clock.h"

/* A function of its own in every profile: never inlined, cloned or folded with its like. */
#if defined(__has_attribute) && __has_attribute(noipa)
#define HOT __attribute__((noinline, noipa))
#else
#define HOT __attribute__((noinline))
#endif

#define BURN_CLOSE_NS 1500    /* not worth another round */
#define BURN_ROUND_NS 1000000 /* the most between two looks at the clock */

/* Rounds of the loop in burn_until for a microsecond; set by burn_calibrate. */
extern double burn_rounds_per_us;
void burn_calibrate(void);

static inline __attribute__((always_inline)) uint64_t burn_rounds(uint64_t rounds, uint64_t x)
{
	for (uint64_t i = 0; i < rounds; i++) {
		x = x * 6364136223846793005u + i;
		__asm__ volatile("" : "+r"(x));
	}
	return x;
}

/*
 * Until the calling thread has used cpu_ns of CPU time. The clock is a system
 * call, so the time between two looks at it is most of what is left: a burst of
 * a millisecond takes about four looks.
 */
static inline __attribute__((always_inline)) uint64_t burn_until(uint64_t cpu_ns, uint64_t x)
{
	for (;;) {
		uint64_t now = thread_cpu_ns(), left;

		if (now + BURN_CLOSE_NS >= cpu_ns)
			return x;
		left = cpu_ns - now;
		if (left > BURN_ROUND_NS)
			left = BURN_ROUND_NS;
		x = burn_rounds((uint64_t)((double)left * burn_rounds_per_us / 1100.0) + 1, x);
	}
}

#endif
