/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * From the thread-local variable of a Node.js writer (schema nodejs_v1_dev) to the
 * thread context record of the async context that runs. The way leads through
 * V8's heap, whose objects the collector may be moving; each step is checked, so
 * that the worst outcome is no record.
 */
#ifndef CUSTOM_LABELS_NODEJS_H
#define CUSTOM_LABELS_NODEJS_H

#include "maps.bpf.h"
#include "tls.bpf.h"

/* otel_thread_ctx_nodejs_v1, as in @datadog/pprof 5.20. */
struct nodejs_variable {
	__u64 slot;	 /* where V8 keeps the continuation-preserved embedder data */
	__u64 handle;	 /* where V8 keeps the AsyncLocalStorage, the key */
	__u32 hash;	 /* its identity hash */
	__u32 field;	 /* offset of the record pointer in a value; 0: not told */
	__u64 undefined; /* JavaScript's undefined */
};
_Static_assert(sizeof(struct nodejs_variable) == 32, "nodejs_variable");

/*
 * V8's heap without pointer compression. A pointer to an object has the tag 1; a
 * small integer is the upper half of a word whose lower half is 0. The first word
 * of an object is the pointer to its map, which tells its type; of one that the
 * collector has moved, it is the new address, without tag. That is written when the
 * object is whole at its new place, so a sample in the collector has its labels.
 */
#define V8_TAG 1
#define V8_MAP_INSTANCE_TYPE 12

/* JSCollection: map, properties, elements, table. */
struct v8_collection {
	__u64 map;
	__u64 properties;
	__u64 elements;
	__u64 table;
};

/* OrderedHashMap: a FixedArray of three counts, the buckets, the entries. */
struct v8_table {
	__u64 map;
	__u64 length;
	__u64 elements;
	__u64 deleted;
	__u64 buckets;
};

struct v8_entry {
	__u64 key;
	__u64 value;
	__u64 next; /* index of an entry, -1: none */
};

#define V8_TABLE_COUNTS 3
#define V8_ENTRIES_PER_BUCKET 2
#define V8_ENTRY_WORDS 3

_Static_assert(sizeof(struct v8_entry) == 8 * V8_ENTRY_WORDS, "v8_entry");
_Static_assert((MAX_NODEJS_BUCKETS & (MAX_NODEJS_BUCKETS - 1)) == 0, "a power of 2");

static __always_inline bool v8_is_object(__u64 word)
{
	return (word & 3) == V8_TAG;
}

static __always_inline bool v8_is_integer(__u64 word)
{
	return !(word & 0xffffffff);
}

/* Whether the collector has moved the object with this first word; then addr is its new place. */
static __always_inline bool v8_moved(__u64 first, __u64 *addr)
{
	if (!first || first & 7)
		return false;
	*addr = first;
	return true;
}

/* Body of a loop: looks at one entry. */
static long v8_next_entry(__u64 i, struct v8_chain *chain)
{
	struct v8_entry entry;
	__u64 index;

	if (chain->next == 0xffffffff00000000) {
		chain->outcome = OUTCOME_NONE; /* this context has no such value */
		return 1;
	}
	index = chain->next >> 32;
	if (i >= MAX_NODEJS_CHAIN || !v8_is_integer(chain->next) || index >= chain->capacity)
		return 1;
	if (read_user(&entry, chain->entries + index * sizeof(entry))) {
		chain->outcome = OUTCOME_FAULT;
		return 1;
	}
	if (entry.key == chain->key) {
		chain->value = entry.value;
		chain->outcome = OUTCOME_PRESENT;
		return 1;
	}
	chain->next = entry.next;
	return 0;
}
LOOP_BODY(v8_next_entry, &s->chain)

/*
 * value = table[key]:
 *   bucket  = hash & (buckets - 1)
 *   entries = table + header + 8 * buckets
 */
static __always_inline enum outcome v8_look_up(__u64 table, __u64 key, __u32 hash, __u64 *value)
{
	struct v8_chain chain = { .key = key, .outcome = OUTCOME_INVALID };
	struct v8_table head;
	__u64 buckets;

	if (!v8_is_object(table))
		return OUTCOME_INVALID;
	table -= V8_TAG;
	if (read_user(&head, table) || (v8_moved(head.map, &table) && read_user(&head, table)))
		return OUTCOME_FAULT;
	if (!(head.map & V8_TAG))
		return OUTCOME_UPDATING;
	if (!v8_is_integer(head.length) || !v8_is_integer(head.elements) || !v8_is_integer(head.deleted) ||
	    !v8_is_integer(head.buckets))
		return OUTCOME_INVALID;
	buckets = head.buckets >> 32;
	if (buckets > MAX_NODEJS_BUCKETS || (buckets & (buckets - 1)))
		return OUTCOME_INVALID;
	chain.capacity = V8_ENTRIES_PER_BUCKET * buckets;
	if (head.length >> 32 != V8_TABLE_COUNTS + buckets + V8_ENTRY_WORDS * chain.capacity)
		return OUTCOME_INVALID;
	if (!buckets)
		return OUTCOME_NONE;
	chain.entries = table + sizeof(head) + 8 * buckets;
	if (read_user(&chain.next, table + sizeof(head) + 8 * (hash & (buckets - 1))))
		return OUTCOME_FAULT;
	/* one more than there may be entries: the end must be seen */
	LOOP_WITH(MAX_NODEJS_CHAIN + 1, v8_next_entry, chain, chain);
	*value = chain.value;
	return chain.outcome;
}

/* OUTCOME_PRESENT and *record, or the reason why there is none. A function of its own for the stack's sake. */
SEPARATE int nodejs_record(__u64 addr, __u32 field, __u32 map_type, __u64 *record)
{
	struct nodejs_variable var;
	struct v8_collection map;
	enum outcome out;
	__u64 context, key, value, head;
	__u16 type;

	if (!record)
		return OUTCOME_INVALID;
	if (read_user(&var, addr))
		return OUTCOME_FAULT;
	if (!var.slot || !var.handle)
		return OUTCOME_NONE;
	if (var.field && var.field != field)
		return OUTCOME_INVALID; /* the writer knows another V8 */
	if (read_user(&context, var.slot) || read_user(&key, var.handle))
		return OUTCOME_FAULT;
	if (context == var.undefined)
		return OUTCOME_NONE;
	if (!v8_is_object(context) || !v8_is_object(key))
		return OUTCOME_INVALID;
	context -= V8_TAG;
	if (read_user(&map, context) || (v8_moved(map.map, &context) && read_user(&map, context)))
		return OUTCOME_FAULT;
	if (!(map.map & V8_TAG))
		return OUTCOME_UPDATING;
	if (read_user(&type, map.map - V8_TAG + V8_MAP_INSTANCE_TYPE))
		return OUTCOME_FAULT;
	if (type != map_type)
		return OUTCOME_INVALID;
	out = v8_look_up(map.table, key, var.hash, &value);
	if (out != OUTCOME_PRESENT)
		return out;
	if (value == var.undefined)
		return OUTCOME_NONE;
	if (!v8_is_object(value))
		return OUTCOME_INVALID;
	value -= V8_TAG;
	if (read_user(&head, value) || (v8_moved(head, &value) && read_user(&head, value)))
		return OUTCOME_FAULT;
	if (!(head & V8_TAG))
		return OUTCOME_UPDATING;
	if (read_user(record, value + field))
		return OUTCOME_FAULT;
	return !*record || *record & V8_TAG ? OUTCOME_INVALID : OUTCOME_PRESENT;
}

#endif
