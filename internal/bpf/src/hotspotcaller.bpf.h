/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Frames of HotSpot: how one is emitted, and how the walk goes on to its caller. */
#ifndef CUSTOM_LABELS_HOTSPOT_CALLER_H
#define CUSTOM_LABELS_HOTSPOT_CALLER_H

#include "hotspotcode.bpf.h"
#include "hotspotread.bpf.h"
#include "window.bpf.h"

#ifndef OLDER_KERNELS

#define HOTSPOT_FRAME_BYTES (1U << 20) /* of one frame */

/* Interpreted frames: what is read of them, and where from the frame pointer. */
#define INTERPRETED_BELOW 80
#define INTERPRETED_METHOD 24
#define INTERPRETED_SENDER_SP 8

/* Puts a frame of the runtime in the place of the native one that was appended last. */
static __always_inline void emit_hotspot(struct scratch *s, struct stack_walk *w, __u64 object, __u64 cookie,
					 __u64 position)
{
	__u32 at = w->at;

	barrier_var(at);
	if (at < 8 || at > SAMPLE_BODY_BYTES || w->frames >= MAX_USER_FRAMES)
		return;
	if (position > RUNTIME_POSITION_MASK)
		position = 0;
	*(__u64 *)&s->body[at - 8] = RUNTIME_FRAME | (__u64)RUNTIME_HOTSPOT << RUNTIME_KIND_SHIFT |
				     (cookie & 0xffffffff) << RUNTIME_COOKIE_SHIFT | position;
	*(__u64 *)&s->body[at] = object;
	w->at = at + 8;
	w->frames++;
	s->hotspot.frames++;
}

static __always_inline void emit_hotspot_blob(struct scratch *s, struct stack_walk *w, __u64 position)
{
	emit_hotspot(s, w, s->hotspot.blob | HOTSPOT_CODE, s->hotspot.cookie, position);
}

static __always_inline bool in_hotspot(const struct hotspot_walk *h, __u64 addr)
{
	return addr >= h->process.low && addr < h->process.high;
}

/* Goes to the caller, whose stack pointer is known. */
static __always_inline enum outcome hotspot_caller(struct stack_walk *w, const struct frame_link *link, __u64 sp)
{
	__u64 ip = strip_return_address(link->return_address);

	if (!ip || ip >= USER_ADDRESS_END || sp <= w->sp - LINK_REGISTER || sp - w->sp > HOTSPOT_FRAME_BYTES)
		return OUTCOME_INVALID;
	w->ip = ip;
	w->sp = sp;
	w->fp = link->fp;
	w->sp_known = w->fp_known = 1;
	w->exact = w->regs_known = 0;
	return OUTCOME_NONE;
}

/* Whether code at an address is what a call returns to, as far as its caller tells. */
static __always_inline bool returns_to_hotspot(const struct hotspot_walk *h, __u64 addr)
{
	addr = strip_return_address(addr);
	if (!in_hotspot(h, addr))
		return false;
	/* The interpreter pushes the address at which it goes on. */
	if (addr >= h->process.interpreter && addr < h->process.interpreter_limit)
		return true;
	return behind_call(addr);
}

#endif
#endif
