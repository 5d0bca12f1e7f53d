/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What a thread of a CPython process runs: package cpython has the facts and their sources.
 *
 * A thread's frames are a list, the innermost first. One native evaluation
 * (_PyEval_EvalFrameDefault) runs one or more of them and calls the next one by way of C.
 * Each has something on the C stack that the list leads to: up to 3.11 its _PyCFrame, from
 * 3.12 on a frame of its own that stands between those of two evaluations. So the native
 * frame that holds this address is the one that runs the frames before it. No list of
 * addresses of the evaluation's code is needed, which a compiler spreads over a file, and a
 * list that does not fit to the stack is noticed. A thread that is in a subinterpreter, too,
 * has a list in each; the addresses tell which of them is the inner one.
 *
 * All is collected before the native stack is walked, and put in its place then. Global
 * functions: the verifier goes through each once. All state is in scratch.
 */
#ifndef CUSTOM_LABELS_PYTHON_H
#define CUSTOM_LABELS_PYTHON_H

#include "pythonread.bpf.h"
#include "tid.bpf.h"
#include "tls.bpf.h"

#ifdef OLDER_KERNELS

/* Its loops are those of bpf_loop: stacks are native there. */
static __always_inline bool runs_runtime(const struct stack_walk *w)
{
	return false;
}

static __always_inline void collect_python(__u32 scratch)
{
}

static __always_inline void emit_python(__u32 scratch)
{
}

static __always_inline void count_python(__u32 scratch)
{
}

#else

#define PYTHON_OWNED_BY_C 3	   /* enum _frameowner: from here on no frame of a function */
#define PYTHON_OBJECT_MASK (~7ULL) /* 3.14 uses lower bits of a reference for itself */
#define PYTHON_SCANNED (8 * MAX_PYTHON_FRAMES)

_Static_assert((MAX_PYTHON_FRAMES & (MAX_PYTHON_FRAMES - 1)) == 0, "a power of 2");
_Static_assert((MAX_PYTHON_EVALUATIONS & (MAX_PYTHON_EVALUATIONS - 1)) == 0, "a power of 2");

static __always_inline long python_stop(struct python_walk *p, enum counter why)
{
	p->result = why;
	return 1;
}

/*
 * Makes frame the innermost one of a thread's state, of which first is the word that leads to it, and p->cframe the
 * _PyCFrame that it is in, if any.
 */
static __always_inline long python_frame_of(struct python_walk *p, __u64 first, __u64 *frame)
{
	struct python_process *of = &p->of;
	__u64 at = first;

	p->cframe = at;
	*frame = at;
	return at && of->by_cframe ? read_user(frame, at + of->cframe_current) : 0;
}

/* bpf_loop callback: looks at one thread, or goes to the next interpreter. */
static long find_python_thread(__u64 i, struct walk_context *ctx)
{
	struct scratch *s = bpf_map_lookup_elem(&scratches, &ctx->scratch);
	struct python_process *of;
	struct python_walk *p;
	__u64 frame;

	if (!s)
		return 1;
	p = &s->python;
	of = &p->of;
	if (!p->thread) {
		if (!p->interpreter)
			return python_stop(p, p->known ? 0 : COUNTER_RUNTIME_NO_THREAD);
		if (read_user(&p->thread, p->interpreter + of->interpreter_threads) ||
		    read_user(&p->interpreter, p->interpreter + of->interpreter_next))
			return python_stop(p, COUNTER_RUNTIME_INVALID);
		return 0;
	}
	if (bpf_probe_read_user(p->thread_bytes, PYTHON_THREAD_BYTES, (const void *)p->thread))
		return python_stop(p, COUNTER_RUNTIME_INVALID);
	if (python_thread_word(p, of->thread_native_id) != p->tid) {
		p->thread = python_thread_word(p, of->thread_next);
		return 0;
	}
	p->known = 1;
	if (python_frame_of(p, python_thread_word(p, of->thread_frame), &frame))
		return python_stop(p, COUNTER_RUNTIME_INVALID);
	if (!frame) { /* a spare one, or that of a thread that this one is about to start (3.11) */
		p->thread = python_thread_word(p, of->thread_next);
		return 0;
	}
	if (p->second)
		return python_stop(p, COUNTER_RUNTIME_NO_THREAD); /* in a third one */
	if (p->found) {
		p->second = frame;
		p->second_cframe = p->cframe;
	} else {
		p->found = frame;
		p->found_cframe = p->cframe;
	}
	p->thread = 0; /* it runs in one state of each interpreter */
	return 0;
}

static __always_inline struct python_evaluation *python_evaluation(struct python_walk *p, __u32 n)
{
	barrier_var(n);
	return &p->evaluation[n & (MAX_PYTHON_EVALUATIONS - 1)];
}

/* The native frame that holds marker runs all frames that are not yet those of another. */
static __always_inline bool end_evaluation(struct python_walk *p, __u64 marker)
{
	__u32 n = p->evaluations;

	if (n >= MAX_PYTHON_EVALUATIONS)
		return false;
	python_evaluation(p, n)->marker = marker;
	python_evaluation(p, n)->end = p->count;
	p->evaluations = n + 1;
	return true;
}

/* bpf_loop callback: collects one frame. */
static long next_python_frame(__u64 i, struct walk_context *ctx)
{
	struct scratch *s = bpf_map_lookup_elem(&scratches, &ctx->scratch);
	struct python_process *of;
	struct python_walk *p;
	__u64 frame, code, units;
	__u32 n;

	if (!s)
		return 1;
	p = &s->python;
	of = &p->of;
	frame = p->frame;
	if (!frame)
		return python_stop(p, p->overflow ? COUNTER_RUNTIME_CUT : COUNTER_RUNTIME_WHOLE);
	if (!read_python_frame(p, frame))
		return python_stop(p, COUNTER_RUNTIME_INVALID);
	p->frame = python_frame_word(p, of->frame_previous);
	if (python_frame_byte(p, of->frame_owner) >= PYTHON_OWNED_BY_C) {
		if (of->frame_entry)
			return python_stop(p, COUNTER_RUNTIME_INVALID);
		return end_evaluation(p, frame) ? 0 : python_stop(p, COUNTER_RUNTIME_CUT);
	}
	n = p->count;
	barrier_var(n);
	if (n < MAX_PYTHON_FRAMES) {
		code = python_frame_word(p, of->frame_code) & PYTHON_OBJECT_MASK;
		if (!read_python_code(p, code))
			return python_stop(p, COUNTER_RUNTIME_INVALID);
		if (p->last_shim)
			return 0;
		/* In a frame that was just made it may be anything. */
		units = python_frame_word(p, of->frame_instruction) - (code + of->code_bytes) + 2;
		units = units >> 1 > p->last_units || units >> 1 > RUNTIME_POSITION_MASK ? 0 : units >> 1;
		p->words[2 * n] = RUNTIME_FRAME | (__u64)RUNTIME_CPYTHON << RUNTIME_KIND_SHIFT |
				  (p->last_cookie & 0xffffffff) << RUNTIME_COOKIE_SHIFT | units;
		p->words[2 * n + 1] = code;
		p->count = n + 1;
	} else if (p->evaluations && python_evaluation(p, p->evaluations - 1)->end == n) {
		return python_stop(p, COUNTER_RUNTIME_CUT); /* the last one that has a place ends an evaluation */
	} else {
		p->overflow = 1;
	}
	if (of->frame_entry && python_frame_byte(p, of->frame_entry)) {
		if (!end_evaluation(p, p->cframe))
			return python_stop(p, COUNTER_RUNTIME_CUT);
		if (read_user(&p->cframe, p->cframe + of->cframe_previous))
			return python_stop(p, COUNTER_RUNTIME_INVALID);
	}
	return 0;
}

/* Makes w->marker the address in the native frame that runs the next frames. */
static __always_inline void next_marker(struct scratch *s)
{
	struct python_walk *p = &s->python;
	__u32 n;

	if (p->next >= p->end && p->first) { /* of the inner state there are no more */
		p->end = p->first;
		p->next = p->from = p->first = 0;
	}
	n = p->next;
	barrier_var(n);
	s->walk_state.marker = n < p->end ? python_evaluation(p, n)->marker : 0;
}

/* Collects the frames of a thread's state, of which frame is the innermost one. */
static __always_inline void collect_python_state(struct walk_context *ctx, struct python_walk *p, __u64 frame,
						 __u64 cframe)
{
	struct python_process *of = &p->of;
	__u32 before;

	p->frame = frame;
	p->cframe = cframe;
	p->result = COUNTER_RUNTIME_CUT;
	before = p->evaluations;
	bpf_loop(PYTHON_SCANNED, next_python_frame, ctx, 0);
	/* One that goes on has what was collected of it, where it is known which native frame it is. */
	if (p->overflow && p->result == COUNTER_RUNTIME_CUT && of->by_cframe &&
	    (of->frame_entry || p->evaluations == before))
		end_evaluation(p, p->cframe);
}

/* Whether the evaluations from the n-th on are inner ones of those before. */
static __always_inline bool python_inner(struct python_walk *p, __u32 n)
{
	return n && n < p->evaluations && python_evaluation(p, n)->marker < python_evaluation(p, 0)->marker;
}

/* Collects the frames of the states that were found. */
static __always_inline void collect_python_states(struct walk_context *ctx, struct python_walk *p)
{
	__u32 n;

	p->result = COUNTER_RUNTIME_WHOLE;
	if (p->found)
		collect_python_state(ctx, p, p->found, p->found_cframe);
	if (p->second && p->result == COUNTER_RUNTIME_WHOLE) {
		n = p->evaluations;
		collect_python_state(ctx, p, p->second, p->second_cframe);
		if (python_inner(p, n)) {
			p->first = p->next = n;
			barrier_var(n);
			p->from = python_evaluation(p, n - 1)->end;
		}
	}
	p->end = p->evaluations;
}

/* Collects the Python frames of the current thread into scratch.python. */
__noinline int collect_python(__u32 scratch)
{
	struct walk_context ctx = { .scratch = scratch };
	struct scratch *s = bpf_map_lookup_elem(&scratches, &scratch);
	struct python_process *of;
	struct python_walk *p;

	if (!s)
		return 0;
	p = &s->python;
	of = &p->of;
	p->result = COUNTER_RUNTIME_INVALID;
	p->count = p->put = p->from = p->evaluations = p->next = p->end = p->first = p->overflow = 0;
	p->thread = p->found = p->second = p->known = p->last_code = p->window_bytes = 0;
	if (!find_runtime(s, RUNTIME_CPYTHON, python, of))
		return 0;
	p->tid = own_tid();
	if (read_user(&p->interpreter, of->interpreters))
		return 0;
	p->result = COUNTER_RUNTIME_NO_THREAD; /* not within the bound */
	bpf_loop(MAX_PYTHON_THREADS, find_python_thread, &ctx, 0);
	if (p->result)
		return 0;
	collect_python_states(&ctx, p);
	next_marker(s);
	return 0;
}

/* Whether the frame whose caller was just found runs the next frames of the runtime. */
static __always_inline bool runs_runtime(const struct stack_walk *w)
{
	return w->marker && w->marker >= w->frame_sp && w->marker < w->sp;
}

/* Appends the frames that the native frame at hand runs to the record. */
__noinline int emit_python(__u32 scratch)
{
	struct scratch *s = bpf_map_lookup_elem(&scratches, &scratch);
	__u64 from, end, room, at, bytes;
	struct python_walk *p;
	__u32 n;

	if (!s)
		return 0;
	p = &s->python;
	n = p->next;
	from = p->from;
	end = python_evaluation(p, n)->end;
	if (s->walk_state.frames >= MAX_USER_FRAMES || end < from || end > MAX_PYTHON_FRAMES)
		return 0;
	room = (MAX_USER_FRAMES - s->walk_state.frames) / 2;
	if (end - from > room)
		end = from + room;
	bytes = (end - from) * 16;
	at = s->walk_state.at;
	barrier_var(at);
	barrier_var(bytes);
	if (at > SAMPLE_BODY_BYTES || bytes > 16 * MAX_PYTHON_FRAMES)
		return 0;
	barrier_var(from);
	if (bpf_probe_read_kernel(&s->body[at], bytes, &p->words[2 * (from & (MAX_PYTHON_FRAMES - 1))]))
		return 0;
	s->walk_state.at = at + bytes;
	s->walk_state.frames += bytes / 8;
	p->put += end - from;
	p->from = end;
	p->next = n + 1;
	next_marker(s);
	return 0;
}

/* A native stack that is whole does not tell that functions are left out. */
static __always_inline void mark_cut(struct scratch *s)
{
	if (s->header.user_stack == OUTCOME_PRESENT)
		s->header.user_stack = OUTCOME_TRUNCATED;
}

/* Whether there are more functions than were collected. */
static __always_inline bool lacks_functions(const struct python_walk *p, enum counter result)
{
	return result == COUNTER_RUNTIME_CUT || (result == COUNTER_RUNTIME_INVALID && p->found);
}

/* Counts what became of the frames of the runtime. */
static __noinline int count_python(__u32 scratch)
{
	struct scratch *s = bpf_map_lookup_elem(&scratches, &scratch);
	enum counter result;

	if (!s)
		return 0;
	result = s->python.result;
	if (result == COUNTER_RUNTIME_WHOLE && (s->python.put < s->python.count || s->walk_state.marker))
		result = COUNTER_RUNTIME_CUT;
	if (lacks_functions(&s->python, result))
		mark_cut(s);
	/* Constants, since the verifier knows no bounds of a value that was read. */
	if (result == COUNTER_RUNTIME_WHOLE)
		count(COUNTER_RUNTIME_WHOLE);
	else if (result == COUNTER_RUNTIME_CUT)
		count(COUNTER_RUNTIME_CUT);
	else if (result == COUNTER_RUNTIME_NO_THREAD)
		count(COUNTER_RUNTIME_NO_THREAD);
	else
		count(COUNTER_RUNTIME_INVALID);
	return 0;
}

#endif
#endif
