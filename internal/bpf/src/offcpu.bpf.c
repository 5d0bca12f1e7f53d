// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Follows threads off the CPU: with which labels and stack one leaves, and when it is
 * back. An object of its own, with a ring buffer, scratch memory and counters of its
 * own: a storm of switches costs the CPU samples nothing, and a CPU sample that
 * interrupts this program finds its own scratch.
 */
#define SWITCHES_AHEAD 1 /* the kernel counts a switch before it tells of it */
#include "offcpu.bpf.h"
#include "sample.bpf.h"
#include "targets.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* A switch is looked at if a draw of 32 bits is below. */
const volatile __u64 draw_below;
/* The collector, in the init PID namespace: its threads run because of what is recorded here. */
const volatile __u32 own_tgid;
/*
 * Unread bytes that no record of a thread that leaves goes beyond. The rest of the ring
 * buffer is for returns, of which there are at most as many as threads in off_cpu_threads.
 */
const volatile __u64 leave_limit_bytes;

/* Whether the tracepoint of a switch has prev_state. */
const volatile __u32 switch_tells_state = 1;

/* Of records that are just being written, on all CPUs. */
__u64 leaving_bytes;

/* Threads that were recorded as they left. None ends while it is off the CPU: it dies on one. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH); /* preallocated: nothing can be allocated under a run queue's lock */
	__uint(max_entries, 1 << 10);	 /* set by Go */
	__type(key, struct thread_id);
	__type(value, struct departure);
} off_cpu_threads SEC(".maps");

/* By CPU: the thread that was switched to last. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} running SEC(".maps");

static __always_inline void thread_identity(const struct task_struct *task, struct thread_id *id)
{
	id->thread = FIELD(task, pid);
	id->pad = 0;
	id->start_ns = FIELD(task, start_boottime);
}

/* used_ns: CPU time that it has used by now. */
static __always_inline void come_back(const struct task_struct *task, __u64 used_ns)
{
	struct thread_return back = {};
	struct departure *left;
	struct thread_id id;

	if (!task->pid)
		return;
	thread_identity(task, &id);
	left = bpf_map_lookup_elem(&off_cpu_threads, &id);
	if (!left)
		return;
	back.left_ns = left->time_ns;
	back.time_ns = bpf_ktime_get_ns() - (used_ns - left->used_ns);
	back.thread = id.thread;
	bpf_map_delete_elem(&off_cpu_threads, &id);
	if (bpf_ringbuf_output(&samples, &back, sizeof(back), wakeup_flags(sizeof(back))))
		count(COUNTER_RETURNS_LOST);
}

/*
 * Follows which thread runs. Hosts may hide switches from tracing, those of tasks of
 * theirs: the thread that such a switch leads to is running unseen, and is noticed when
 * it leaves. It has been back for as long as it has used the CPU since.
 */
static __noinline int follow(const struct task_struct *prev, const struct task_struct *next)
{
	__u32 zero = 0, *thread = bpf_map_lookup_elem(&running, &zero);

	if (!thread || !prev || !next)
		return 0;
	if (*thread != prev->pid)
		come_back(prev, prev->se.sum_exec_runtime);
	*thread = next->pid;
	come_back(next, next->se.sum_exec_runtime);
	return 0;
}

/* Whether a switch is to be looked at; counts it if not. */
static __always_inline bool wanted(const struct task_struct *task)
{
	enum counter no;

	if (!task->pid)
		no = COUNTER_FILTERED_IDLE;
	else if (!has_user_space(task))
		no = COUNTER_FILTERED_KERNEL;
	else if (task->tgid == own_tgid)
		no = COUNTER_FILTERED_OWN;
	else if (bpf_get_prandom_u32() >= draw_below)
		no = COUNTER_FILTERED_NOT_DRAWN;
	else if (filtered_target(task))
		no = COUNTER_FILTERED_TARGET;
	else
		return true;
	count(no);
	return false;
}

/* Notes that a thread leaves; not 0: there is no room. Functions of their own do not share the stack of the rest. */
static __noinline int remember(const struct task_struct *task, __u64 time_ns)
{
	struct departure left = { .time_ns = time_ns };
	struct thread_id id;

	if (!task)
		return 1;
	thread_identity(task, &id);
	left.used_ns = task->se.sum_exec_runtime;
	return bpf_map_update_elem(&off_cpu_threads, &id, &left, BPF_ANY) != 0;
}

static __noinline int forget(const struct task_struct *task)
{
	struct thread_id id;

	if (!task)
		return 0;
	thread_identity(task, &id);
	bpf_map_delete_elem(&off_cpu_threads, &id);
	return 0;
}

/*
 * Submits a sample unless it would take of what is for returns. Other CPUs do the same:
 * a record counts as being written until it is among the unread bytes, and maybe in both
 * for a moment, but never in none.
 */
static __always_inline bool submit_within_limit(struct scratch *s, const struct room *room, __u32 bytes)
{
	__u64 ours = ring_bytes(bytes), all;
	bool submitted = false;

#ifdef OLDER_KERNELS
	__sync_fetch_and_add(&leaving_bytes, ours);
	all = *(volatile __u64 *)&leaving_bytes;
#else
	all = __sync_fetch_and_add(&leaving_bytes, ours) + ours;
#endif
	if (bpf_ringbuf_query(&samples, BPF_RB_AVAIL_DATA) + all <= leave_limit_bytes)
		submitted = submit(s, room, bytes);
	else
		count(COUNTER_DROPPED_RING_FULL);
	__sync_fetch_and_add(&leaving_bytes, -ours);
	return submitted;
}

/* The task is still the current one, its memory still there. */
static __always_inline void leave(void *ctx, struct task_struct *task, bool preempt, __u32 state)
{
	struct scratch *s;
	struct room room;
	__u32 bytes;

	if (!wanted(task))
		return;
	if (bpf_ringbuf_query(&samples, BPF_RB_AVAIL_DATA) >= leave_limit_bytes) {
		count(COUNTER_DROPPED_RING_FULL);
		return;
	}
	if (!find_room(task, &room))
		return;
	s = this_scratch();
	if (!s) {
		count(COUNTER_DROPPED_INTERNAL);
		return;
	}
	bytes = take_sample(s, task, bpf_ktime_get_ns(), ctx, false, false);
	s->header.thread_state = thread_state(preempt, state);
	if (remember(task, s->header.time_ns))
		count(COUNTER_DROPPED_TABLE_FULL);
	else if (!submit_within_limit(s, &room, bytes))
		forget(task);
}

/* The state in which a task leaves, where the tracepoint does not tell it. */
static __always_inline __u32 state_of(const struct task_struct *task)
{
	const struct task_struct___5_13 *older = (const void *)task;

	if (bpf_core_field_exists(older->state))
		return BPF_CORE_READ(older, state);
	return BPF_CORE_READ(task, __state);
}

/*
 * include/trace/events/sched.h: bool preempt, struct task_struct *prev, struct
 * task_struct *next and, from 5.18 on, unsigned int prev_state. Runs with interrupts off.
 */
SEC("tp_btf/sched_switch")
int switch_threads(__u64 *ctx)
{
	struct task_struct *prev = (struct task_struct *)ctx[1];

	count(COUNTER_HITS); /* first: a program that is under way shows in the counters */
	follow(prev, (struct task_struct *)ctx[2]);
	leave(ctx, prev, ctx[0], switch_tells_state ? ctx[3] : state_of(prev));
	return 0;
}

/* Names for bpf2go: it sees only types that something refers to. */
const enum thread_state *type_thread_state __attribute__((unused));
const struct thread_return *type_thread_return __attribute__((unused));
