/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The registers that a task had when it entered the kernel. */
#ifndef CUSTOM_LABELS_REGS_H
#define CUSTOM_LABELS_REGS_H

#include "maps.bpf.h"

#ifdef OLDER_KERNELS

/* At the top of its stack, as task_pt_regs() of both architectures has it. */
static __always_inline struct pt_regs *saved_regs(const struct task_struct *task)
{
	return FIELD(task, stack) + KERNEL_STACK_BYTES - bpf_core_type_size(struct pt_regs);
}

/* Where they can be looked at: all 0 if they cannot be read, which is no 64-bit code. */
static __always_inline struct pt_regs *copied_regs(const struct task_struct *task, struct scratch *s)
{
	bpf_probe_read_kernel(s->saved_regs, sizeof(s->saved_regs), saved_regs(task));
	return (struct pt_regs *)s->saved_regs;
}

#else

static __always_inline struct pt_regs *saved_regs(struct task_struct *task)
{
	return (struct pt_regs *)bpf_task_pt_regs(task);
}

#define copied_regs(task, scratch) saved_regs(task)

#endif

/* Copies those of the current task that rules may refer to: few stacks need them. */
static __noinline void copy_regs(struct scratch *s)
{
	const struct pt_regs *regs;

	if (s->walk_state.regs_copied)
		return;
	regs = copied_regs(current_task(), s);
	TASK_COPY_REGS(s->regs, regs);
	s->walk_state.regs_copied = 1;
}

#endif
