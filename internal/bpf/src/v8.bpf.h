/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Which JavaScript function a frame of V8 runs: package v8js has the facts and their sources.
 *
 * V8 keeps frame pointers in all code that it generates and in its builtins, which have no
 * unwind rows. Below its frame pointer, a frame of a JavaScript function has
 *
 *   -8 context  -16 JSFunction  -24 arguments  -32 BytecodeArray  -40 offset in it
 *
 * the last two of them only while the interpreter runs it. Another frame of V8 has a small
 * integer instead of the context. Which code runs follows from the instruction: the interpreter
 * and builtins are in a file; code that was generated is the contents of an InstructionStream,
 * which leads to its Code. With --interpreted-frames-native-stack each interpreted function has a
 * copy of the interpreter's entry there: no other code that was generated is of a builtin's kind.
 *
 * The frame of the function takes the place of the native one. Nothing in V8's heap is believed
 * for itself: each object on the way is checked by the type that its map has, and where the
 * collector has moved it, its new place is looked at.
 */
#ifndef CUSTOM_LABELS_V8_H
#define CUSTOM_LABELS_V8_H

#include "seal.bpf.h"
#include "hotspotcode.bpf.h"
#include "nodejs.bpf.h"
#include "python.bpf.h"

#ifdef OLDER_KERNELS

/* Searches are loops of bpf_loop: stacks are native there. */
static __always_inline void begin_v8(__u32 scratch)
{
}

static __always_inline void step_v8(__u32 scratch)
{
}

static __always_inline void count_v8(__u32 scratch)
{
}

#else

#include "v8read.bpf.h"

#define V8_ENTRY_BYTES 32 /* within which code makes its frame */

/* Appends a frame; at a frame's native address, which it replaces, if there is one. */
static __always_inline void v8_emit(struct scratch *s, __u64 object, __u64 hash, __u64 position)
{
	struct stack_walk *w = &s->walk_state;
	__u64 at = w->at;
	__u32 added = 2;

	if (s->v8.replaces && at >= 8) {
		at -= 8;
		added = 1;
	}
	s->v8.replaces = 0;
	barrier_var(at);
	if (at > SAMPLE_BODY_BYTES || w->frames + added > MAX_USER_FRAMES) {
		s->v8.result = COUNTER_RUNTIME_CUT;
		return;
	}
	if (position > RUNTIME_POSITION_MASK)
		position = 0;
	*(__u64 *)&s->body[at] = RUNTIME_FRAME | (__u64)RUNTIME_V8 << RUNTIME_KIND_SHIFT |
				 (hash >> 32) << RUNTIME_COOKIE_SHIFT | position;
	*(__u64 *)&s->body[at + 8] = object;
	w->at = at + 16;
	w->frames += added;
}

/* What a cookie of the Code at hand is made of. Go's code.hash does the same. */
static __always_inline __u64 v8_code_hash(const struct v8_walk *v)
{
	return mix(mix(v->at.hash, v->in.start), (__u64)v->in.bytes << 32 | v->in.kind);
}

/* Appends the frame of the function at hand, by the Code that v->pc is in. */
static __always_inline void v8_emit_code(struct scratch *s, const struct v8_walk *v)
{
	v8_emit(s, v->in.kind == v->of.baseline ? v->at.shared : v->in.code, v8_code_hash(v), v->pc - v->in.start + 1);
}

/*
 * The frame of the function at hand, by the Code that v->pc is in, if it is the function's. A
 * function that is entered or left just now has its caller's frame pointer: then it comes
 * before its caller's frame.
 */
__noinline int v8_generated(__u32 scratch)
{
	struct scratch *s = bpf_map_lookup_elem(&scratches, &scratch);
	struct v8_function known;
	struct v8_walk *v;

	if (!s)
		return 0;
	v = &s->v8;
	if (!v8_code_at(v, scratch))
		return 0;
	known = v->at;
	if (v->in.of != known.shared && (!v->leaf || !v8_shared(v, v->in.of))) {
		v->at = known;
		return 0;
	}
	v8_emit_code(s, v);
	if (v->in.of == known.shared)
		return 1;
	v->at = known;
	return !known.shared;
}

/* Whether the next instruction is where code has no frame of its own: before it makes one, and behind that. */
static __always_inline bool v8_without_frame(struct v8_walk *v)
{
	__u64 code[2];

	if (v->pc - v->in.start < V8_ENTRY_BYTES)
		return true;
#if defined(__TARGET_ARCH_x86)
	if (bpf_probe_read_user(code, sizeof(code), (const void *)(v->pc - 8)))
		return false;
	return (__u8)code[1] == RET || (__u8)code[1] == RET_POP || code[0] >> 56 == POP_RBP;
#else
	if (read_user(&code[0], v->pc))
		return false;
	return (__u32)code[0] == A64_RET;
#endif
}

/*
 * The frame of the function at hand, which has called the code of the innermost frame: where that goes back to, if that
 * is in code that was generated. The code has no frame of its own: it is entered or left just now.
 */
__noinline int v8_caller(__u32 scratch)
{
	struct scratch *s = bpf_map_lookup_elem(&scratches, &scratch);
	struct v8_walk *v;

	if (!s)
		return 0;
	v = &s->v8;
	for (__u32 i = 0; i < (LINK_REGISTER ? 1 : 2); i++) {
		__u64 return_address = s->walk_state.lr;

		if (!LINK_REGISTER && read_user(&return_address, v->sp + 8 * i))
			return 0;
		return_address = strip_return_address(return_address);
		if (return_address >= USER_ADDRESS_END || !behind_call(return_address))
			continue;
		v->pc = return_address - 1;
		if (v8_code_at(v, scratch) && v->in.of == v->at.shared) {
			v->replaces = 0;
			v8_emit_code(s, v);
			return 1;
		}
	}
	return 0;
}

/* The offset in the bytecode of an interpreted frame, plus 1; 0 if it is none. */
static __always_inline __u64 v8_bytecode(struct v8_walk *v)
{
	__u64 bytecode = v->slots.bytecode;

	if (!v8_is_integer(v->slots.offset))
		return 0;
	/* All interpreted frames go on at the same place of the interpreter, or of a copy of its entry. */
	if (v->leaf || v->pc != v->interpreter) {
		if (!v8_load_kind(v, &bytecode, 8, V8_BYTECODE, v->of.bytecode_type))
			return 0;
		if (!v->leaf)
			v->interpreter = v->pc;
	}
	return (v->slots.offset >> 32) - v->of.bytecode_header + V8_TAG + 1;
}

/* Reads what is below the frame pointer. Mostly the walk has just read that part of the stack. */
static __always_inline bool v8_read_slots(struct stack_walk *w, struct v8_walk *v)
{
	const __u64 words = sizeof(v->slots) / 8;
	__u64 addr = v->fp - sizeof(v->slots), at = addr - w->window_start;

	if (at & 7 || at >= w->window_bytes || at + sizeof(v->slots) > w->window_bytes)
		return !bpf_probe_read_user(&v->slots, sizeof(v->slots), (const void *)addr);
	at /= 8;
	barrier_var(at);
	if (at > STACK_WINDOW_BYTES / 8 - words)
		return false;
	__builtin_memcpy(&v->slots, &w->window[at], sizeof(v->slots));
	return true;
}

/* Whether v->fp is the frame pointer of a JavaScript function, which is at hand then. */
static __always_inline bool v8_function(struct scratch *s, struct v8_walk *v)
{
	struct v8_function *known;
	__u64 function;

	/* Nothing of a frame is below the stack pointer: one that is being made has not all of it. */
	if (!v->fp || v->fp & 7 || v->sp > v->fp - 16)
		return false;
	if (!v8_read_slots(&s->walk_state, v))
		return false;
	if (!v8_is_object(v->slots.context) || !v8_is_object(v->slots.function))
		return false;
	if (v->sp > v->fp - sizeof(v->slots))
		v->slots.bytecode = v->slots.offset = 0; /* not there yet */
	function = v->slots.function;
	/* Neighbours of 64 bytes get different places. */
	known = &v->functions[(function / 8 ^ function / 64) & (V8_KNOWN - 1)];
	if (known->function == function) {
		v->at = *known;
		return true;
	}
	if (!v8_load(v, &function, V8_FUNCTION_BYTES) ||
	    !v8_is(v, v8_word(v, 0), V8_FUNCTION, v->of.function_first, v->of.function_last) ||
	    !v8_shared(v, v8_word(v, v->of.function_shared))) {
		v->result = COUNTER_RUNTIME_INVALID;
		return false;
	}
	v->at.function = v->slots.function;
	*known = v->at;
	return true;
}

/* Whether v->pc is in the Code that was found last, which is a copy of the interpreter's entry. */
static __always_inline bool v8_in_copy(const struct v8_walk *v)
{
	return v->in.code && v->pc - v->in.start < v->in.bytes && v->in.kind == v->of.builtin;
}

/* Looks whether the frame whose caller is looked for, which no row describes, is one of V8's. */
__noinline int step_v8(__u32 scratch)
{
	struct scratch *s = bpf_map_lookup_elem(&scratches, &scratch);
	struct v8_walk *v;
	__u64 position = 0;
	bool known, copy;

	if (!s)
		return 0;
	v = &s->v8;
	if (!v->result)
		return 0;
	v->at.shared = 0;
	known = v8_function(s, v);
	v->replaces = v->generated || !v->leaf;
	if (!known && !(v->leaf && v->generated)) {
		return 0;
	}
	if (v->generated) {
		if (v8_generated(scratch)) {
			if (known && v->leaf && v8_without_frame(v))
				v8_caller(scratch); /* it has called itself */
			return 0;
		}
		copy = v8_in_copy(v);
		if (!known || (v->leaf && v8_caller(scratch)))
			return 0;
		if (copy || (v->leaf && !v->replaces))
			position = v8_bytecode(v);
	} else {
		position = v8_bytecode(v);
		/* A builtin that has made no frame may be called by code that was generated. */
		if (!position && v->leaf && v8_caller(scratch))
			return 0;
	}
	v8_emit(s, v->at.shared, v->at.hash, position);
	return 0;
}

/* The maps that are known are those of a process. */
static __always_inline void begin_maps(struct v8_walk *v, const struct process_id *id)
{
	const struct process_id *of = &v->maps_of;

	if (of->tgid == id->tgid && of->start_ns == id->start_ns && of->exec_id == id->exec_id)
		return;
	v->maps_of = *id;
	__builtin_memset(v->maps, 0, sizeof(v->maps));
}

/* Begins with the stack of a process that has a V8. */
__noinline int begin_v8(__u32 scratch)
{
	struct scratch *s = bpf_map_lookup_elem(&scratches, &scratch);
	struct v8_walk *v;

	if (!s)
		return 0;
	v = &s->v8;
	v->result = 0;
	v->last_script = v->script_id = v->in.code = v->stream_map = 0;
	for (__u32 i = 0; i < V8_KNOWN; i++)
		v->functions[i].function = 0;
	begin_maps(v, &s->header.process);
	v->stack++;
	v->interpreter = 0;
	v->search_left = MAX_V8_STACK_READS;
	if (!find_runtime(s, RUNTIME_V8, v8, &v->of))
		return 0;
	v->result = COUNTER_RUNTIME_WHOLE;
	s->walk_state.below = sizeof(v->slots);
	return 0;
}

/* Counts what became of the frames of the runtime. */
static __noinline int count_v8(__u32 scratch)
{
	struct scratch *s = bpf_map_lookup_elem(&scratches, &scratch);

	if (!s)
		return 0;
	if (s->v8.result == COUNTER_RUNTIME_WHOLE && s->header.user_stack == OUTCOME_PRESENT)
		count(COUNTER_RUNTIME_WHOLE);
	else if (s->v8.result == COUNTER_RUNTIME_WHOLE || s->v8.result == COUNTER_RUNTIME_CUT)
		count(COUNTER_RUNTIME_CUT);
	else
		count(COUNTER_RUNTIME_INVALID);
	return 0;
}

#endif
#endif
