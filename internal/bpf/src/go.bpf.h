/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * From a thread to the pprof labels of the goroutine that it runs (runtime/pprof).
 * Labels and the strings in them never change once they are set, and what a
 * goroutine refers to is not freed: there is nothing that could be torn.
 */
#ifndef CUSTOM_LABELS_GO_H
#define CUSTOM_LABELS_GO_H

#include "labelmemory.bpf.h"
#include "tid.bpf.h"

/* runtime/map.go before Go 1.24, type hmap. */
struct go_map {
	__u64 count;
	__u8 flags;
	__u8 log_buckets;
	__u16 noverflow;
	__u32 hash0;
	__u64 buckets;
	__u64 old_buckets; /* 0 unless it grows */
};
_Static_assert(sizeof(struct go_map) == 32, "go_map");

#define GO_MAP_SAME_SIZE_GROW 8
#define GO_MAP_MIN_TOP_HASH 5 /* less: empty, or moved to the new buckets */
#define GO_MAP_MAX_LOG_BUCKETS 16
#define GO_MAP_MAX_VISITS 256 /* buckets looked at, overflow included */

/*
 * OUTCOME_PRESENT and *labels (not 0), or the reason why there are none:
 *   g -> g.m -> m.curg -> curg.labels
 * m must name this very thread, so that nothing but the thread's own goroutine can
 * come out, wherever g came from. g may be the one that the scheduler or a signal
 * handler runs on; m.curg is the goroutine all the same, as for Go's own profiler.
 */
SEPARATE int go_labels(const struct label_source *src, __u64 tp, __u64 g_register, __u64 *labels)
{
	__u64 g = g_register, m, procid, curg, owner;
	struct scratch *s = this_scratch();
	const __u64 *words;

	if (!src || !labels || !s)
		return OUTCOME_INVALID;
	if (src->kind != TLS_KIND_REGISTER) {
		if (!tp)
			return OUTCOME_NO_THREAD_POINTER;
		if (read_user(&g, tp + src->offset))
			return OUTCOME_FAULT;
	}
	if (!g)
		return OUTCOME_NONE; /* not a thread of Go's */
	words = s->label_memory.words;
	if (!read_two(g, src->go.g_m, src->go.g_labels))
		return OUTCOME_FAULT;
	m = words[0];
	*labels = words[1];
	if (!m)
		return OUTCOME_UPDATING;
	if (!read_two(m, src->go.m_procid, src->go.m_curg))
		return OUTCOME_FAULT;
	procid = words[0];
	curg = words[1];
	if (procid != own_tid())
		return procid ? OUTCOME_INVALID : OUTCOME_UPDATING;
	if (!curg)
		return OUTCOME_NONE; /* the scheduler is at work */
	if (curg != g) {
		if (!read_two(curg, src->go.g_m, src->go.g_labels))
			return OUTCOME_FAULT;
		owner = words[0];
		*labels = words[1];
		if (owner != m)
			return owner ? OUTCOME_INVALID : OUTCOME_UPDATING;
	}
	return *labels ? OUTCOME_PRESENT : OUTCOME_NONE;
}

/* Body of a loop: takes the labels of one bucket. */
static long go_map_bucket(__u64 i, void *unused)
{
	struct scratch *s = this_scratch();
	struct go_map_walk *w;
	__u64 at;

	if (!s)
		return 1;
	w = &s->walk;
	at = w->bucket;
	if (!at && w->next < w->num)
		at = w->buckets + sizeof(struct go_bucket) * w->next++;
	else if (!at && w->next - w->num < w->num_old)
		at = w->old_buckets + sizeof(struct go_bucket) * (w->next++ - w->num);
	if (!at) {
		w->outcome = OUTCOME_PRESENT;
		return 1;
	}
	if (read_user(&s->bucket, at)) {
		w->outcome = OUTCOME_FAULT;
		return 1;
	}
	w->bucket = s->bucket.overflow;
	for (__u32 k = 0; k < GO_BUCKET_SLOTS; k++) {
		__u32 n = w->slots;

		if (s->bucket.tophash[k] < GO_MAP_MIN_TOP_HASH)
			continue;
		if (n >= MAX_LABEL_SLOTS)
			return 1;
		/* in the order of struct label_slot as Go fills it */
		s->label_memory.slots[n].key_len = s->bucket.keys[k].buf;
		s->label_memory.slots[n].key_buf = s->bucket.keys[k].len;
		s->label_memory.slots[n].value_len = s->bucket.values[k].buf;
		s->label_memory.slots[n].value_buf = s->bucket.values[k].len;
		w->slots = n + 1;
	}
	return 0;
}
LOOP_BODY(go_map_bucket, NULL)

/*
 * Collects the labels of a map in label_memory.slots; scratch.walk says how many. labels
 * is a pointer to the map. A map that was still growing when it was set has entries
 * in old buckets, too.
 */
__noinline int go_map_slots(__u64 labels)
{
	struct scratch *s = this_scratch();
	struct go_map_walk *w;
	struct go_map map;
	__u64 addr;

	if (!s)
		return OUTCOME_INVALID;
	w = &s->walk;
	__builtin_memset(w, 0, sizeof(*w));
	if (read_user(&addr, labels))
		return OUTCOME_FAULT;
	if (!addr)
		return OUTCOME_NONE;
	if (read_user(&map, addr))
		return OUTCOME_FAULT;
	w->count = map.count;
	if (!map.count)
		return OUTCOME_NONE;
	if (!map.buckets || map.log_buckets > GO_MAP_MAX_LOG_BUCKETS)
		return OUTCOME_INVALID;
	w->buckets = map.buckets;
	w->num = 1 << map.log_buckets;
	w->old_buckets = map.old_buckets;
	if (map.old_buckets)
		w->num_old = map.flags & GO_MAP_SAME_SIZE_GROW ? w->num : w->num >> 1;
	w->outcome = OUTCOME_TRUNCATED;
	LOOP(GO_MAP_MAX_VISITS, go_map_bucket);
	if (w->outcome == OUTCOME_PRESENT && w->slots != w->count)
		return OUTCOME_INVALID;
	return w->outcome;
}

#endif
