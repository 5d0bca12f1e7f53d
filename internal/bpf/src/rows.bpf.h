/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* From an address of a process to the unwind rule that holds there. */
#ifndef CUSTOM_LABELS_ROWS_H
#define CUSTOM_LABELS_ROWS_H

#include "vma.bpf.h"

#define UNWIND_PAGE_WORDS (UNWIND_PAGE_BYTES / 4)
#define UNWIND_PAGE_RULES (UNWIND_PAGE_BYTES / sizeof(struct unwind_rule))
#define MAX_UNWIND_CHUNKS (MAX_UNWIND_MAPPINGS / UNWIND_CHUNK_MAPPINGS)

/* Steps of the binary searches: as many as it takes to halve that many down to one, and none. */
#define CHUNK_STEPS 6
#define MAPPING_STEPS 4
#define ROW_STEPS 11

_Static_assert(1 << CHUNK_STEPS == MAX_UNWIND_CHUNKS, "CHUNK_STEPS");
_Static_assert(1 << MAPPING_STEPS == UNWIND_CHUNK_MAPPINGS, "MAPPING_STEPS");
_Static_assert(1 << (ROW_STEPS - 1) == UNWIND_BLOCK_BYTES, "an instruction has at least one byte");

/*
 * Whether what was read of a chunk was its list's. The memory of a chunk that is gone may be another list's at once; a
 * list's number is never used again, and is the first that is written of a chunk.
 */
static __always_inline bool still_of(const struct unwind_chunk *c, __u64 list)
{
	asm volatile("" ::: "memory");
	return *(const volatile __u64 *)&c->list == list;
}

static __always_inline struct unwind_chunk *mapping_chunk(__u64 list, __u32 chunk)
{
	struct unwind_chunk_key key = { .list = list, .chunk = chunk };

	return bpf_map_lookup_elem(&unwind_mappings, &key);
}

static __always_inline struct unwind_mapping *chunk_mapping(struct unwind_chunk *c, __u32 i)
{
	barrier_var(i);
	return &c->mappings[i & (UNWIND_CHUNK_MAPPINGS - 1)];
}

/* Makes w->mapping the recent one that holds pc. */
static __always_inline bool find_recent(struct stack_walk *w, __u64 pc)
{
	for (__u32 i = 0; i < RECENT_MAPPINGS; i++) {
		if (pc < w->recent[i].start || pc >= w->recent[i].limit)
			continue;
		__builtin_memcpy(&w->mapping, &w->recent[i], sizeof(w->mapping));
		return true;
	}
	return false;
}

/* Makes w->mapping a recent one. */
static __always_inline void keep_mapping(struct stack_walk *w)
{
	__u32 i = w->recent_next & (RECENT_MAPPINGS - 1);

	barrier_var(i);
	i &= RECENT_MAPPINGS - 1;
	__builtin_memcpy(&w->recent[i], &w->mapping, sizeof(w->mapping));
	w->recent_next = i + 1;
}

/* Those of another list are forgotten, and those that the kernel has told for one stack. */
static __always_inline void begin_recent(struct stack_walk *w)
{
	__u64 list = w->by_vma ? 0 : w->list;

	if (list && w->recent_list == list)
		return;
	w->recent_list = list;
	w->bare_start = w->bare_limit = 0;
	w->mapping.start = w->mapping.limit = 0;
	for (int i = 0; i < RECENT_MAPPINGS; i++)
		w->recent[i].start = w->recent[i].limit = 0;
}

/* The two searches are functions of their own: so the verifier goes through each of them once, whatever calls it. */

/*
 * Mapping number i of a chunk, the last one that begins below pc or the first of all, does not hold pc. Generated code
 * has many frames there: so the range between two mappings is noted, unless it goes on in another chunk. left: the
 * mappings of the list from the chunk's first on.
 */
static __always_inline void note_gap(struct stack_walk *w, struct unwind_chunk *c, __u32 i, __u32 left, __u64 pc)
{
	__u64 start = chunk_mapping(c, i)->limit, limit = pc + 1;

	if (pc < chunk_mapping(c, i)->start) {
		start = 0;
		limit = chunk_mapping(c, i)->start;
	} else if (i + 1 >= left) {
		limit = USER_ADDRESS_END;
	} else if (i + 1 < UNWIND_CHUNK_MAPPINGS) {
		limit = chunk_mapping(c, i + 1)->start;
	}
	if (!still_of(c, w->list))
		return;
	w->bare_start = start;
	w->bare_limit = limit;
}

/* Makes w->mapping the one that holds pc, which is not among the recent ones. */
SEPARATE int find_mapping(struct stack_walk *w, __u64 pc)
{
	__u32 low = 0, high, count;
	struct unwind_mapping *m;
	struct unwind_chunk *c;

	if (!w)
		return false;
	if (WALKS_RUNTIMES && pc >= w->bare_start && pc < w->bare_limit)
		return false;
	if (w->by_vma)
		goto by_vma;
	if (!w->mappings)
		return false;
	high = (w->mappings + UNWIND_CHUNK_MAPPINGS - 1) / UNWIND_CHUNK_MAPPINGS;
	/* The last chunk that begins at or below pc. */
	for (int i = 0; i < CHUNK_STEPS && high - low > 1; i++) {
		__u32 middle = (low + high) / 2;

		c = mapping_chunk(w->list, middle);
		if (!c)
			goto lost;
		if (c->mappings[0].start <= pc)
			low = middle;
		else
			high = middle;
		if (!still_of(c, w->list))
			goto lost;
	}
	c = mapping_chunk(w->list, low);
	if (!c)
		goto lost;
	count = w->mappings - low * UNWIND_CHUNK_MAPPINGS;
	high = count < UNWIND_CHUNK_MAPPINGS ? count : UNWIND_CHUNK_MAPPINGS;
	low = 0;
	for (int i = 0; i < MAPPING_STEPS && high - low > 1; i++) {
		__u32 middle = (low + high) / 2;

		if (chunk_mapping(c, middle)->start <= pc)
			low = middle;
		else
			high = middle;
	}
	m = chunk_mapping(c, low);
	__builtin_memcpy(&w->mapping, m, sizeof(w->mapping));
	if (!still_of(c, w->list)) {
		w->mapping.start = w->mapping.limit = 0;
		goto lost;
	}
	if (pc < w->mapping.start || pc >= w->mapping.limit) {
		if (WALKS_RUNTIMES)
			note_gap(w, c, low, count, pc);
		return false;
	}
	keep_mapping(w);
	return true;

lost:
	/* The list has just been replaced, or it was the parent's of a process that nobody has looked at since. */
	w->guessed = 1;
	if (!has_mapping_tree())
		return false;
	w->by_vma = 1;
	begin_recent(w);
by_vma:
	if (!find_vma_mapping(w, pc))
		return false;
	keep_mapping(w);
	return true;
}

/* Makes w->mapping the one that holds pc. Most callers are in the same file as what they call. */
static __always_inline bool mapping_of(struct stack_walk *w, __u64 pc)
{
	return likely(pc >= w->mapping.start && pc < w->mapping.limit) || likely(find_recent(w, pc)) ||
	       find_mapping(w, pc);
}

/* Number n of the words that begin with a page of a table. */
static __always_inline bool table_word(void *table, __u32 first_page, __u32 n, __u32 *word)
{
	__u32 number = first_page + n / UNWIND_PAGE_WORDS;
	const __u32 *words = bpf_map_lookup_elem(table, &number); /* of a page */

	barrier_var(n);
	if (!words)
		return false;
	*word = words[n & (UNWIND_PAGE_WORDS - 1)];
	return true;
}

/* The rule for an address in w->mapping; CFA_NONE if there is none. False: the table is not there. */
SEPARATE int find_rule(struct stack_walk *w, __u64 pc, struct unwind_rule *rule)
{
	__u32 index_page, rows_page, low, high, row = 0, number, block, at, first = 0;
	const struct unwind_header *header;
	const struct unwind_rule *rules;
	bool have = false;
	__u64 offset;
	void *table;

	if (!w || !rule)
		return false;
	offset = pc - w->mapping.text;
	number = w->mapping.slot;
	table = bpf_map_lookup_elem(&unwind_tables, &number);
	if (!table)
		return false;
	rules = bpf_map_lookup_elem(table, &first);
	header = (const void *)rules;
	if (!rules || header->id != w->mapping.table_id)
		return false;
	if (offset / UNWIND_BLOCK_BYTES >= w->mapping.blocks)
		return true;
	block = offset / UNWIND_BLOCK_BYTES;
	at = offset % UNWIND_BLOCK_BYTES;
	index_page = header->index_page;
	rows_page = header->rows_page;
	if (!table_word(table, index_page, block, &low) || !table_word(table, index_page, block + 1, &high))
		return false;
	number = low;
	/* The rows of the block that begin at or below pc are those before low in the end. */
	for (int i = 0; i < ROW_STEPS && low < high; i++) {
		__u32 middle = (low + high) / 2, candidate;

		if (!table_word(table, rows_page, middle, &candidate))
			return false;
		if ((candidate & 0xffff) <= at) {
			row = candidate;
			have = true;
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	if (!have && !table_word(table, rows_page, number - 1, &row))
		return true; /* before the first row */
	number = row >> 16;
	if (!number)
		return true;
	if (number >= UNWIND_PAGE_RULES) {
		__u32 rule_page = number / UNWIND_PAGE_RULES;

		rules = bpf_map_lookup_elem(table, &rule_page);
		if (!rules)
			return false;
	}
	barrier_var(number);
	*rule = rules[number & (UNWIND_PAGE_RULES - 1)];
	return true;
}

/* Reads the rules of the last stack on this CPU: at low rates they have left the caches, and are fetched together now,
 * not one after the other as the walk comes to them.
 */
static __always_inline void read_ahead(const struct scratch *s)
{
#pragma clang loop unroll(disable)
	for (int i = 0; i < EXPECTED_RULES; i++) {
		__u32 place = s->expected[i];

		barrier_var(place);
		place &= (1 << KNOWN_RULES_BITS) - 1;
		(void)*(const volatile __u64 *)&s->rules[place].table_id;
	}
}

/*
 * The same; NULL: the table is not there. What is found is kept for the next stack on this CPU
 * that goes through the same code, of whichever process, and stays true when the table is gone.
 */
static __always_inline const struct unwind_rule *rule_at(struct scratch *s, struct stack_walk *w, __u64 pc)
{
	__u64 offset = pc - w->mapping.text, place;
	struct known_rule *known;

	if (unlikely(!w->mapping.table_id))
		return NULL; /* the file has none, or none yet */
	place = mix(w->mapping.table_id << 32, offset) >> (64 - KNOWN_RULES_BITS);
	known = &s->rules[place];
	s->expected[w->frames & (EXPECTED_RULES - 1)] = place;
	if (likely(known->table_id == w->mapping.table_id && known->offset == offset))
		return &known->rule;
	known->table_id = 0;
	__builtin_memset(&known->rule, 0, sizeof(known->rule));
	if (!find_rule(w, pc, &known->rule))
		return NULL;
	known->table_id = w->mapping.table_id;
	known->offset = offset;
	return &known->rule;
}

#endif
