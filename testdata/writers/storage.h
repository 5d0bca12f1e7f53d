/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The array of labels that v0 and v1 have in common. Every key and value has an
 * allocation of its own, as in the public writers.
 */
#ifndef WRITERS_STORAGE_H
#define WRITERS_STORAGE_H

#include "abi.h"
#include "memory.h"
#include "publish.h"

static inline struct abi_string string_build(const char *text)
{
	size_t len = strlen(text);
	unsigned char *buf = must_malloc(len);

	memcpy(buf, text, len);
	return (struct abi_string){ .len = len, .buf = buf };
}

static inline struct abi_label *storage_build(const struct label_set *set)
{
	struct abi_label *storage = must_malloc(set->count * sizeof(*storage));

	for (size_t i = 0; i < set->count; i++) {
		storage[i].key = string_build(set->labels[i].key);
		storage[i].value = string_build(set->labels[i].value);
	}
	return storage;
}

static inline void storage_discard(struct abi_label *storage, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		free_overwritten((void *)storage[i].key.buf, storage[i].key.len);
		free_overwritten((void *)storage[i].value.buf, storage[i].value.len);
	}
	free_overwritten(storage, count * sizeof(*storage));
}

#endif
