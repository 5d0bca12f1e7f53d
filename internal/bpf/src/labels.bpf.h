/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Copies what a thread's label sources hold into the label section of the
 * record. Meaning (order, duplicates, encodings) is left to package labels.
 */
#ifndef CUSTOM_LABELS_LABELS_H
#define CUSTOM_LABELS_LABELS_H

#include "go.bpf.h"
#include "labelmemory.bpf.h"
#include "nodejs.bpf.h"
#include "seal.bpf.h"

/* struct custom_labels_labelset_t without capacity, which has no meaning to readers; tls_t of v0. */
struct label_set {
	__u64 storage;
	__u64 count;
};

/* The head of a thread context record (OTEP 4947). */
struct thread_context {
	__u8 trace_id[16];
	__u8 span_id[8];
	__u8 valid;
	__u8 trace_flags;
	__u16 attrs_data_size;
};
_Static_assert(sizeof(struct thread_context) == 28, "thread_context");
#define CONTEXT_AHEAD_BYTES 128 /* of a record that are read at once, within a page */
_Static_assert(MAX_SLOT_END + (MAX_LABEL_SOURCES - 1) * sizeof(struct label_block) + sizeof(struct thread_context) <=
		       MAX_LABEL_END,
	       "ids have room");

static __always_inline __u32 saturate(__u64 v)
{
	return v > 0xffffffff ? 0xffffffff : v;
}

/* Body of a loop: copies one slot. */
static long copy_slot(__u64 i, struct slot_pass *pass)
{
	struct scratch *s = this_scratch();
	struct raw_label *raw;
	struct label_slot slot;
	__u32 at = pass->at;
	__u64 key_bytes, value_bytes, from;

	if (!s || i >= MAX_LABEL_SLOTS)
		return 1;
	from = pass->first + i * sizeof(slot);
	barrier_var(from);
	if (from > sizeof(s->label_memory.slots) - sizeof(slot))
		return 1;
	__builtin_memcpy(&slot, (const __u64 *)((const void *)s->label_memory.slots + from), sizeof(slot));
	if (pass->go) {
		/* the empty string may be anywhere, also at 0 */
		slot = (struct label_slot){ slot.key_buf, slot.key_len, slot.value_buf, slot.value_len };
	} else if (!slot.key_buf) {
		return 0; /* a hole: its value may be freed memory */
	} else if (!slot.value_buf) {
		pass->skipped++;
		return 0;
	}
	if (pass->live >= MAX_LABELS) {
		pass->outcome = OUTCOME_TRUNCATED;
		return 1;
	}
	key_bytes = slot.key_len < MAX_LABEL_KEY_BYTES ? slot.key_len : MAX_LABEL_KEY_BYTES;
	value_bytes = slot.value_len < MAX_LABEL_VALUE_BYTES ? slot.value_len : MAX_LABEL_VALUE_BYTES;
	barrier_var(key_bytes);
	barrier_var(value_bytes);
	/* again, where the verifier can see it */
	if (key_bytes > MAX_LABEL_KEY_BYTES || value_bytes > MAX_LABEL_VALUE_BYTES)
		return 1;
	if (at + sizeof(*raw) + key_bytes + value_bytes > MAX_SLOT_END) {
		pass->outcome = OUTCOME_TRUNCATED;
		return 1;
	}
	barrier_var(at);
	if (at > MAX_LABEL_BYTES)
		return 1;
	raw = (struct raw_label *)&s->body[at];
	raw->key_len = saturate(slot.key_len);
	raw->value_len = saturate(slot.value_len);
	raw->key_bytes = key_bytes;
	raw->value_bytes = value_bytes;
	if (key_bytes < slot.key_len || value_bytes < slot.value_len)
		pass->outcome = OUTCOME_TRUNCATED;
	if (!copy_string(s, at + sizeof(*raw), KEY_WINDOW, slot.key_buf, key_bytes) ||
	    !copy_string(s, at + sizeof(*raw) + key_bytes, VALUE_WINDOW, slot.value_buf, value_bytes)) {
		pass->outcome = OUTCOME_FAULT;
		return 1;
	}
	pass->at = at + sizeof(*raw) + key_bytes + value_bytes;
	pass->live++;
	return 0;
}
LOOP_BODY(copy_slot, &s->pass)

/*
 * Copies the live ones of so many slots, of which the first is so many bytes into label_memory.slots, to
 * scratch.body[at]; scratch.end and scratch.skipped tell the result. outcome is what it is so far. A global
 * function: the verifier goes through it once, whatever leads here.
 */
__noinline int copy_slots(__u32 slots, __u32 first, __u32 at, __u32 go, __u32 outcome)
{
	struct slot_pass pass = { .at = at, .first = first, .go = go, .outcome = outcome };
	struct scratch *s = this_scratch();

	if (!s)
		return OUTCOME_INVALID;
	LOOP_WITH(slots, copy_slot, pass, pass);
	s->skipped = pass.skipped;
	s->end = pass.at;
	if (pass.outcome == OUTCOME_PRESENT && !pass.live)
		return OUTCOME_NONE; /* nothing but holes */
	return pass.outcome;
}

/* The result of copy_slots: *end is where the labels end. */
static __always_inline enum outcome slots_copied(struct scratch *s, int out, struct label_block *block, __u32 *end)
{
	block->skipped = s->skipped;
	if (out == OUTCOME_PRESENT || out == OUTCOME_TRUNCATED)
		*end = s->end;
	return out;
}

/*
 * Copies the live labels of the set at an address to scratch.body[at]; *end is where they end. go:
 * they are Go's.
 */
static __always_inline enum outcome copy_label_set(struct scratch *s, __u64 addr, bool go, __u32 at,
						   struct label_block *block, __u32 *end)
{
	const struct label_set *set = (const struct label_set *)s->label_memory.slots;
	enum outcome outcome = OUTCOME_PRESENT;
	__u64 slots, storage;
	int first;

	*end = at;
	if (!move_set_window(POINTED_AT(addr), sizeof(*set)))
		return OUTCOME_FAULT;
	slots = set->count;
	storage = POINTED_AT(set->storage);
	block->count = saturate(slots);
	if (!slots)
		return OUTCOME_NONE; /* storage is garbage then, and may be */
	if (!set->storage)
		return OUTCOME_INVALID;
	if (slots > MAX_LABEL_SLOTS) {
		slots = MAX_LABEL_SLOTS;
		outcome = OUTCOME_TRUNCATED;
	}
	first = in_set_window(storage, slots * sizeof(struct label_slot));
	if (first < 0)
		return OUTCOME_FAULT;
	return slots_copied(s, copy_slots(slots, first, at, go, outcome), block, end);
}

/* The same for a map of Go's; labels is a pointer to it. */
static __always_inline enum outcome copy_go_map(struct scratch *s, __u64 labels, __u32 at, struct label_block *block,
						__u32 *end)
{
	int out = go_map_slots(labels);

	block->count = saturate(s->walk.count);
	if (out != OUTCOME_PRESENT && out != OUTCOME_TRUNCATED)
		return out;
	return slots_copied(s, copy_slots(s->walk.slots, 0, at, 1, out), block, end);
}

/* Reads the head of a record to scratch.body[at], and what follows in its page. Returns the bytes; 0: it cannot be
 * read. */
__noinline int read_context(__u64 record, __u32 at)
{
	struct scratch *s = this_scratch();
	__u64 bytes = left_in_page(record);

	if (!s || at > MAX_LABEL_BYTES)
		return 0;
	if (bytes > CONTEXT_AHEAD_BYTES)
		bytes = CONTEXT_AHEAD_BYTES;
	if (bytes < sizeof(struct thread_context))
		bytes = sizeof(struct thread_context);
	barrier_var(bytes);
	if (bytes > CONTEXT_AHEAD_BYTES || bpf_probe_read_user(&s->body[at], bytes, (const void *)record))
		return 0;
	return bytes;
}

/*
 * Copies the record at an address. One that was found in V8's heap is no record if
 * it claims more attributes than are read of any.
 */
static __always_inline enum outcome copy_thread_context(struct scratch *s, __u64 record, bool from_heap, __u32 at,
							struct label_block *block, __u32 *end)
{
	struct thread_context *head;
	__u64 size, have;

	*end = at;
	record = POINTED_AT(record);
	barrier_var(at);
	if (at > MAX_LABEL_BYTES)
		return OUTCOME_INVALID;
	head = (struct thread_context *)&s->body[at];
	have = read_context(record, at);
	if (!have)
		return OUTCOME_FAULT;
	if (head->valid == 0)
		return OUTCOME_UPDATING;
	if (head->valid != 1)
		return OUTCOME_INVALID;
	size = head->attrs_data_size;
	block->count = size;
	if (from_heap && size > MAX_CONTEXT_ATTRS_BYTES)
		return OUTCOME_INVALID;
	if (size > MAX_CONTEXT_ATTRS_BYTES)
		size = MAX_CONTEXT_ATTRS_BYTES;
	/* What finds no room is attributes: the ids come first. */
	if (at + sizeof(*head) > MAX_LABEL_END)
		return OUTCOME_TRUNCATED;
	if (size > MAX_LABEL_END - sizeof(*head) - at)
		size = MAX_LABEL_END - sizeof(*head) - at;
	barrier_var(size);
	if (size > MAX_CONTEXT_ATTRS_BYTES)
		return OUTCOME_INVALID;
	if (size > have - sizeof(*head) &&
	    bpf_probe_read_user(&s->body[at + sizeof(*head)], size, (const void *)(record + sizeof(*head))))
		return OUTCOME_FAULT;
	*end = at + sizeof(*head) + size;
	return size < block->count ? OUTCOME_TRUNCATED : OUTCOME_PRESENT;
}

/* Reads a source into scratch.body[at], behind the place of its label block; *end is where its labels end. */
static __always_inline enum outcome copy_source(struct scratch *s, __u64 tp, __u64 g, const struct label_source *src,
						__u32 at, struct label_block *block, __u32 *end)
{
	__u64 target = 0; /* to the verifier of 5.10, go_labels() may leave it as it is */
	const __u32 abi = src->abi;
	enum outcome out;

	*end = at;
	begin_label_memory(s);
	if (abi == LABEL_ABI_GO)
		out = go_labels(src, tp, g, &target);
	else
		out = tls_address(tp, src, &target);
	if (out != OUTCOME_PRESENT)
		return out;
	if (abi == LABEL_ABI_NODEJS) {
		out = nodejs_record(target, src->v8_field, src->v8_map_type, &target);
		if (out != OUTCOME_PRESENT)
			return out;
		return copy_thread_context(s, target, true, at, block, end);
	}
	/* With v0, the variable is the set. */
	if (abi != LABEL_ABI_GO && abi != LABEL_ABI_V0) {
		if (read_user(&target, target))
			return OUTCOME_FAULT;
		if (!target)
			return OUTCOME_NONE;
	}
	if (abi == LABEL_ABI_THREAD_CONTEXT)
		return copy_thread_context(s, target, false, at, block, end);
	if (abi == LABEL_ABI_GO && src->go_map)
		return copy_go_map(s, target, at, block, end);
	if (abi == LABEL_ABI_GO || abi == LABEL_ABI_V0 || abi == LABEL_ABI_V1)
		return copy_label_set(s, target, abi == LABEL_ABI_GO, at, block, end);
	return OUTCOME_INVALID;
}

/*
 * The same for one of the sources in scratch, by its number. Returns the outcome; what else a block says, but
 * for its abi, is in *block. The verifier goes through this function once, instead of once for each source.
 */
SEPARATE int read_source(__u64 tp, __u64 g, __u32 source, __u32 at, struct label_block *block)
{
	struct scratch *s = this_scratch();
	enum outcome out;
	__u32 end = at;

	if (!s || !block)
		return OUTCOME_INVALID;
	barrier_var(source);
	if (source >= MAX_LABEL_SOURCES || at > MAX_LABEL_BYTES)
		return OUTCOME_INVALID;
	out = copy_source(s, tp, g, &s->sources.source[source], at, block, &end);
	if (out == OUTCOME_PRESENT || out == OUTCOME_TRUNCATED)
		block->bytes = end - at;
	return out;
}

/*
 * Fills the label section with one block for each source of the process;
 * returns its bytes. g is Go's register (aarch64). Inlining it four times would
 * only cost instructions.
 */
static __noinline __u32 read_label_sources(const struct process_id *id, __u64 tp, __u64 g, __u32 compat)
{
	struct scratch *s = this_scratch();
	struct label_sources *known;
	__u32 at = 0;

	if (!id || !s)
		return 0;
	known = bpf_map_lookup_elem(&label_sources, id);
	if (!known)
		return 0;
	copy_element(&s->sources, known);
	if (s->sources.seal != sources_seal(seal(0, id, sizeof(*id)), &s->sources))
		return 0;
	s->header.presumed = !!s->sources.presumed;
	for (__u32 i = 0; i < MAX_LABEL_SOURCES && i < s->sources.count; i++) {
		struct label_block block = { .abi = s->sources.source[i].abi };
		__u32 start = at + sizeof(block), end;

		barrier_var(at);
		if (start > MAX_LABEL_BYTES || at > MAX_LABEL_BYTES)
			break;
		count(COUNTER_SOURCE_READS);
		if (compat)
			block.outcome = OUTCOME_COMPAT;
		else if (!tp && s->sources.source[i].kind != TLS_KIND_REGISTER)
			block.outcome = OUTCOME_NO_THREAD_POINTER;
		else
			block.outcome = read_source(tp, g, i, start, &block);
		__builtin_memcpy(&s->body[at], &block, sizeof(block));
		end = start + block.bytes;
		at = (end + 7) & ~7U;
		barrier_var(end);
		if (end <= MAX_LABEL_BYTES)
			*(__u64 *)&s->body[end] = 0; /* equal labels give equal bytes, padding included */
	}
	return at;
}

#endif
