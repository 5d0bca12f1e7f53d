/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * How much of the ring buffer the samples of one user may fill, so that a flood by one
 * leaves room for the others.
 *
 * A user's unread bytes are counted in two parts, before and behind a position. When
 * the reader has passed it, the older part has been read, the newer one becomes the
 * older, and what has been written by now is the new position. So
 *
 *   unread <= min(older, end - read) + newer
 *
 * which is exact for a user who has the ring buffer for itself: of what is unread
 * before the position, no more can be its own than there is. CPUs do not wait for each
 * other: what one adds while another moves the position may be forgotten a record
 * too early, and two may find the same room free. A user exceeds its share by at most
 * two records for each further CPU.
 *
 * While no more than unshared_bytes are unread in all, which is the rule, no user can have more, and
 * no account is kept: it takes a lookup more for each sample. What was written then is nobody's later
 * on, so that a user has at most the sum of both.
 *
 * Where atomic operations have no results (before Linux 5.12), two CPUs that move the
 * position at the same time forget what was unread before it: then a user may have up to
 * twice its share, once.
 */
#ifndef CUSTOM_LABELS_SHARE_H
#define CUSTOM_LABELS_SHARE_H

#include "maps.bpf.h"

const volatile __u64 user_limit_bytes; /* of unread samples of one user; 0: no limit */
const volatile __u64 unshared_bytes;   /* of unread samples of all users, of which no account is kept */

/*
 * By uid in the init user namespace. The least recently used gives way: who is
 * forgotten starts with an empty share, which harms nobody else.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1); /* set by Go */
	__type(key, __u32);
	__type(value, struct user_share);
} users SEC(".maps");

/* What a record takes of a ring buffer: kernel/bpf/ringbuf.c, BPF_RINGBUF_HDR_SZ and the rounding. */
static __always_inline __u64 ring_bytes(__u32 bytes)
{
	return ((__u64)bytes + 8 + 7) & ~7ull;
}

/* Kernel threads are root's. Not inlined: the value would stay on the stack of the whole sample. */
static __noinline struct user_share *share_of(__u32 uid)
{
	struct user_share *share, empty = {};

	share = bpf_map_lookup_elem(&users, &uid);
	if (share)
		return share;
	bpf_map_update_elem(&users, &uid, &empty, BPF_NOEXIST);
	return bpf_map_lookup_elem(&users, &uid);
}

/* Moves the position at end to what has been written by now, unless another CPU has moved it; returns where it is. */
static __always_inline __u64 move_position(struct user_share *share, __u64 end)
{
	__u64 written = bpf_ringbuf_query(&samples, BPF_RB_PROD_POS);

#ifdef OLDER_KERNELS
	*(volatile __u64 *)&share->older = *(volatile __u64 *)&share->newer;
	*(volatile __u64 *)&share->newer = 0;
	*(volatile __u64 *)&share->end = written;
#else
	if (__sync_val_compare_and_swap(&share->end, end, written) != end)
		return *(volatile __u64 *)&share->end;
	share->older = __sync_lock_test_and_set(&share->newer, 0);
#endif
	return written;
}

/* Whether a record of so many bytes fits; counts it if not. */
static __noinline bool share_has_room(struct user_share *share, __u32 bytes)
{
	__u64 read = bpf_ringbuf_query(&samples, BPF_RB_CONS_POS);
	__u64 end = *(volatile __u64 *)&share->end, older;

	if (read >= end)
		end = move_position(share, end);
	older = *(volatile __u64 *)&share->older;
	if (read >= end)
		older = 0;
	else if (older > end - read)
		older = end - read;
	if (older + *(volatile __u64 *)&share->newer + ring_bytes(bytes) <= user_limit_bytes)
		return true;
	__sync_fetch_and_add(&share->dropped, 1);
	count(COUNTER_DROPPED_USER_SHARE);
	return false;
}

/* Adds a record that is in the ring buffer. */
static __always_inline void share_take(struct user_share *share, __u32 bytes)
{
	__sync_fetch_and_add(&share->newer, ring_bytes(bytes));
}

#endif
