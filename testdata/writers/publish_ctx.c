// SPDX-License-Identifier: Apache-2.0
#include "abi.h"
#include "memory.h"
#include "publish.h"
#include "tls.h"

#define MAX_ATTR_BYTES 255     /* the length is a byte */
#define MIN_CAPACITY_BYTES 612 /* 640 with the head, what OTEP 4947 recommends as the most */

EXPORTED __thread struct abi_context *otel_thread_ctx_v1;

struct published {
	size_t capacity; /* of record.attrs */
	struct abi_context record;
};

static size_t attr_length(const struct label *label)
{
	size_t len = strlen(label->value);

	return len > MAX_ATTR_BYTES ? MAX_ATTR_BYTES : len;
}

static size_t attrs_size(const struct label_set *set)
{
	size_t size = 0;

	for (size_t i = 0; i < set->count; i++)
		size += 2 + attr_length(&set->labels[i]);
	if (set->count > 256 || size > ABI_CONTEXT_MAX_ATTRS) {
		fputs("too many attributes for a thread context\n", stderr);
		exit(1);
	}
	return size;
}

/* Everything but valid. */
static void fill(struct abi_context *record, const struct label_set *set)
{
	uint8_t *at = record->attrs;

	memcpy(record->trace_id, set->trace_id, sizeof(record->trace_id));
	memcpy(record->span_id, set->span_id, sizeof(record->span_id));
	record->trace_flags = set->trace_flags;
	for (size_t i = 0; i < set->count; i++) {
		size_t len = attr_length(&set->labels[i]);

		*at++ = (uint8_t)i;
		*at++ = (uint8_t)len;
		memcpy(at, set->labels[i].value, len);
		at += len;
	}
	record->attrs_size = (uint16_t)(at - record->attrs);
}

static struct published *build(const struct label_set *set)
{
	size_t size = attrs_size(set);
	size_t capacity = size < MIN_CAPACITY_BYTES ? MIN_CAPACITY_BYTES : size;
	struct published *built = must_malloc(sizeof(*built) + capacity);

	built->capacity = capacity;
	fill(&built->record, set);
	built->record.valid = 1;
	return built;
}

/* One store between two complete records. */
static void publish(struct published *next)
{
	__atomic_thread_fence(__ATOMIC_RELEASE);
	STORE(otel_thread_ctx_v1, next ? &next->record : NULL);
	IN_ORDER();
}

/*
 * What a writer with one record for each thread does: a thread stopped in here
 * has a record that says that it is being written.
 */
static void update(struct published *current, const struct label_set *set)
{
	struct abi_context *record = &current->record;

	if (attrs_size(set) > current->capacity) {
		fputs("the thread context record is too small for an update\n", stderr);
		exit(1);
	}
	STORE(record->valid, 0);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	IN_ORDER();
	fill(record, set);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	IN_ORDER();
	STORE(record->valid, 1);
	IN_ORDER();
}

static void discard(struct published *old)
{
	free_overwritten(old, sizeof(*old) + old->capacity);
}

static void *variable(void)
{
	return &otel_thread_ctx_v1;
}

EXPORTED const struct publisher *labels_publisher(void)
{
	static const struct publisher ctx = {
		.abi = ABI_CONTEXT,
		.name = "ctx",
		.build = build,
		.publish = publish,
		.update = update,
		.discard = discard,
		.variable = variable,
	};

	return &ctx;
}
