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
 * Nobody can flood the ring buffer of events, and no user can take the place of others: the least time between two
 * of a process, and how many there may be in a time on a CPU, of one user and of all.
 */
#define CONTEXT_GAP_NS 10000000ULL
#define CONTEXT_WINDOW_NS 1000000ULL
#define CONTEXT_USER_EVENTS 4
#define CONTEXT_CPU_EVENTS 16
#define MAX_PUBLISHERS 1024

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, MAX_PUBLISHERS);
	__type(key, struct process_id);
	__type(value, __u64); /* time of the last event */
} publishers SEC(".maps");

/* The events since a time on a CPU, and whose processes they are about. */
struct context_window {
	__u64 since_ns;
	__u32 count;
	__u32 uid[CONTEXT_CPU_EVENTS];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct context_window);
} context_windows SEC(".maps");

/* Whether an event may be sent, which is noted; *first: it is the first of its user in this time. */
static __always_inline bool context_event_allowed(const struct task_struct *task, bool *first)
{
	__u32 zero = 0, n, own = 0, uid = current_uid(task);
	__u64 now = bpf_ktime_get_ns(), *last;
	struct context_window *window;
	struct process_id id;

	window = bpf_map_lookup_elem(&context_windows, &zero);
	if (!window)
		return false;
	if (now - window->since_ns >= CONTEXT_WINDOW_NS) {
		window->since_ns = now;
		window->count = 0;
	}
	n = window->count;
	for (__u32 i = 0; i < CONTEXT_CPU_EVENTS; i++)
		own += i < n && window->uid[i] == uid;
	if (n >= CONTEXT_CPU_EVENTS || own >= CONTEXT_USER_EVENTS) {
		count(COUNTER_CONTEXTS_REFUSED);
		return false;
	}
	barrier_var(n);
	if (n < CONTEXT_CPU_EVENTS)
		window->uid[n] = uid; /* it counts once there is an event */
	process_identity(task, &id);
	last = bpf_map_lookup_elem(&publishers, &id);
	if (last && now - *last < CONTEXT_GAP_NS)
		return false;
	bpf_map_update_elem(&publishers, &id, &now, BPF_ANY);
	window->count = n + 1;
	*first = !own;
	return true;
}

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
	__u64 wakeup;
	bool first;
	long n;

	if ((__u32)ctx[0] != PR_SET_VMA || ctx[1] != PR_SET_VMA_ANON_NAME)
		return 0;
	n = bpf_probe_read_user_str(name.text, sizeof(name.text), (const void *)ctx[4]);
	/* A name that is not in memory at the moment may be the one. */
	if (n >= 0 && (n != CONTEXT_NAME_BYTES + 1 || name.word != CONTEXT_NAME))
		return 0;
	if (!context_event_allowed(task, &first))
		return 0;
	fill_event(&ev, task, EVENT_CONTEXT_NAMED);
	wakeup = event_wakeup(!first);
	if (atomic)
		bpf_preempt_disable();
	n = bpf_ringbuf_output(&events, &ev, sizeof(ev), wakeup);
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
