/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Frames of HotSpot's code heaps: package hotspot has the facts and their sources.
 *
 * A code heap is divided into blocks. Its segment map leads from an address to the begin of
 * its block, which holds a CodeBlob: the code of one method (an nmethod), the interpreter, or
 * stubs. Compiled code keeps no frame pointer; its CodeBlob has the size of its frame, at whose
 * upper end are the caller's frame pointer and the return address:
 *
 *   caller's SP = SP + size;  {caller's FP, return address} at caller's SP - 16
 *
 * Only the innermost frame may not have been made yet or be taken down already, which its next
 * instructions tell. Interpreted frames have a frame pointer, and their Method below it.
 *
 * Return addresses of Java code lie in a code heap. The ways out are the call stub, which has a
 * frame pointer, and the stubs of calls from native code. So what is wrong leads out of the
 * heaps at once, mostly, and ends the stack.
 *
 * Global functions: the verifier goes through each once. All state is in scratch.
 */
#ifndef CUSTOM_LABELS_HOTSPOT_H
#define CUSTOM_LABELS_HOTSPOT_H

#include "regs.bpf.h"
#include "seal.bpf.h"
#include "hotspotstub.bpf.h"

#ifdef OLDER_KERNELS

/* As for Python: stacks are native there. */
static __always_inline void find_hotspot(__u32 scratch)
{
}

static __always_inline bool runs_hotspot(const struct scratch *s)
{
	return false;
}

static __always_inline int step_hotspot(__u32 scratch)
{
	return OUTCOME_NO_ROWS;
}

static __always_inline void count_hotspot(__u32 scratch)
{
}

#else

/* The frame of the interpreter. */
static __always_inline enum outcome by_interpreter(struct scratch *s, struct stack_walk *w, __u32 scratch)
{
	struct hotspot_walk *h = &s->hotspot;
	__u64 bytecode, index, sender, slot = h->process.bytecode_slot;
	struct frame_link link;

	if (!w->fp_known || w->fp & 7 || w->fp < w->sp || w->fp - w->sp > HOTSPOT_FRAME_BYTES ||
	    bpf_probe_read_user(h->frame, sizeof(h->frame), (const void *)(w->fp - INTERPRETED_BELOW)))
		return OUTCOME_NO_ROWS;
	h->wanted = h->frame[(INTERPRETED_BELOW - INTERPRETED_METHOD) / 8];
	sender = h->frame[(INTERPRETED_BELOW - INTERPRETED_SENDER_SP) / 8];
	read_hotspot_method(scratch);
	slot = (INTERPRETED_BELOW - slot) / 8;
	barrier_var(slot);
	bytecode = h->frame[slot & 7];
	link.fp = h->frame[INTERPRETED_BELOW / 8];
	link.return_address = strip_return_address(h->frame[INTERPRETED_BELOW / 8 + 1]);
	/* On aarch64 an interpreted caller has made room, which the frames of those that it calls begin in. */
	if (LINK_REGISTER && link.return_address >= h->process.interpreter &&
	    link.return_address < h->process.interpreter_limit)
		sender = w->fp + 16;
	if (!h->method || sender < w->fp + 16)
		return OUTCOME_NO_ROWS;
	if (!h->code_size) { /* a native method has none */
		if (bytecode && bytecode != h->bytecodes)
			return OUTCOME_NO_ROWS;
		index = -1;
	} else {
		index = BYTECODE_REGISTER(s, w) - h->bytecodes;
		/* Between two bytecodes the register may have another use. */
		if (!w->exact || !w->regs_known || index >= h->code_size)
			index = bytecode - h->bytecodes;
		if (index >= h->code_size)
			return OUTCOME_NO_ROWS;
	}
	emit_hotspot(s, w, h->method | HOTSPOT_METHOD, h->method_cookie, index + 1);
	if (!in_hotspot(h, link.return_address))
		return OUTCOME_INVALID;
	return hotspot_caller(w, &link, sender);
}

/* The frame of an nmethod. */
static __always_inline enum outcome by_nmethod(struct scratch *s, struct stack_walk *w, __u32 scratch)
{
	struct frame_link link = { .fp = w->fp, .return_address = w->lr };
	struct hotspot_walk *h = &s->hotspot;
	enum frame_state state = FRAME_WHOLE;
	__u64 sp = w->sp + h->frame_bytes, ip = w->ip;
	bool fp_known = w->fp_known;
	enum outcome out;

	/* To have the method left at once, its return address was put elsewhere. */
	if (!w->exact && (ip == h->deopt || ip == h->deopt_mh))
		read_user(&ip, w->sp + h->orig_pc);
	emit_hotspot(s, w, h->blob | HOTSPOT_CODE, h->cookie, ip + w->exact - h->code);
	if (!w->sp_known)
		return OUTCOME_NO_ROWS;
	if (h->frame_bytes < 16)
		return by_stack(h, w, scratch);
	if (h->frame_bytes > HOTSPOT_FRAME_BYTES)
		return OUTCOME_INVALID;
	if (w->exact)
		state = frame_state(h, w);
	switch (state) {
	case FRAME_NONE:
		sp = w->sp + (LINK_REGISTER ? 0 : 8);
		if (!LINK_REGISTER && read_user(&link.return_address, w->sp))
			return OUTCOME_FAULT;
		break;
	case FRAME_LINK:
		sp = w->sp + 16;
		fp_known = true;
		if (bpf_probe_read_user(&link, sizeof(link), (const void *)w->sp))
			return OUTCOME_FAULT;
		break;
	case FRAME_SPACE:
		if (!LINK_REGISTER && read_user(&link.return_address, sp - 8))
			return OUTCOME_FAULT;
		break;
	case FRAME_WHOLE:
		fp_known = true;
		if (!stack_link(w, sp - 16, &link))
			return OUTCOME_FAULT;
		/* C1 pushes two arguments for some of its stubs. */
		if (!w->exact && !in_hotspot(h, strip_return_address(link.return_address))) {
			sp += 16;
			if (!stack_link(w, sp - 16, &link))
				return OUTCOME_FAULT;
		}
	}
	if (!in_hotspot(h, strip_return_address(link.return_address)))
		return OUTCOME_INVALID;
	out = hotspot_caller(w, &link, sp);
	w->fp_known = fp_known;
	return out;
}

/* One frame up from code in a code heap. */
__noinline int step_hotspot(__u32 scratch)
{
	struct scratch *s = bpf_map_lookup_elem(&scratches, &scratch);
	struct hotspot_walk *h;
	struct stack_walk *w;
	enum outcome out;

	if (!s)
		return OUTCOME_INVALID;
	h = &s->hotspot;
	w = &s->walk_state;
	h->pc = w->exact ? w->ip : w->ip - 1;
	h->in_interpreter = h->pc >= h->process.interpreter && h->pc < h->process.interpreter_limit;
	if (h->in_interpreter) {
		out = by_interpreter(s, w, scratch);
		if (out != OUTCOME_NO_ROWS)
			goto out;
	}
	read_hotspot_blob(scratch);
	/* It gives back what room it has not used, which may be after the process was looked at. */
	if (h->in_interpreter && h->blob > h->process.interpreter)
		h->in_interpreter = 0;
	if (h->in_interpreter && !w->exact) {
		out = OUTCOME_NO_ROWS;
		goto out;
	}
	if (!h->blob)
		out = OUTCOME_INVALID;
	else if (h->nmethod)
		out = by_nmethod(s, w, scratch);
	else
		out = by_stub(s, w, scratch);
out:
	h->from_native = !in_hotspot(h, w->ip);
	h->failed = h->failed || out != OUTCOME_NONE;
	return out;
}

/* Finds the code heaps of the process. */
static __noinline int find_hotspot(__u32 scratch)
{
	struct scratch *s = bpf_map_lookup_elem(&scratches, &scratch);
	struct hotspot_walk *h;

	if (!s)
		return 0;
	h = &s->hotspot;
	h->blob = h->name = h->method = h->frames = h->failed = 0;
	h->from_native = 1;
	copy_regs(s);
	if (!find_runtime(s, RUNTIME_HOTSPOT, hotspot, &h->process))
		h->process.low = h->process.high = 0;
	return 0;
}

/* Whether the frame at hand is one of a code heap. */
static __always_inline bool runs_hotspot(const struct scratch *s)
{
	const struct stack_walk *w = &s->walk_state;

	return w->runtime == RUNTIME_HOTSPOT && in_hotspot(&s->hotspot, w->exact ? w->ip : w->ip - 1);
}

/* Counts what became of the frames of the runtime, if there are any. */
static __noinline int count_hotspot(__u32 scratch)
{
	struct scratch *s = bpf_map_lookup_elem(&scratches, &scratch);

	if (!s)
		return 0;
	if (s->hotspot.failed)
		count(COUNTER_RUNTIME_INVALID);
	else if (s->hotspot.frames && s->header.user_stack != OUTCOME_PRESENT)
		count(COUNTER_RUNTIME_CUT);
	else if (s->hotspot.frames)
		count(COUNTER_RUNTIME_WHOLE);
	return 0;
}

#endif
#endif
