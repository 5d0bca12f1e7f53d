// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* Samples the CPU: who runs, with which labels, where. Follows the life of processes. */
#include "event.bpf.h"
#include "sample.bpf.h"
#include "targets.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Processes whose first sample has been told, see EVENT_SAMPLED. */
#define MAX_SAMPLED 1024

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, MAX_SAMPLED);
	__type(key, struct process_id);
	__type(value, __u8);
} sampled SEC(".maps");

/* Has user space look at a process that it has not looked at, now that it has samples. */
static __noinline void tell_sampled(const struct task_struct *task)
{
	struct process_event *ev;
	struct process_id id;
	__u8 yes = 1;

	if (!task)
		return;
	process_identity(task, &id);
	/* To look first is cheaper: an update takes a free element before it looks. */
	if (bpf_map_lookup_elem(&sampled, &id) || bpf_map_update_elem(&sampled, &id, &yes, BPF_NOEXIST) == -EEXIST)
		return; /* it has been told */
	ev = bpf_ringbuf_reserve(&events, sizeof(*ev), 0);
	if (!ev) {
		bpf_map_delete_elem(&sampled, &id); /* with the next sample */
		return;
	}
	fill_event(ev, task, EVENT_SAMPLED);
	submit_event(ev, FIELD(task, flags) & PF_EXITING);
}

SEC("perf_event")
int sample_cpu(struct perf_context *ctx)
{
	struct task_struct *task = current_task();
	/* First, since the clock waits for all reads before: what follows can wait for several at once. */
	__u64 time_ns = bpf_ktime_get_ns();
	bool user = context_is_user(ctx), compat = false;
	struct scratch *s;
	struct room room;

	count(COUNTER_HITS);
	if (!FIELD(task, pid)) {
		count(COUNTER_FILTERED_IDLE);
		return 0;
	}
	if (filtered_target(task)) {
		count(COUNTER_FILTERED_TARGET);
		return 0;
	}
	if (!find_room(task, &room))
		return 0;
	s = this_scratch();
	if (unlikely(!s)) {
		count(COUNTER_DROPPED_INTERNAL);
		return 0;
	}
	read_ahead(s);
	if (likely(user))
		user_regs_from_context(ctx, &s->user, &compat);
	if (submit(s, &room, take_sample(s, task, time_ns, ctx, user, compat)) && unlikely(s->entry.by_sample))
		tell_sampled(task);
	return 0;
}

/* Has a process begin with the sources of another key, which begins their seal. False: it has none. */
static __always_inline bool begin_with(const struct label_sources *sources, __u64 key, const struct process_id *id)
{
	struct label_sources copy;

	copy_element(&copy, sources);
	if (copy.seal != sources_seal(key, &copy))
		return false;
	copy.seal = sources_seal(seal(0, id, sizeof(*id)), &copy);
	return !bpf_map_update_elem(&label_sources, id, &copy, BPF_NOEXIST);
}

/* The same for a language runtime: that of a child is where its parent's is. */
static __always_inline bool inherit_runtime(const struct process_id *parent, const struct process_id *child)
{
	struct runtime_process *runtime = bpf_map_lookup_elem(&runtimes, parent), copy;

	if (!runtime)
		return false;
	copy_element(&copy, runtime);
	if (copy.seal != runtime_seal(seal(0, parent, sizeof(*parent)), &copy))
		return false;
	copy.seal = runtime_seal(seal(0, child, sizeof(*child)), &copy);
	return !bpf_map_update_elem(&runtimes, child, &copy, BPF_NOEXIST);
}

/* Sets the entry of a process that begins. What it says that there is goes with it where there is no room. */
static __always_inline void begin(const struct process_id *id, struct process_entry *entry)
{
	struct process_entry *known;

	entry->by_sample = 1;
	entry->seal = seal_of(entry, id);
	if (!bpf_map_update_elem(&processes, id, entry, BPF_NOEXIST))
		return;
	/* Or user space has set one meanwhile, and what belongs to it. */
	known = bpf_map_lookup_elem(&processes, id);
	if (entry->labelled && !(known && known->labelled))
		bpf_map_delete_elem(&label_sources, id);
	if (entry->runtime && !(known && known->runtime))
		bpf_map_delete_elem(&runtimes, id);
}

/* Forgets a process that has ended, or has another program. */
static __always_inline void end(const struct process_id *id, const struct process_entry *known)
{
	bool labelled = known->labelled, runtime = known->runtime;

	bpf_map_delete_elem(&processes, id);
	if (labelled)
		bpf_map_delete_elem(&label_sources, id);
	if (runtime)
		bpf_map_delete_elem(&runtimes, id);
}

/* Has a child begin with what is known of its parent. */
static __always_inline void inherit(const struct process_entry *known, const struct process_id *parent,
				    const struct process_id *child)
{
	struct label_sources *sources;
	struct process_entry entry;

	copy_element(&entry, known);
	if (entry.seal != seal_of(&entry, parent))
		return;
	if (entry.labelled) {
		sources = bpf_map_lookup_elem(&label_sources, parent);
		entry.labelled = sources && begin_with(sources, seal(0, parent, sizeof(*parent)), child);
	}
	if (entry.runtime && !inherit_runtime(parent, child))
		entry.runtime = RUNTIME_NONE;
	if (judge_forked)
		entry.filtered = 0;
	begin(child, &entry);
}

/* A child starts with a copy of its parent's memory, labels and mappings included: what is known of one holds for the
 * other. */
static __always_inline int forked(const __u64 *ctx)
{
	struct task_struct *parent = (struct task_struct *)ctx[0];
	struct task_struct *child = (struct task_struct *)ctx[1];
	struct process_id parent_id, child_id;
	struct process_entry *known;
	struct process_event *ev;
	bool labelled;

	if (child->pid != child->tgid)
		return 0;
	process_identity(parent, &parent_id);
	process_identity(child, &child_id);
	known = bpf_map_lookup_elem(&processes, &parent_id);
	/* What the child inherits is what its parent has said of itself by now. */
	labelled = known && known->labelled;
	/* Who shares its parent's memory executes something at once: it costs more to set its entry, which the exec
	 * takes back, than to walk its stack without, if it is sampled at all. */
	if (known && (child->mm != parent->mm || labelled || known->runtime || known->filtered || !has_mapping_tree()))
		inherit(known, &parent_id, &child_id);
	ev = reserve_event(0);
	if (!ev)
		return 0;
	fill_event(ev, child, EVENT_FORK);
	ev->parent = parent_id;
	submit_event(ev, !labelled);
	return 0;
}

static __always_inline int executed_program(const __u64 *ctx)
{
	struct task_struct *task = (struct task_struct *)ctx[0];
	struct linux_binprm *bprm = (struct linux_binprm *)ctx[2];
	struct process_entry *known, entry = { .labelled = 1 };
	bool looked_at = false, plain = false;
	struct label_sources *sources;
	struct process_id id, before;
	struct process_event *ev;
	struct file_key program;
	long n;

	process_identity(task, &id);
	before = id;
	before.exec_id--; /* begin_new_exec() adds one */
	known = bpf_map_lookup_elem(&processes, &before);
	if (known) {
		/* What user space goes on to read of what was there before would be the new program's. */
		looked_at = !known->by_sample;
		end(&before, known);
	}
	note_exec(task, &id);
	fill_file_key(&program, BPF_CORE_READ(bprm, file, f_inode));
	sources = bpf_map_lookup_elem(&programs, &program);
	if (sources) {
		plain = sources->by_sample;
		if (sources->count && begin_with(sources, seal(0, &program, sizeof(program)), &id))
			begin(&id, &entry);
	}
	ev = reserve_event(EXEC_PATH_BYTES);
	bpf_map_delete_elem(&sampled, &id); /* a sample before this event was told too early */
	if (!ev)
		return 0;
	fill_event(ev, task, EVENT_EXEC);
	ev->program = program;
	ev->start_stack = FIELD(task, mm, start_stack);
	n = bpf_probe_read_kernel_str(ev->path, EXEC_PATH_BYTES, bprm->interp); /* of a script, what runs it */
	if (n > 0)
		ev->path_bytes = n - 1;
	submit_event(ev, plain && !looked_at);
	return 0;
}

static __always_inline int exited(const __u64 *ctx)
{
	struct task_struct *task = (struct task_struct *)ctx[0];
	struct process_id id, before;
	struct process_entry *known;
	struct process_event *ev;

	/* do_exit() counts down before this point; two last threads may both see 0, which does no harm. */
	if (task->signal->live.counter)
		return 0;
	process_identity(task, &id);
	before = id;
	before.exec_id--;
	known = bpf_map_lookup_elem(&processes, &id);
	if (known) {
		end(&id, known);
	} else {
		/* An exec that fails behind begin_new_exec() ends the process, and nothing tells of it. */
		known = bpf_map_lookup_elem(&processes, &before);
		if (known)
			end(&before, known);
	}
	ev = reserve_event(0);
	if (!ev)
		return 0;
	fill_event(ev, task, EVENT_EXIT);
	submit_event(ev, true);
	return 0;
}

SEC("tp_btf/sched_process_fork")
int process_fork(__u64 *ctx)
{
	return forked(ctx);
}

SEC("tp_btf/sched_process_exec")
int process_exec(__u64 *ctx)
{
	return executed_program(ctx);
}

SEC("tp_btf/sched_process_exit")
int process_exit(__u64 *ctx)
{
	return exited(ctx);
}

#ifndef OLDER_KERNELS
/*
 * The same with preemption off. From Linux 7.0 on the programs of tracepoints can be preempted, and what is behind a
 * record that is being written cannot be read until its task runs again.
 */
SEC("tp_btf/sched_process_fork")
int process_fork_atomic(__u64 *ctx)
{
	bpf_preempt_disable();
	forked(ctx);
	bpf_preempt_enable();
	return 0;
}

SEC("tp_btf/sched_process_exec")
int process_exec_atomic(__u64 *ctx)
{
	bpf_preempt_disable();
	executed_program(ctx);
	bpf_preempt_enable();
	return 0;
}

SEC("tp_btf/sched_process_exit")
int process_exit_atomic(__u64 *ctx)
{
	bpf_preempt_disable();
	exited(ctx);
	bpf_preempt_enable();
	return 0;
}
#endif

/* The scan at start: one event for each process that the reader's PID namespace sees. */
SEC("iter/task")
int scan_processes(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task; /* loaded once: the verifier tracks this copy only */
	struct process_event ev;

	if (!task || task->pid != task->tgid)
		return 0;
	fill_event(&ev, task, EVENT_EXISTS);
	bpf_seq_write(ctx->meta->seq, &ev, sizeof(ev));
	return 0;
}

#ifndef OLDER_KERNELS

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct named_file);
} named SEC(".maps");

/* Whether a file system that the caller has a file open of was mounted by the host, and not in a user namespace. */
static __always_inline bool mounted_by_host(__u32 fd)
{
	struct file **files = BPF_CORE_READ(current_task(), files, fdt, fd), *file = NULL;

	if (bpf_core_read(&file, sizeof(file), &files[fd]) || !file)
		return false;
	return !BPF_CORE_READ(file, f_inode, i_sb, s_user_ns, level);
}

/*
 * Run by user space for itself: names the file that it maps at named.addr as the kernel has
 * it at samples. What stat(2) says of a file of overlayfs or btrfs is something else.
 */
SEC("syscall")
int name_file(void *ctx)
{
	struct vma_walk v = {};
	struct named_file *n;
	__u32 zero = 0;

	n = bpf_map_lookup_elem(&named, &zero);
	if (!n)
		return false;
	if (!n->addr)
		return mounted_by_host(n->fd);
	if (find_vma(&v, n->addr) != VMA_FILE)
		return false;
	n->key = v.key;
	return true;
}

#endif

/* Names for bpf2go: it sees only types that something refers to. */
const enum outcome *type_outcome __attribute__((unused));
const enum label_abi *type_label_abi __attribute__((unused));
const enum tls_kind *type_tls_kind __attribute__((unused));
const enum counter *type_counter __attribute__((unused));
const enum event_kind *type_event_kind __attribute__((unused));
const struct process_event *type_process_event __attribute__((unused));
const struct label_block *type_label_block __attribute__((unused));
const struct raw_label *type_raw_label __attribute__((unused));
const struct sample_header *type_sample_header __attribute__((unused));
const enum cfa_kind *type_cfa_kind __attribute__((unused));
const enum ra_kind *type_ra_kind __attribute__((unused));
const enum fp_kind *type_fp_kind __attribute__((unused));
const struct unwind_rule *type_unwind_rule __attribute__((unused));
const struct unwind_header *type_unwind_header __attribute__((unused));
const enum runtime_kind *type_runtime_kind __attribute__((unused));
const struct user_share *type_user_share __attribute__((unused));
