// SPDX-License-Identifier: Apache-2.0
/* Labels label_00, label_01 ...; the values are as long as asked, and differ. */
#include <stdio.h>
#include <string.h>

#include "burn.h"
#include "labels.h"
#include "memory.h"
#include "modes.h"
#include "options.h"
#include "run.h"

#define KEY_BYTES 24
#define SPIN_INTERVAL_NS 10000000u

static struct label_set set = {
	.trace_id = { 0x5b, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 },
	.span_id = { 0x5c, 1, 2, 3, 4, 5, 6, 7 },
	.trace_flags = 1,
};

static char *value(int i)
{
	char *text = must_malloc((size_t)options.value_bytes + 1);

	memset(text, 'a' + i % 26, (size_t)options.value_bytes);
	text[options.value_bytes] = '\0';
	return text;
}

static HOT uint64_t spin(uint64_t cpu_ns)
{
	return burn_until(cpu_ns, cpu_ns);
}

static void body(int index)
{
	(void)index;
	labels_swap(&set, false);
	labels_print_variable();
	run_published();
	while (!run_over())
		spin(thread_cpu_ns() + SPIN_INTERVAL_NS);
	labels_clear();
}

void mode_spin(void)
{
	struct label *labels = must_malloc((size_t)options.labels * sizeof(*labels));

	for (int i = 0; i < options.labels; i++) {
		char *key = must_malloc(KEY_BYTES);

		snprintf(key, KEY_BYTES, "label_%02d", i);
		labels[i] = (struct label){ .key = key, .value = value(i) };
	}
	set.count = (size_t)options.labels;
	set.labels = labels;
	run_threads(options.threads, body, NULL);
}
