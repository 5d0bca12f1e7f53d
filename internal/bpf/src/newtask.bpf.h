/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Tasks that have just been made and are still where the system call that made them
 * returns. Their registers are copies of their maker's, and unwind rows of that place
 * describe the maker: it returns to its caller, while who has a stack of its own begins
 * here.
 */
#ifndef CUSTOM_LABELS_NEWTASK_H
#define CUSTOM_LABELS_NEWTASK_H

#include "regs.bpf.h"

/*
 * Whether the task, whose registers are r, has been made with a stack of its own and has not used it yet, if
 * what a system call has returned is 0. A function of its own does not share the stack of the rest.
 */
static __noinline bool is_new_task(struct task_struct *task, const struct user_regs *r)
{
	struct task_struct *maker;
	__u64 call;

	if (!task)
		return false;
	call = made_by(r);
	if (call == CALL_UNKNOWN)
		return false;
	/* Without a stack for it, a child goes on with its maker's, or with a copy. */
	if (call == CALL_CLONE && r->second != r->sp)
		return false;
	if (FIELD(task, pid) != FIELD(task, tgid))
		return true;
	/* vfork() of glibc passes its own stack, and then waits. */
	maker = FIELD(task, real_parent);
	if (user_sp(saved_regs(maker)) == r->sp)
		return false;
	return call == CALL_CLONE || FIELD(task, mm) == FIELD(maker, mm);
}

#endif
