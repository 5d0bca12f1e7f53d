/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What a thread is to itself. */
#ifndef CUSTOM_LABELS_TID_H
#define CUSTOM_LABELS_TID_H

#include "compat.bpf.h"

/* The thread id that the thread sees itself, in its own PID namespace: gettid(2). */
static __always_inline __u32 own_tid(void)
{
	const struct task_struct *task = current_task();
	const struct pid *pid = FIELD(task, thread_pid);
	struct upid upid;
	unsigned int level;

	if (!pid)
		return 0;
	level = FIELD(pid, level);
	if (!level)
		return FIELD(task, pid);
	if (level > MAX_PID_NS_LEVEL)
		return 0;
	/* Read, not dereferenced: to the verifier of 6.1 it is a number then, to which any level may be added. */
	pid = BPF_CORE_READ(task, thread_pid);
	if (bpf_core_read(&upid, sizeof(upid),
			  (const void *)pid + bpf_core_field_offset(struct pid, numbers) +
				  level * bpf_core_type_size(struct upid)))
		return 0;
	return upid.nr;
}

#endif
