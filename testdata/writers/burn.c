// SPDX-License-Identifier: Apache-2.0
#include "burn.h"

#define CALIBRATION_ROUNDS 200000
#define CALIBRATION_TRIES 5

double burn_rounds_per_us = 1;

/* The slowest of a few tries: too short a round only costs another look at the clock. */
HOT void burn_calibrate(void)
{
	uint64_t longest = 1;

	for (int i = 0; i < CALIBRATION_TRIES; i++) {
		uint64_t start = thread_cpu_ns(), took;

		burn_rounds(CALIBRATION_ROUNDS, start);
		took = thread_cpu_ns() - start;
		if (took > longest)
			longest = took;
	}
	burn_rounds_per_us = CALIBRATION_ROUNDS * 1000.0 / (double)longest;
}
