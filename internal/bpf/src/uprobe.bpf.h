/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What the kernel does to a program that somebody probes (kernel/events/uprobes.c).
 *
 * At a uprobe the program stops at a breakpoint; then the instruction that was there runs elsewhere, in a slot of its
 * own. A function for whose return somebody waits with a uretprobe returns to a trampoline; the kernel keeps where it
 * would have returned to in a list of the task, the last call first.
 */
#ifndef CUSTOM_LABELS_UPROBE_H
#define CUSTOM_LABELS_UPROBE_H

#include "scratch.bpf.h"

#define MAX_RETURNS 64 /* MAX_URETPROBE_DEPTH */
/* More than the code of the trampoline: an instruction, or what makes a system call of it (x86-64 from Linux 6.11 on).
 */
#define RETURN_TRAMPOLINE_BYTES 64
/* Bytes that it pushes before its system call (arch/x86/kernel/uprobes.c). */
#define RETURN_CALL_PUSHES 24
/* From what struct return_instance has of the stack to the stack pointer of the caller: on x86-64 it is where the
 * return address lies. */
#define RETURNED_BYTES (LINK_REGISTER ? 0 : 8)

#define SLOT_BYTES 128 /* UPROBE_XOL_SLOT_BYTES */

/* Whether the kernel has uprobes, and all that is read of them here. */
static __always_inline bool knows_probes(void)
{
	return bpf_core_field_exists(struct task_struct, utask) &&
	       bpf_core_field_exists(struct uprobe_task, xol_vaddr) &&
	       bpf_core_field_exists(struct uprobe_task, vaddr) &&
	       bpf_core_field_exists(struct uprobe_task, return_instances) &&
	       bpf_core_field_exists(struct return_instance, stack) &&
	       bpf_core_field_exists(struct return_instance, orig_ret_vaddr) &&
	       bpf_core_field_exists(struct return_instance, next) &&
	       bpf_core_field_exists(struct mm_struct, uprobes_state.xol_area) &&
	       bpf_core_field_exists(struct xol_area, vaddr);
}

/* Whether a task has ever come by a probe. */
static __always_inline bool is_probed(const struct task_struct *task)
{
	return knows_probes() && unlikely(FIELD(task, utask));
}

/*
 * Has the registers of a task whose instruction the kernel lets run elsewhere be those of the program. A function of
 * its own for the verifier, as what follows.
 */
SEPARATE int leave_slot(struct user_regs *regs)
{
	struct task_struct *task = current_task();
	__u64 slot;

	if (!regs || !is_probed(task))
		return false;
	slot = BPF_CORE_READ(task, utask, xol_vaddr);
	if (slot && regs->ip - slot < SLOT_BYTES)
		regs->ip += BPF_CORE_READ(task, utask, vaddr) - slot;
	return true;
}

#if defined(__TARGET_ARCH_x86)

/*
 * Behind a breakpoint nobody can know whether its instruction has run by then; it has not where it is the first of a
 * function, and the return address is where that finds it.
 */
SEPARATE int leave_breakpoint(struct user_regs *regs)
{
	__u64 word;

	if (!regs || regs->called || !behind_breakpoint(regs))
		return false;
	regs->stopped = bpf_probe_read_user(&word, sizeof(word), (const void *)regs->sp) || !behind_call(word);
	regs->ip -= !regs->stopped;
	return true;
}

#else

static __always_inline void leave_breakpoint(struct user_regs *regs)
{
	/* The address is that of the breakpoint. */
}

#endif

/* Has the registers of a probed task be those of the program. user: they are those of an interrupt. */
static __always_inline void leave_probe(struct user_regs *regs, bool user)
{
	leave_slot(regs);
	if (!user)
		leave_breakpoint(regs);
}

/*
 * Whether the frame at hand is the trampoline. Then the caller of the function that returns to it goes into
 * w->return_address, 0 if it is not known: while the kernel replaces it. Its stack pointer goes into w->sp.
 */
SEPARATE int find_return(struct stack_walk *w)
{
	struct return_instance *instance;
	struct task_struct *task = current_task();
	__u64 start, sp, pushed = 0;
	bool inside;

	if (!w || !is_probed(task))
		return false;
	start = BPF_CORE_READ(task, mm, uprobes_state.xol_area, vaddr);
	inside = w->exact || w->frames == 1; /* it runs: the function has returned */
	if (!start || (inside ? w->ip - start >= RETURN_TRAMPOLINE_BYTES : w->ip != start))
		return false;
	if (inside && !w->exact)
		pushed = RETURN_CALL_PUSHES;
	w->return_address = 0;
	instance = BPF_CORE_READ(task, utask, return_instances);
	for (int i = 0; i < MAX_RETURNS && instance; i++) {
		sp = BPF_CORE_READ(instance, stack) + RETURNED_BYTES;
		/* By a frame pointer alone, it is only known to be at least this. */
		if (sp == w->sp + pushed || (!w->sp_known && sp > w->sp)) {
			w->return_address = BPF_CORE_READ(instance, orig_ret_vaddr);
			w->sp = sp;
			break;
		}
		instance = BPF_CORE_READ(instance, next);
	}
	return true;
}

#endif
