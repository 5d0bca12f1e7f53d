/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Kernel frames from the kernel's own unwinder, user frames by frame pointer.
 * walk_user_stack is the seam behind which unwind rows will go.
 */
#ifndef CUSTOM_LABELS_STACK_H
#define CUSTOM_LABELS_STACK_H

#include "arch.h"
#include "maps.h"

/* Both architectures store {caller's frame pointer, return address} at the frame pointer. */
struct frame_link {
	__u64 fp;
	__u64 return_address;
};

/* State of one walk. */
struct stack_walk {
	__u64 fp;
	__u32 at; /* offset into scratch.body of the next frame */
	__u32 frames;
	enum outcome outcome;
};

/* Appends the kernel stack to scratch.body[at]; returns its frames. */
static __always_inline __u32 kernel_stack(struct scratch *s, void *ctx, __u32 at)
{
	long bytes;

	opaque(at);
	if (at > MAX_LABEL_BYTES)
		return 0;
	bytes = bpf_get_stack(ctx, &s->body[at], 8 * MAX_KERNEL_FRAMES, 0);
	if (bytes < 0) {
		s->header.kernel_stack = OUTCOME_FAULT;
		return 0;
	}
	s->header.kernel_stack = bytes < 8 * MAX_KERNEL_FRAMES ? OUTCOME_PRESENT : OUTCOME_TRUNCATED;
	return bytes / 8;
}

/* bpf_loop callback: one frame up. */
static long walk_frame(__u64 i, struct stack_walk *w)
{
	struct scratch *s = this_scratch();
	struct frame_link link;
	__u32 at = w->at;

	if (!s || at > SAMPLE_BODY_BYTES - 8)
		return 1;
	if (!w->fp) {
		w->outcome = OUTCOME_PRESENT; /* where the outermost frame is marked by a zero */
		return 1;
	}
	if (w->fp & 7) {
		w->outcome = OUTCOME_INVALID;
		return 1;
	}
	if (bpf_probe_read_user(&link, sizeof(link), (const void *)w->fp)) {
		w->outcome = OUTCOME_FAULT;
		return 1;
	}
	link.return_address = strip_return_address(link.return_address);
	if (!link.return_address) {
		w->outcome = OUTCOME_PRESENT;
		return 1;
	}
	/* Code without frame pointers uses the register for anything. */
	if (link.return_address >= USER_ADDRESS_END) {
		w->outcome = OUTCOME_INVALID;
		return 1;
	}
	*(__u64 *)&s->body[at] = link.return_address;
	w->at = at + 8;
	w->frames++;
	/* Stacks grow down: a caller's frame lies above. Anything else would let a target send us in circles. */
	if (link.fp && link.fp <= w->fp) {
		w->outcome = OUTCOME_INVALID;
		return 1;
	}
	w->fp = link.fp;
	return 0;
}

/* Appends the user stack to scratch.body[at]; returns its frames. */
static __always_inline __u32 walk_user_stack(struct scratch *s, const struct user_regs *regs, __u32 at)
{
	struct stack_walk w = { .fp = regs->fp, .at = at + 8, .frames = 1, .outcome = OUTCOME_TRUNCATED };

	opaque(at);
	if (at > SAMPLE_BODY_BYTES - 8 * MAX_USER_FRAMES)
		return 0;
	*(__u64 *)&s->body[at] = regs->ip;
	bpf_loop(MAX_USER_FRAMES - 1, walk_frame, &w, 0);
	s->header.user_stack = w.outcome;
	return w.frames;
}

#endif
