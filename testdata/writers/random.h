/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WRITERS_RANDOM_H
#define WRITERS_RANDOM_H

#include <stdint.h>

/* splitmix64: the state is a counter, so every seed is a good one. */
static inline uint64_t random_mix(uint64_t z)
{
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static inline uint64_t random_next(uint64_t *state)
{
	*state += 0x9e3779b97f4a7c15u;
	return random_mix(*state);
}

/* Uniform in [low, high). */
static inline uint64_t random_between(uint64_t *state, uint64_t low, uint64_t high)
{
	return high > low ? low + random_next(state) % (high - low) : low;
}

#endif
