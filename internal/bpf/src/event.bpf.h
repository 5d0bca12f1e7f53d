/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Events of processes. */
#ifndef CUSTOM_LABELS_EVENT_H
#define CUSTOM_LABELS_EVENT_H

#include "identity.bpf.h"

/* Linux 6.10. */
extern void bpf_preempt_disable(void) __ksym;
extern void bpf_preempt_enable(void) __ksym;

static __always_inline void fill_event(struct process_event *ev, const struct task_struct *task, enum event_kind kind)
{
	__builtin_memset(ev, 0, sizeof(*ev));
	ev->time_ns = bpf_ktime_get_ns();
	process_identity(task, &ev->process);
	ev->pid = number_in_namespace(FIELD(task, group_leader));
	ev->kind = kind;
	ev->kernel_thread = !!(FIELD(task, flags) & PF_KTHREAD);
}

/* With room for so many bytes of a path. */
static __always_inline struct process_event *reserve_event(__u32 path_bytes)
{
	struct process_event *ev = bpf_ringbuf_reserve(&events, sizeof(*ev) + path_bytes, 0);

	if (!ev)
		count(COUNTER_EVENTS_DROPPED);
	return ev;
}

/*
 * An event that can wait does not wake the reader, who comes by itself, unless
 * there are many: to be woken costs more than to take note of dozens of them.
 */
static __always_inline __u64 event_wakeup(bool can_wait)
{
	bool waits = can_wait && bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA) < events_watermark_bytes;

	return waits ? BPF_RB_NO_WAKEUP : BPF_RB_FORCE_WAKEUP;
}

static __always_inline void submit_event(struct process_event *ev, bool can_wait)
{
	bpf_ringbuf_submit(ev, event_wakeup(can_wait));
}

#endif
