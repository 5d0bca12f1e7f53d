/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Whether the kernel's copy of a thread pointer is the thread's own. */
#ifndef CUSTOM_LABELS_THREADPOINTER_H
#define CUSTOM_LABELS_THREADPOINTER_H

#include "maps.bpf.h"

#ifdef __TARGET_ARCH_arm64

/* Processes of which is known how often they had been switched out when they executed their program. */
#define MAX_EXECUTED 1024

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, MAX_EXECUTED);
	__type(key, struct process_id);
	__type(value, __u64);
} executed SEC(".maps");

#ifndef SWITCHES_AHEAD
#define SWITCHES_AHEAD 0 /* those that are counted, but whose thread has not been switched out yet */
#endif

static __always_inline __u64 switches(const struct task_struct *task)
{
	return FIELD(task, nvcsw) + FIELD(task, nivcsw);
}

static __always_inline void note_exec(const struct task_struct *task, const struct process_id *id)
{
	__u64 now = switches(task);

	bpf_map_update_elem(&executed, id, &now, BPF_ANY);
}

/*
 * The kernel saves the register when it switches a thread out. An exec clears the register alone (tls_thread_flush() in
 * arch/arm64/kernel/process.c): until the thread that has executed a program is first switched out, what was saved is
 * the pointer of the program before. 0: not known. Other threads of a process begin with their own.
 */
static __always_inline __u64 own_thread_pointer(const struct task_struct *task, const struct process_id *id)
{
	__u64 *then;

	if (FIELD(task, pid) == FIELD(task, tgid)) {
		then = bpf_map_lookup_elem(&executed, id);
		if (then && *then == switches(task) - SWITCHES_AHEAD)
			return 0;
	}
	return thread_pointer(task);
}

#else

static __always_inline void note_exec(const struct task_struct *task, const struct process_id *id)
{
}

static __always_inline __u64 own_thread_pointer(const struct task_struct *task, const struct process_id *id)
{
	return thread_pointer(task);
}

#endif

#endif
