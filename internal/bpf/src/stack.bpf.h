/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Kernel frames from the kernel's own unwinder, user frames by unwind rows where
 * there are rows and by frame pointer elsewhere. What a language runtime runs comes
 * from its own frames, which are put behind the native frame that runs them.
 */
#ifndef CUSTOM_LABELS_STACK_H
#define CUSTOM_LABELS_STACK_H

#include "hotspot.bpf.h"
#include "newtask.bpf.h"
#include "python.bpf.h"
#include "regs.bpf.h"
#include "rows.bpf.h"
#include "rule.bpf.h"
#include "uprobe.bpf.h"
#include "v8.bpf.h"
#include "window.bpf.h"

/* Appends the kernel stack to scratch.body[at]; returns its frames. */
static __always_inline __u32 kernel_stack(struct scratch *s, void *ctx, __u32 at)
{
	__u32 most = max_kernel_frames < MAX_KERNEL_FRAMES ? max_kernel_frames : MAX_KERNEL_FRAMES;
	long bytes;

	barrier_var(at);
	if (at > MAX_LABEL_BYTES)
		return 0;
	bytes = bpf_get_stack(ctx, &s->body[at], 8 * most, 0);
	if (bytes < 0) {
		s->header.kernel_stack = OUTCOME_FAULT;
		return 0;
	}
	s->header.kernel_stack = bytes < 8 * most ? OUTCOME_PRESENT : OUTCOME_TRUNCATED;
	return bytes / 8;
}

/*
 * A frame pointer that a frame has saved leads up the stack: else a target could send us in circles. But code that
 * keeps frame pointers may be called by code that has anything in the register, and rows. On x86-64 a walk by frame
 * pointer leads up the stack all the same; drop_doubted() takes the caller back that has no row which does without the
 * frame pointer. Not where a runtime's frames come behind it.
 */
static __always_inline bool may_keep_anything(const struct stack_walk *w)
{
	return FP_GIVES_SP && (w->runtime == RUNTIME_NONE || w->runtime == RUNTIME_CPYTHON);
}

/* The caller of the last frame was not found. If that frame was doubtful, it goes, with those doubted before it. */
static __always_inline enum outcome drop_doubted(struct stack_walk *w, enum outcome out)
{
	if (likely(!w->doubted) || w->doubted_sp != w->sp || out == OUTCOME_PRESENT)
		return out;
	w->at -= 8 * w->doubted;
	w->frames -= w->doubted;
	return OUTCOME_NO_ROWS;
}

/*
 * The frame at hand, to which a frame pointer led, is doubtful if that goes down, or if no call is before its address:
 * two words that only look like a link lead to what is no code. Go's outermost function is behind a nop. Generated code
 * may return to what is behind no call, too, as HotSpot's interpreter does: so the caller decides. sp: the stack
 * pointer of the frame before. A function of its own for the verifier.
 */
SEPARATE int doubt_frame(struct stack_walk *w, __u64 sp, __u32 no_code)
{
	bool again;

	if (!w)
		return false;
	if ((!w->fp || w->fp > w->sp - sizeof(struct frame_link)) &&
	    (!no_code || behind_call(w->ip) || behind_nop(w->ip)))
		return false;
	again = w->doubted_sp == sp && w->runtime == RUNTIME_NONE;
	w->doubted = again ? w->doubted + 1 : 1;
	w->doubted_sp = w->sp;
	return true;
}

/* Code without rows uses the register for anything, unless it is generated at run time or by a compiler that keeps it.
 */
static __always_inline enum outcome by_frame_pointer(struct stack_walk *w, bool other_stack)
{
	/* Where there are rows, the outermost frame has one that says so: a zero is what other code has left. */
	bool doubtful = w->guessed || (use_rows && w->mappings && !other_stack);
	struct frame_link link;
	__u64 sp = w->sp;
	enum outcome out;

	if (!w->fp_known)
		return OUTCOME_NO_ROWS;
	/* A zero marks the outermost frame; one in the register alone does not where code uses that for anything. */
	if (!w->fp)
		return doubtful || (use_rows && w->regs_known) ? OUTCOME_NO_ROWS : OUTCOME_PRESENT;
	if (w->fp & 7 || (!other_stack && w->fp + FP_BELOW_SP < w->sp))
		return OUTCOME_NO_ROWS;
	if (!stack_link(w, w->fp, &link))
		return OUTCOME_NO_ROWS;
	if (unlikely(link.fp && link.fp <= w->fp) &&
	    (other_stack || !may_keep_anything(w) || !behind_call(link.return_address)))
		return OUTCOME_NO_ROWS;
	out = to_caller(w, link.return_address, w->fp + sizeof(link), FP_GIVES_SP);
	w->fp = link.fp;
	if ((out == OUTCOME_PRESENT && doubtful) || out == OUTCOME_INVALID)
		return OUTCOME_NO_ROWS;
	w->by_guess |= w->guessed;
	if (out == OUTCOME_NONE && may_keep_anything(w))
		doubt_frame(w, sp, doubtful);
	return out;
}

#if defined(__TARGET_ARCH_x86) && !defined(OLDER_KERNELS)

/*
 * Behind their call, the trampolines that CPython 3.12 and 3.13 make for each function with -X perf have "add $8, %rsp;
 * ret", and no frame pointer (Python/asm_trampoline.S).
 */
static __always_inline bool in_perf_trampoline(const struct stack_walk *w)
{
	__u64 code;

	return w->runtime == RUNTIME_CPYTHON && w->sp_known && !w->exact &&
	       !bpf_probe_read_user(&code, sizeof(code), (const void *)w->ip) && (code & 0xffffffffff) == 0xc308c48348;
}

static __always_inline enum outcome by_perf_trampoline(struct stack_walk *w)
{
	__u64 return_address;

	if (!stack_word(w, w->sp + 8, &return_address))
		return OUTCOME_FAULT;
	return to_caller(w, return_address, w->sp + 16, true);
}

#else

static __always_inline bool in_perf_trampoline(const struct stack_walk *w)
{
	return false;
}

static __always_inline enum outcome by_perf_trampoline(struct stack_walk *w)
{
	return OUTCOME_NO_ROWS;
}

#endif

/*
 * A function without rows that has been called from another file and has called nothing: its
 * return address is still in its register. It may have made a frame, which holds the same.
 */
static __always_inline bool leaf_of_other_file(const struct stack_walk *w)
{
	__u64 caller = strip_return_address(w->lr) - 1, made = 0;

	if (!w->lr || caller >= USER_ADDRESS_END || !w->mapping.limit)
		return false;
	if (w->ip < w->mapping.start || w->ip >= w->mapping.limit)
		return false;
	if (caller >= w->mapping.start && caller < w->mapping.limit)
		return false;
	return bpf_probe_read_user(&made, sizeof(made), (const void *)(w->fp + 8)) ||
	       strip_return_address(made) - 1 != caller;
}

/* The caller of a function that returns to a trampoline, whose address gives way to the caller's. */
static __always_inline enum outcome by_trampoline(struct stack_walk *w)
{
	if (!w->exact && w->frames > 1) {
		w->at -= 8;
		w->frames--;
		w->doubted = 0;
	}
	return w->return_address ? to_caller(w, w->return_address, w->sp, true) : OUTCOME_NO_ROWS;
}

static __always_inline enum outcome next_frame(struct scratch *s, struct stack_walk *w)
{
	/* A return address may be behind the end of its function, or where another row begins. */
	__u64 pc = w->exact ? w->ip : w->ip - 1;
	const struct unwind_rule *rule;
	__u32 cfa = CFA_NONE;

	if (likely(mapping_of(w, pc))) {
		rule = rule_at(s, w, pc);
		if (unlikely(!rule))
			w->guessed = 1;
		else
			cfa = rule->cfa;
		if (likely(rule && cfa != CFA_NONE && cfa != CFA_SWITCH && (w->sp_known || !needs_sp(rule))))
			return by_rule(s, w, rule);
		if (rule && cfa == CFA_SWITCH && rule->arg && !w->fp)
			return OUTCOME_NO_ROWS;
	} else if (unlikely(find_return(w))) {
		return by_trampoline(w);
	}
	if (LINK_REGISTER && w->regs_known && cfa == CFA_NONE && leaf_of_other_file(w))
		return to_caller(w, w->lr, w->sp, true); /* the frame pointer is its caller's */
	if (in_perf_trampoline(w))
		return by_perf_trampoline(w);
	w->bare = cfa == CFA_NONE;
	return by_frame_pointer(w, cfa == CFA_SWITCH);
}

#ifdef OLDER_KERNELS

static __always_inline void note_v8(struct scratch *s)
{
}

static __always_inline void frame_of_v8(struct scratch *s, __u32 scratch)
{
}

#else

/* Notes the frame at hand, before the walk goes on to its caller. */
static __always_inline void note_v8(struct scratch *s)
{
	struct stack_walk *w = &s->walk_state;

	w->bare = 0;
	s->v8.leaf = w->exact;
	s->v8.pc = w->exact ? w->ip : w->ip - 1;
	s->v8.sp = w->sp_known ? w->sp : 0;
	s->v8.fp = w->fp_known ? w->fp : 0;
}

static __always_inline void frame_of_v8(struct scratch *s, __u32 scratch)
{
	struct stack_walk *w = &s->walk_state;

	if (!w->bare)
		return;
	s->v8.generated = s->v8.pc < w->mapping.start || s->v8.pc >= w->mapping.limit;
	step_v8(scratch);
}

#endif

/* One frame up; 1: there is none. runtime: the process may have a language runtime. */
static __always_inline long one_frame(__u32 scratch, bool runtime)
{
	struct scratch *s = bpf_map_lookup_elem(&scratches, &scratch);
	enum outcome out;
	__u32 at;

	if (unlikely(!s))
		return 1;
	if (runtime)
		s->walk_state.frame_sp = s->walk_state.sp;
	if (runtime && s->walk_state.runtime == RUNTIME_V8)
		note_v8(s);
	if (runtime && runs_hotspot(s))
		out = step_hotspot(scratch);
	else
		out = next_frame(s, &s->walk_state);
	if (runtime && s->walk_state.runtime == RUNTIME_V8)
		frame_of_v8(s, scratch);
	if (unlikely(out != OUTCOME_NONE)) {
		s->header.user_stack = drop_doubted(&s->walk_state, out);
		return 1;
	}
	if (runtime && runs_runtime(&s->walk_state))
		emit_python(scratch);
	at = s->walk_state.at;
	barrier_var(at);
	if (at > SAMPLE_BODY_BYTES - 8 || s->walk_state.frames >= MAX_USER_FRAMES)
		return 1;
	/* Return addresses are behind an instruction, and so is what is put here for an exact address. */
	*body_word(s, at) = s->walk_state.ip + s->walk_state.exact;
	s->walk_state.at = at + 8;
	s->walk_state.frames++;
	return 0;
}

/* Body of a loop. */
static long walk_frame(__u64 i, struct walk_context *ctx)
{
	return one_frame(ctx->scratch, false);
}
LOOP_BODY(walk_frame, &s->context)

#ifndef OLDER_KERNELS

/* The same where a process has a language runtime: others do not pay for it. */
static long walk_runtime_frame(__u64 i, struct walk_context *ctx)
{
	return one_frame(ctx->scratch, true);
}

#endif

/* Begins with the list of what a process maps. One that does not hold any more is as good as none. */
static __always_inline void use_list(struct stack_walk *w, struct task_struct *task, const struct process_entry *entry)
{
	struct mm_struct *mm = FIELD(task, mm);

	w->list = entry->list;
	w->mappings = entry->mappings;
	w->runtime = entry->runtime;
	w->guessed = use_rows && !w->list;
	w->by_vma = use_rows && (!w->list || !mm || FIELD(mm, exec_vm) != entry->exec_pages);
	begin_recent(w);
}

/* Whether a word is no address, and may be one of a runtime's frame. */
static __always_inline bool is_runtime_word(__u64 word)
{
	return word >> 63 && word >> 56 != 0xff;
}

/*
 * Appends the user stack of the task, whose registers are regs and scratch.regs,
 * to scratch.body[at]; returns its frames.
 */
static __always_inline __u32 walk_user_stack(struct scratch *s, __u32 scratch, struct task_struct *task,
					     const struct user_regs *regs, __u32 at)
{
	const __u32 callers = MAX_USER_FRAMES - 1;
	struct walk_context ctx = { .scratch = scratch };
	struct stack_walk *w = &s->walk_state;

	barrier_var(at);
	if (at > SAMPLE_BODY_BYTES - 8 * MAX_USER_FRAMES)
		return 0;
	/* A thread that returns from a signal may name any address; the kernel interrupts it there. */
	if (unlikely(is_runtime_word(regs->ip))) {
		s->header.user_stack = OUTCOME_INVALID;
		return 0;
	}
	/* The instruction of a system call may be the last of its function: __restore_rt's is. */
	*body_word(s, at) = regs->ip - regs->called;
	if (unlikely(regs->stopped)) {
		s->header.user_stack = OUTCOME_NO_ROWS;
		return 1;
	}
	if (unlikely(!regs->result) && is_new_task(task, regs)) {
		s->header.user_stack = OUTCOME_PRESENT;
		return 1;
	}
	w->ip = regs->ip;
	w->sp = regs->sp;
	w->fp = regs->fp;
#if LINK_REGISTER
	w->lr = regs->lr;
#endif
	w->at = at + 8;
	w->frames = 1;
	w->exact = !regs->called;
	w->regs_known = w->fp_known = w->sp_known = 1;
	w->doubted = w->regs_copied = w->by_guess = 0;
	w->window_bytes = 0;
	w->below = 0;
	use_list(w, task, &s->entry);
	if (unlikely(w->runtime))
		w->marker = 0;
	if (w->runtime == RUNTIME_CPYTHON)
		collect_python(scratch);
	else if (w->runtime == RUNTIME_HOTSPOT)
		find_hotspot(scratch);
	else if (w->runtime == RUNTIME_V8)
		begin_v8(scratch);
	s->header.user_stack = OUTCOME_TRUNCATED;
#ifndef OLDER_KERNELS
	if (unlikely(w->runtime)) {
		LOOP_WITH(callers, walk_runtime_frame, ctx, context);
		/* Else clang makes one call of both, by a pointer, and the kernel no plain loop of that. */
		asm volatile("" ::: "memory");
	} else
#endif
		LOOP_WITH(callers, walk_frame, ctx, context);
	if (w->runtime == RUNTIME_CPYTHON)
		count_python(scratch);
	else if (w->runtime == RUNTIME_HOTSPOT)
		count_hotspot(scratch);
	else if (w->runtime == RUNTIME_V8)
		count_v8(scratch);
	return w->frames > MAX_USER_FRAMES ? MAX_USER_FRAMES : w->frames;
}

#endif
