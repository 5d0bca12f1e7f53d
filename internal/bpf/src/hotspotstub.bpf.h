/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Frames of HotSpot's stubs and adapters, and of code that has not made its frame: nothing says how
 * large they are, so that what is on the stack is tried.
 */
#ifndef CUSTOM_LABELS_HOTSPOT_STUB_H
#define CUSTOM_LABELS_HOTSPOT_STUB_H

#include "hotspotcaller.bpf.h"

#ifndef OLDER_KERNELS

/*
 * How far above SP the frame pointer of a stub's own frame is: of one that is interrupted, and of
 * one that has called native code, whose caller's registers it has saved. Interpreted frames, which
 * a stub without a frame may have been called from, have their pointer further up than the first.
 */
#define STUB_FRAME_BYTES 64
#define STUB_SAVED_BYTES 512
#define STUB_LARGE_BYTES 2048 /* of a stub that searches strings, or ciphers */
#define STUB_PROLOGUE_BYTES 32
#define STUB_PUSHED_WORDS 8 /* on top of the return address, by a stub without a frame */

/* By the frame pointer of the stub itself. */
static __always_inline enum outcome by_stub_frame(struct hotspot_walk *h, struct stack_walk *w, __u64 far)
{
	__u64 sp = w->fp + 16;
	struct frame_link link;

	if (!w->fp_known || w->fp & 7 || w->fp < w->sp || w->fp - w->sp > far ||
	    bpf_probe_read_user(&link, sizeof(link), (const void *)w->fp))
		return OUTCOME_NO_ROWS;
	/* The barrier at the entry of a method has a word of its own there. */
	if (!LINK_REGISTER && link.return_address == -1ULL) {
		if (read_user(&link.return_address, sp))
			return OUTCOME_NO_ROWS;
		sp += 8;
	}
	/* Native code calls those that copy. */
	if (!returns_to_hotspot(h, link.return_address) &&
	    (!w->exact || !behind_call(strip_return_address(link.return_address))))
		return OUTCOME_NO_ROWS;
	return hotspot_caller(w, &link, sp);
}

/* With the return address at sp, and the frame pointer in its register. */
static __always_inline enum outcome by_return_address(struct stack_walk *w, __u64 return_address, __u64 sp)
{
	struct frame_link link = { .fp = w->fp, .return_address = return_address };
	bool fp_known = w->fp_known;
	enum outcome out = hotspot_caller(w, &link, sp + (LINK_REGISTER ? 0 : 8));

	w->fp_known = fp_known;
	return out;
}

/* How far above SP the frame of a caller may begin, by what was pushed in between. */
#define PUSHED_STEP 16
#define PUSHED_STEPS 8

/* The return address of a frame of compiled code that begins at sp, 0 if there is none. */
static __always_inline __u64 frame_return_address(const struct hotspot_walk *h, __u64 sp)
{
	__u64 return_address;

	return read_user(&return_address, sp + h->frame_bytes - 8) ? 0 : strip_return_address(return_address);
}

/*
 * The caller of code without a frame of its own: if it is compiled, where its frame begins, which may be
 * further up than w->sp says, but not below h->lowest_sp.
 */
__noinline int settle_hotspot(__u32 scratch)
{
	struct scratch *s = bpf_map_lookup_elem(&scratches, &scratch);
	struct hotspot_walk *h;
	struct stack_walk *w;

	if (!s)
		return 0;
	h = &s->hotspot;
	w = &s->walk_state;
	h->pc = w->ip - 1;
	if (!in_hotspot(h, h->pc))
		return 0;
	read_hotspot_blob(scratch);
	if (!h->blob || !h->nmethod || h->frame_bytes < 16 || h->frame_bytes > HOTSPOT_FRAME_BYTES ||
	    in_hotspot(h, frame_return_address(h, w->sp)))
		return 0;
	for (int i = 0; i < PUSHED_STEPS; i++) {
		__u64 sp = h->lowest_sp + PUSHED_STEP * i;

		if (returns_to_hotspot(h, frame_return_address(h, sp))) {
			w->sp = sp;
			break;
		}
	}
	return 0;
}

/* A frame that has the return address that is in its register too: it has been made. */
static __always_inline bool holds_link(const struct stack_walk *w, struct frame_link *link, __u64 at)
{
	return !bpf_probe_read_user(link, sizeof(*link), (const void *)at) &&
	       strip_return_address(link->return_address) == strip_return_address(w->lr);
}

/*
 * The frame of an interrupted stub whose return address is in its register. What was called by it, and
 * it itself behind a call, have one in the stub there.
 */
static __always_inline enum outcome by_link_register(struct hotspot_walk *h, struct stack_walk *w, __u32 scratch)
{
	struct frame_link link;
	enum outcome out;

	if (!returns_to_hotspot(h, w->lr) && !behind_call(strip_return_address(w->lr)))
		return OUTCOME_NO_ROWS;
	if (w->fp_known && !(w->fp & 7) && w->fp >= w->sp && w->fp - w->sp <= STUB_LARGE_BYTES &&
	    holds_link(w, &link, w->fp))
		return hotspot_caller(w, &link, w->fp + 16);
	if (h->frame_bytes >= 16 && h->frame_bytes <= HOTSPOT_FRAME_BYTES &&
	    holds_link(w, &link, w->sp + h->frame_bytes - 16))
		return hotspot_caller(w, &link, w->sp + h->frame_bytes);
	/* The frame pointer is to follow. */
	if (holds_link(w, &link, w->sp) && link.fp == w->fp)
		return hotspot_caller(w, &link, w->sp + 16);
	h->lowest_sp = w->sp;
	out = by_return_address(w, w->lr, w->sp);
	settle_hotspot(scratch);
	return out;
}

#if defined(__TARGET_ARCH_x86)

/*
 * Whether an interrupted stub has made a frame with a pointer, by its next instruction. The last word of
 * such a frame may be a return address that is left over from a call before.
 */
static __always_inline bool has_stub_frame(const struct hotspot_walk *h, const struct stack_walk *w)
{
	__u64 next, return_address;

	if (!w->exact || h->nmethod || h->frame_bytes || bpf_probe_read_user(&next, sizeof(next), (const void *)w->ip))
		return false;
	if ((__u8)next == PUSH_RBP || (__u8)next == RET || begins(next, 0xec8b48, 3) || begins(next, 0xe58948, 3))
		return false;
	return w->fp_known && w->fp >= w->sp && w->fp - w->sp <= STUB_FRAME_BYTES &&
	       !read_user(&return_address, w->fp + 8) && returns_to_hotspot(h, return_address);
}

#else

static __always_inline bool has_stub_frame(const struct hotspot_walk *h, const struct stack_walk *w)
{
	return false;
}

#endif

/* The frame of a stub of which nothing else is known: candidates are tried, the most certain first. */
static __always_inline enum outcome by_stack(struct hotspot_walk *h, struct stack_walk *w, __u32 scratch)
{
	/* To call native code, a stub without a frame may have aligned the stack. */
	__u32 words = w->exact ? 1 : 2;
	struct frame_link link;
	__u64 far = w->exact ? STUB_FRAME_BYTES : STUB_SAVED_BYTES, sp = w->sp, sender;
	enum outcome out;

	if (!w->sp_known || has_stub_frame(h, w))
		return by_stub_frame(h, w, far);
	if (LINK_REGISTER) {
		if (w->regs_known) {
			out = by_link_register(h, w, scratch);
			if (out != OUTCOME_NO_ROWS)
				return out;
		}
		/* One without a frame has saved it, to call native code. */
		if (!w->exact && !read_user(&link.return_address, sp) && returns_to_hotspot(h, link.return_address))
			return by_return_address(w, link.return_address, sp + 16);
	} else {
		for (__u32 i = 0; i < words; i++, sp += 8) {
			if (!read_user(&link.return_address, sp) && returns_to_hotspot(h, link.return_address))
				return by_return_address(w, link.return_address, sp);
		}
	}
	if (w->exact && h->frame_bytes >= 16 && h->frame_bytes <= HOTSPOT_FRAME_BYTES) {
		/* Before that is made, an older frame may be where it is to be. */
		if (w->ip - h->code < STUB_PROLOGUE_BYTES)
			return OUTCOME_NO_ROWS;
		if (!bpf_probe_read_user(&link, sizeof(link), (const void *)(w->sp + h->frame_bytes - 16)) &&
		    returns_to_hotspot(h, link.return_address))
			return hotspot_caller(w, &link, w->sp + h->frame_bytes);
	} else {
		out = by_stub_frame(h, w, far);
		if (out != OUTCOME_NO_ROWS || !w->exact)
			return out;
	}
	for (int i = 1; i <= STUB_PUSHED_WORDS && !LINK_REGISTER; i++, sp += 8) {
		if (!read_user(&link.return_address, sp) && returns_to_hotspot(h, link.return_address))
			return by_return_address(w, link.return_address, sp);
	}
	/* One that native code calls. */
	if (h->nmethod || h->frame_bytes)
		return OUTCOME_NO_ROWS;
	link.return_address = w->lr;
	if (!LINK_REGISTER && read_user(&link.return_address, w->sp))
		return OUTCOME_NO_ROWS;
	if (behind_call(strip_return_address(link.return_address)))
		return by_return_address(w, link.return_address, w->sp);
	/* One with a large frame of its own. The pointer may not be that of an interpreted frame. */
	if (!w->fp_known || read_user(&sender, w->fp - INTERPRETED_SENDER_SP) ||
	    (sender > w->fp && sender - w->fp <= HOTSPOT_FRAME_BYTES))
		return OUTCOME_NO_ROWS;
	return by_stub_frame(h, w, STUB_LARGE_BYTES);
}

/*
 * The interpreter before it has made its frame, or after it has taken it down: the caller's stack
 * pointer, which adapters have changed, is in a register, and the return address is the last word or in
 * a register too.
 */
static __always_inline enum outcome by_interpreter_entry(struct scratch *s, struct stack_walk *w)
{
	struct frame_link link = { .fp = w->fp };
	__u64 sp = ENTRY_SENDER_SP(s, w);
	bool fp_known = w->fp_known;
	enum outcome out;

	if (!w->sp_known || !w->regs_known || (!LINK_REGISTER && read_user(&link.return_address, w->sp)))
		return OUTCOME_NO_ROWS;
	if (LINK_REGISTER || !returns_to_hotspot(&s->hotspot, link.return_address)) {
		link.return_address = ENTRY_RETURN_ADDRESS(s, w);
		if (!returns_to_hotspot(&s->hotspot, link.return_address))
			return OUTCOME_NO_ROWS;
	}
	out = hotspot_caller(w, &link, sp > w->sp ? sp : w->sp + (LINK_REGISTER ? 0 : 8));
	w->fp_known = fp_known;
	return out;
}

/*
 * An adapter between compiled and interpreted code has moved the stack pointer, or not yet. An
 * interpreted caller has a frame pointer.
 */
static __always_inline enum outcome by_adapter(struct scratch *s, struct stack_walk *w, __u32 scratch)
{
	struct hotspot_walk *h = &s->hotspot;
	__u64 return_address = w->lr;
	struct frame_link link;
	enum outcome out;

	/* There it makes a frame to call native code, and has the return address in its register else. */
	if (LINK_REGISTER &&
	    (!w->exact || (w->lr >= h->blob && w->lr < h->limit) || (w->fp >= w->sp && holds_link(w, &link, w->fp))))
		return by_stub_frame(h, w, STUB_LARGE_BYTES);
	if (!w->exact || !w->sp_known || (!LINK_REGISTER && read_user(&return_address, w->sp)))
		return OUTCOME_NO_ROWS;
	return_address = strip_return_address(return_address);
	if (return_address < h->process.interpreter || return_address >= h->process.interpreter_limit) {
		if (!LINK_REGISTER || !w->regs_known || !returns_to_hotspot(h, return_address))
			return OUTCOME_NO_ROWS;
		h->lowest_sp = w->sp;
		out = by_return_address(w, return_address, ENTRY_SENDER_SP(s, w));
		settle_hotspot(scratch);
		return out;
	}
	out = by_return_address(w, return_address, w->sp);
	w->sp_known = 0;
	return out;
}

/* The frame of a stub. */
static __always_inline enum outcome by_stub(struct scratch *s, struct stack_walk *w, __u32 scratch)
{
	struct hotspot_walk *h = &s->hotspot;
	struct frame_link link;
	__u64 ip;

	if (w->ip == h->process.call_stub_return) {
		emit_hotspot_blob(s, w, 0);
		if (!w->fp_known || w->fp & 7 || w->fp < w->sp || w->fp - w->sp > HOTSPOT_FRAME_BYTES ||
		    bpf_probe_read_user(&link, sizeof(link), (const void *)w->fp))
			return OUTCOME_NO_ROWS;
		return hotspot_caller(w, &link, w->fp + 16);
	}
	if (h->adapter) {
		emit_hotspot_blob(s, w, 0);
		return by_adapter(s, w, scratch);
	}
	if (w->exact) {
		emit_hotspot_blob(s, w, 0);
		return h->in_interpreter ? by_interpreter_entry(s, w) : by_stack(h, w, scratch);
	}
	if (h->frame_bytes >= 16 && h->frame_bytes <= HOTSPOT_FRAME_BYTES) {
		emit_hotspot_blob(s, w, 0);
		/* While a frame is replaced by those of the interpreter, nothing is there yet. */
		if (!w->sp_known ||
		    bpf_probe_read_user(&link, sizeof(link), (const void *)(w->sp + h->frame_bytes - 16)) ||
		    (!in_hotspot(h, strip_return_address(link.return_address)) &&
		     !behind_call(strip_return_address(link.return_address))))
			return OUTCOME_NO_ROWS;
		return hotspot_caller(w, &link, w->sp + h->frame_bytes);
	}
	/* Stubs call each other too: those of one blob. */
	if (h->from_native || !h->continuation) {
		emit_hotspot_blob(s, w, 0);
		return by_stack(h, w, scratch);
	}
	/* The barrier below a virtual thread's frames: those further out are in the heap, the carrier's go on here. */
	emit_hotspot_blob(s, w, HOTSPOT_IN_HEAP);
	if (!h->process.continuation_return || read_user(&ip, h->process.continuation_return) ||
	    ip >= USER_ADDRESS_END || !in_hotspot(h, ip))
		return by_stack(h, w, scratch);
	w->ip = ip;
	w->fp_known = 0;
	return OUTCOME_NONE;
}

#endif
#endif
