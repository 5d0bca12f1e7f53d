/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Words of a stack, which are read in pieces. */
#ifndef CUSTOM_LABELS_WINDOW_H
#define CUSTOM_LABELS_WINDOW_H

#include "maps.bpf.h"

/*
 * Has the window begin at an address, or below it, as far as is wanted there. It is in one page:
 * so it can be read if the word at the address can. False: it cannot.
 */
SEPARATE int move_window(struct stack_walk *w, __u64 addr)
{
	__u64 offset = addr & (MIN_PAGE_BYTES - 1), bytes;

	if (!w)
		return false;
	if (WALKS_RUNTIMES && w->below && offset >= w->below && offset <= MIN_PAGE_BYTES - sizeof(__u64)) {
		addr -= w->below;
		offset -= w->below;
	}
	bytes = MIN_PAGE_BYTES - offset;
	w->window_bytes = 0;
	if (bytes < sizeof(__u64))
		bytes = sizeof(__u64); /* the word lies across two */
	if (bytes > STACK_WINDOW_BYTES)
		bytes = STACK_WINDOW_BYTES;
	/* again, where the verifier can see it */
	barrier_var(bytes);
	if (bytes > STACK_WINDOW_BYTES || bpf_probe_read_user(w->window, bytes, (const void *)addr))
		return false;
	w->window_start = addr;
	w->window_bytes = bytes & ~7ULL;
	return true;
}

/* Reads a word of the stack. Most of a frame and of those of its callers are in the window then. */
static __always_inline bool stack_word(struct stack_walk *w, __u64 addr, __u64 *word)
{
	__u64 at = addr - w->window_start;

	if (unlikely(at >= w->window_bytes || at & 7)) {
		if (!move_window(w, addr))
			return false;
		at = addr - w->window_start;
	}
	barrier_var(at);
	*word = w->window[at / 8 & (STACK_WINDOW_BYTES / 8 - 1)];
	return true;
}

static __always_inline bool stack_link(struct stack_walk *w, __u64 addr, struct frame_link *link)
{
	return stack_word(w, addr, &link->fp) && stack_word(w, addr + 8, &link->return_address);
}

#endif
