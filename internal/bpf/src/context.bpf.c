// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Tells when a process announces a process context (OTEP 4719): each publisher calls
 *   prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, addr, len, "OTEL_CTX")
 * at the end of a publication, whether the kernel can name mappings or not. A function
 * that prctl alone calls is traced, as a tracepoint would slow down every system call.
 * Kernels may refuse that; contexts are polled for in any case.
 */
#include "event.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define PR_SET_VMA 0x53564d41 /* include/uapi/linux/prctl.h */
#define PR_SET_VMA_ANON_NAME 0

#define CONTEXT_NAME_BYTES 8
#define CONTEXT_NAME 0x5854435f4c45544fULL /* "OTEL_CTX", little endian */

/*
 * Nobody can flood the ring buffer of events: the least time between two of a process,
 * and between two on a CPU, of however many processes.
 */
#define CONTEXT_GAP_NS 10000000ULL
#define CONTEXT_CPU_GAP_NS 1000000ULL
#define MAX_PUBLISHERS 1024

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, MAX_PUBLISHERS);
	__type(key, struct process_id);
	__type(value, __u64); /* time of the last event */
} publishers SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64); /* the same, of the CPU */
} last_context SEC(".maps");

/* Whether an event may be sent, which is noted. */
static __always_inline bool context_event_allowed(const struct task_struct *task)
{
	__u64 now = bpf_ktime_get_ns(), *last, *own;
	struct process_id id;
	__u32 zero = 0;

	last = bpf_map_lookup_elem(&last_context, &zero);
	if (!last || now - *last < CONTEXT_CPU_GAP_NS)
		return false;
	process_identity(task, &id);
	own = bpf_map_lookup_elem(&publishers, &id);
	if (own && now - *own < CONTEXT_GAP_NS)
		return false;
	bpf_map_update_elem(&publishers, &id, &now, BPF_ANY);
	*last = now;
	return true;
}

/* Linux 6.10. */
extern void bpf_preempt_disable(void) __ksym;
extern void bpf_preempt_enable(void) __ksym;

/*
 * security_task_prctl(option, arg2, arg3, arg4, arg5). The kernel may preempt a program at a function, and what is
 * behind a record that is being written cannot be read. So an event is complete before there is a record, and with
 * atomic, nothing else runs on the CPU meanwhile.
 */
static __always_inline int name_context(const __u64 *ctx, bool atomic)
{
	struct task_struct *task = current_task();
	union {
		char text[CONTEXT_NAME_BYTES + 2]; /* a longer name is another one */
		__u64 word;
	} name;
	struct process_event ev;
	long n;

	if ((__u32)ctx[0] != PR_SET_VMA || ctx[1] != PR_SET_VMA_ANON_NAME)
		return 0;
	n = bpf_probe_read_user_str(name.text, sizeof(name.text), (const void *)ctx[4]);
	/* A name that is not in memory at the moment may be the one. */
	if (n >= 0 && (n != CONTEXT_NAME_BYTES + 1 || name.word != CONTEXT_NAME))
		return 0;
	if (!context_event_allowed(task))
		return 0;
	fill_event(&ev, task, EVENT_CONTEXT_NAMED);
	if (atomic)
		bpf_preempt_disable();
	n = bpf_ringbuf_output(&events, &ev, sizeof(ev), BPF_RB_FORCE_WAKEUP);
	if (atomic)
		bpf_preempt_enable();
	if (n)
		count(COUNTER_EVENTS_DROPPED);
	return 0;
}

SEC("fentry/security_task_prctl")
int context_named(__u64 *ctx)
{
	return name_context(ctx, false);
}

/* The same where the kernel has what that takes. */
SEC("fentry/security_task_prctl")
int context_atomic(__u64 *ctx)
{
	return name_context(ctx, true);
}
