/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "publish.h"

/* Layouts: ABI v0 and v1 of the custom labels, OTEP 4947. */
struct string {
	size_t len;
	const char *buf;
};

struct label {
	struct string key, value;
};

struct label_set {
	struct label *storage;
	size_t count;
	size_t capacity; /* v1 only */
};

struct thread_context {
	uint8_t trace_id[16];
	uint8_t span_id[8];
	uint8_t valid;
	uint8_t trace_flags;
	uint16_t attrs_size;
	uint8_t attrs[612];
};

#define LABELS 3

static void *allocate(size_t size)
{
	void *p = calloc(1, size);

	if (!p)
		abort();
	return p;
}

static struct string string_of(const char *s)
{
	return (struct string){ strlen(s), s };
}

/* FNV-1a, 64 bits. */
static uint64_t hash(uint64_t h, const char *s)
{
	while (*s)
		h = (h ^ (uint8_t)*s++) * 0x100000001b3;
	return h;
}

static void publish_context(void **variable, const char *const keys[LABELS], const char *const values[LABELS])
{
	static const char *const names[] = CONTEXT_KEYS;
	struct thread_context *record = allocate(sizeof(*record));
	uint64_t low = hash(0xcbf29ce484222325, values[0]), high = hash(low, values[0]);
	uint8_t *at = record->attrs;

	memcpy(record->trace_id, &low, 8);
	memcpy(record->trace_id + 8, &high, 8);
	memcpy(record->span_id, values[1], strnlen(values[1], sizeof(record->span_id)));
	for (size_t i = 0; i < LABELS; i++) {
		uint8_t index = 0;

		while (strcmp(names[index], keys[i]))
			if (++index == sizeof(names) / sizeof(*names))
				abort();
		*at++ = index;
		*at++ = (uint8_t)strlen(values[i]);
		memcpy(at, values[i], strlen(values[i]));
		at += strlen(values[i]);
	}
	record->attrs_size = (uint16_t)(at - record->attrs);
	record->valid = 1;
	*variable = record;
}

void publish(const struct definer *definer, void *variable, const char *cell, const char *thread)
{
	char *in = allocate(32);
	const char *const keys[LABELS] = { "cell", "thread", in }, *const values[LABELS] = { cell, thread, "1" };
	struct label_set *set = allocate(sizeof(*set));

	snprintf(in, 32, "in.%s", definer->name);
	if (definer->abi == ABI_CTX) {
		publish_context(variable, keys, values);
		return;
	}
	set->storage = allocate(LABELS * sizeof(*set->storage));
	for (size_t i = 0; i < LABELS; i++)
		set->storage[i] = (struct label){ string_of(keys[i]), string_of(values[i]) };
	set->count = set->capacity = LABELS;
	if (definer->abi == ABI_V0)
		memcpy(variable, set, 2 * sizeof(void *));
	else
		*(struct label_set **)variable = set;
}
