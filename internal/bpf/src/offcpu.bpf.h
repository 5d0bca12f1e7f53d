/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Why a thread leaves the CPU. */
#ifndef CUSTOM_LABELS_OFFCPU_H
#define CUSTOM_LABELS_OFFCPU_H

#include "kernel.h"
#include "record.h"

/* include/linux/sched.h; the low bits have not changed since Linux 4.14 */
#define TASK_RUNNING 0
#define TASK_INTERRUPTIBLE 1
#define TASK_UNINTERRUPTIBLE 2
#define TASK_STOPPED 4
#define TASK_TRACED 8

/* How things were when a thread left. */
struct departure {
	__u64 time_ns; /* CLOCK_MONOTONIC */
	__u64 used_ns; /* CPU time of the thread */
};

/* preempted: within the kernel; a thread that is preempted in user space is just running. */
static __always_inline enum thread_state thread_state(bool preempted, __u32 state)
{
	if (preempted || state == TASK_RUNNING)
		return THREAD_RUNNABLE;
	if (state & TASK_INTERRUPTIBLE)
		return THREAD_SLEEPING;
	if (state & TASK_UNINTERRUPTIBLE)
		return THREAD_UNINTERRUPTIBLE;
	if (state & (TASK_STOPPED | TASK_TRACED))
		return THREAD_STOPPED;
	return THREAD_OTHER;
}

#endif
