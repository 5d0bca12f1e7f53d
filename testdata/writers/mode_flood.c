// SPDX-License-Identifier: Apache-2.0
/*
 * As many different label sets, keys and stacks as there can be. Set n has the labels
 *
 *   key = "flood_key_KKKKK"   K = (n * labels + i) % 10000
 *   value = "flood:n:i:ffff"  as long as asked; each other time that the keys are gone
 *                             through, the first byte is no UTF-8: each key has both types
 *
 * and is published from one of 256 stacks, n % 256.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "burn.h"
#include "labels.h"
#include "memory.h"
#include "modes.h"
#include "options.h"
#include "run.h"

#define KEYS 10000
#define KEY_BYTES 24
#define HEAD_BYTES 48
#define PATH_STEPS 8
#define TICK_SETS 256

static uint64_t published; /* sets of all threads */

static void flood_publish(uint64_t n, struct label *labels)
{
	struct label_set set = { .count = (size_t)options.labels, .labels = labels };

	for (int i = 0; i < options.labels; i++) {
		char *key = (char *)labels[i].key, *value = (char *)labels[i].value;
		int head;

		snprintf(key, KEY_BYTES, "flood_key_%05d", (int)((n * (uint64_t)options.labels + (uint64_t)i) % KEYS));
		head = snprintf(value, HEAD_BYTES, "flood:%" PRIu64 ":%d:", n, i);
		if (head < options.value_bytes) {
			memset(value + head, 'f', (size_t)(options.value_bytes - head));
			value[options.value_bytes] = '\0';
		}
		if (n * (uint64_t)options.labels / KEYS & 1)
			value[0] = (char)0xff;
	}
	labels_swap(&set, false);
}

static HOT uint64_t flood_left(uint64_t n, int steps, struct label *labels);

static HOT uint64_t flood_right(uint64_t n, int steps, struct label *labels)
{
	if (steps == 0)
		flood_publish(n, labels);
	else if (n >> (steps - 1) & 1)
		n = flood_right(n, steps - 1, labels);
	else
		n = flood_left(n, steps - 1, labels);
	return n + 1;
}

static HOT uint64_t flood_left(uint64_t n, int steps, struct label *labels)
{
	if (steps == 0)
		flood_publish(n, labels);
	else if (n >> (steps - 1) & 1)
		n = flood_right(n, steps - 1, labels) - 1;
	else
		n = flood_left(n, steps - 1, labels) - 1;
	return n + 1;
}

static struct label *make_labels(void)
{
	struct label *labels = must_malloc((size_t)options.labels * sizeof(*labels));

	for (int i = 0; i < options.labels; i++) {
		labels[i].key = must_malloc(KEY_BYTES);
		labels[i].value = must_malloc((size_t)options.value_bytes + HEAD_BYTES);
	}
	return labels;
}

static void body(int index)
{
	struct label *labels = make_labels();
	uint64_t n = (uint64_t)index;

	flood_publish(n, labels);
	labels_print_variable();
	run_published();
	while (!run_over()) {
		for (int i = 0; i < TICK_SETS; i++) {
			n += (uint64_t)options.threads;
			flood_left(n, PATH_STEPS, labels);
		}
		__atomic_add_fetch(&published, TICK_SETS, __ATOMIC_RELAXED);
	}
	labels_clear();
}

/* How many sets there were so far, as a line. */
static void tick(void)
{
	FILE *file;

	if (!options.log)
		return;
	file = fopen(options.log, "w");
	if (!file || fprintf(file, "%" PRIu64 "\n", __atomic_load_n(&published, __ATOMIC_RELAXED)) < 0 || fclose(file))
		perror(options.log);
}

void mode_flood(void)
{
	run_threads(options.threads, body, tick);
}
