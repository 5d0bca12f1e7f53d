/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Who a task is. */
#ifndef CUSTOM_LABELS_IDENTITY_H
#define CUSTOM_LABELS_IDENTITY_H

#include "maps.bpf.h"

#define NO_USER (~0U)

static __always_inline void process_identity(const struct task_struct *task, struct process_id *id)
{
	id->tgid = FIELD(task, tgid);
	id->pad = 0;
	/* The leader's start time survives exec by another thread: de_thread() copies it. */
	id->start_ns = FIELD(task, group_leader, start_boottime);
	/* Every thread of a process has the same value: exec leaves one thread alone, clone copies it. */
	id->exec_id = FIELD(task, self_exec_id);
}

/*
 * Whether the task runs in user space, so that its thread pointer and user
 * registers are its own and user addresses are those of its process. Not so:
 *  - kernel threads;
 *  - workers that the kernel adds to a process: their thread pointer is a copy
 *    of that of the thread that made them, whose labels they must not get;
 *  - exiting tasks: once they have told that they end, another thread may have
 *    their stack and thread-local variables; and when they have given up their
 *    memory, they run on whatever address space is loaded, perhaps another process's.
 */
static __always_inline bool has_user_space(const struct task_struct *task)
{
	return FIELD(task, mm) && !(FIELD(task, flags) & (PF_EXITING | PF_KTHREAD | PF_IO_WORKER | PF_USER_WORKER));
}

/* The number of a task in the namespace pid_ns_inum, 0 if it has none there. */
static __always_inline __u32 number_in_namespace(const struct task_struct *task)
{
	const struct pid *pid;
	unsigned int level;

	if (!pid_ns_inum)
		return FIELD(task, pid);
	pid = FIELD(task, thread_pid);
	if (!pid)
		return 0; /* already released */
	level = FIELD(pid, level);
	for (unsigned int i = 0; i <= MAX_PID_NS_LEVEL; i++) {
		struct upid upid;
		const void *at;

		if (i > level)
			break;
		at = (const void *)pid + bpf_core_field_offset(struct pid, numbers) +
		     i * bpf_core_type_size(struct upid);
		if (bpf_core_read(&upid, sizeof(upid), at))
			break;
		if (BPF_CORE_READ(upid.ns, ns.inum) == pid_ns_inum)
			return upid.nr;
	}
	return 0;
}

/* As bpf_get_current_comm() has it, which takes longer. */
static __always_inline void current_comm(const struct task_struct *task, struct sample_header *h)
{
#ifdef OLDER_KERNELS
	bpf_get_current_comm(h->comm, sizeof(h->comm));
#else
	const __u64 *words = (const __u64 *)&task->comm;
	__u64 *comm = (__u64 *)h->comm;

	comm[0] = words[0];
	comm[1] = words[1];
#endif
}

/*
 * In the init user namespace. Of real_cred: while a thread works in overlayfs, cred is that of who has mounted it
 * (override_creds). The verifier wants the pointer checked where a kernel was built by clang, whose BTF has a type tag
 * for __rcu; it is never NULL.
 */
static __always_inline __u32 current_uid(const struct task_struct *task)
{
	const struct cred *cred = FIELD(task, real_cred);

	return cred ? FIELD(cred, uid.val) : NO_USER;
}

#endif
