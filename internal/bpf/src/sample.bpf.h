/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What every kind of sample says: who, with which labels, where. */
#ifndef CUSTOM_LABELS_SAMPLE_H
#define CUSTOM_LABELS_SAMPLE_H

#include "identity.bpf.h"
#include "labels.bpf.h"
#include "regs.bpf.h"
#include "share.bpf.h"
#include "stack.bpf.h"
#include "threadpointer.bpf.h"

/*
 * When the reader has to be woken for a record of so many bytes, which comes next: each time the
 * watermark is crossed. Two CPUs can both miss the crossing, the less often the shorter this is asked
 * before; the reader's timer catches that.
 */
static __always_inline __u64 wakeup_flags(__u32 bytes)
{
	__u64 unread = bpf_ringbuf_query(&samples, BPF_RB_AVAIL_DATA);

	return unread < watermark_bytes && unread + ring_bytes(bytes) >= watermark_bytes ? BPF_RB_FORCE_WAKEUP
											 : BPF_RB_NO_WAKEUP;
}

/* What there was in the ring buffer when a sample began. */
struct room {
	__u64 unread;		  /* bytes */
	struct user_share *share; /* of the current user; NULL: there is no limit now */
};

/*
 * Passes on the record in scratch, header and body, on account of a user's share; counts it and tells whether there was
 * room.
 */
static __always_inline bool submit(struct scratch *s, const struct room *room, __u32 bytes)
{
	struct user_share *share = room->share;

	if (bytes > sizeof(s->header) + SAMPLE_BODY_BYTES)
		bytes = sizeof(s->header) + SAMPLE_BODY_BYTES;
	if (unlikely(share) && !share_has_room(share, bytes))
		return false;
	if (unlikely(bpf_ringbuf_output(&samples, &s->header, bytes, wakeup_flags(bytes)))) {
		count(COUNTER_DROPPED_RING_FULL);
		return false;
	}
	if (unlikely(share))
		share_take(share, bytes);
	count(COUNTER_SUBMITTED);
	return true;
}

/*
 * Finds the share of the current user, before anything is
 * read or walked. False, and counted: there is none, or not even room for a sample
 * without labels and stack.
 */
static __always_inline bool find_room(const struct task_struct *task, struct room *room)
{
	room->unread = bpf_ringbuf_query(&samples, BPF_RB_AVAIL_DATA);
	room->share = NULL;
	if (!user_limit_bytes || likely(room->unread < unshared_bytes))
		return true;
	room->share = share_of(current_uid(task));
	if (!room->share) {
		count(COUNTER_DROPPED_INTERNAL);
		return false;
	}
	return share_has_room(room->share, sizeof(struct sample_header));
}

/*
 * Whether a task is executing another program, and its registers are still those of the one before: exec raises
 * self_exec_id first (begin_new_exec), maps the file and its interpreter, and sets start_code only then
 * (load_elf_binary).
 */
static __always_inline bool is_executing(const struct task_struct *task, const struct user_regs *regs)
{
	const struct mm_struct *mm = FIELD(task, mm);

	return regs->called && (regs->call == CALL_EXECVE || regs->call == CALL_EXECVEAT) && mm &&
	       !FIELD(mm, start_code);
}

/* Copies what is known of the process that the record is of. */
static __always_inline void find_entry(struct scratch *s)
{
	const struct process_id *id = &s->header.process;
	struct process_entry *known = bpf_map_lookup_elem(&processes, id);

	if (likely(known)) {
		copy_element(&s->entry, known);
		if (likely(s->entry.seal == seal_of(&s->entry, id)))
			return;
	}
	__builtin_memset(&s->entry, 0, sizeof(s->entry));
	s->entry.by_sample = 1;
}

/*
 * Puts a sample of the current task into scratch; returns its bytes. user: the task
 * was interrupted in user space, and its registers are in scratch already; else they
 * are taken from where the kernel has saved them. In scratch and not on the stack,
 * which is nearly full on aarch64 where labels are read.
 */
static __always_inline __u32 take_sample(struct scratch *s, struct task_struct *task, __u64 time_ns, void *ctx,
					 bool user, bool compat)
{
	struct process_id *id = &s->header.process;
	bool has_user;
	__u32 at = 0;

	/* What is not set below. */
	__builtin_memset(&s->header.kernel_frames, 0,
			 offsetof(struct sample_header, thread) - offsetof(struct sample_header, kernel_frames));
	s->header.time_ns = time_ns;
	process_identity(task, id);
	s->header.thread = FIELD(task, pid);
	s->header.tid = number_in_namespace(task);
	s->header.pid = pid_ns_inum ? number_in_namespace(FIELD(task, group_leader)) : FIELD(task, tgid);
	s->header.uid = current_uid(task);
	s->header.cpu = bpf_get_smp_processor_id();
	current_comm(task, &s->header);

	has_user = has_user_space(task);
	s->header.kernel_thread = !!(FIELD(task, flags) & PF_KTHREAD);
	if (unlikely(!user) && has_user)
		user_regs_from_task(copied_regs(task, s), &s->user, &compat);
	if (has_user && is_probed(task))
		leave_probe(&s->user, user);

	if (likely(!s->header.kernel_thread))
		find_entry(s);
	if (unlikely(!has_user)) {
		/* It ends, or the kernel works with it; the process may not have been sampled before. */
		bool by_sample = !s->header.kernel_thread && s->entry.by_sample;

		__builtin_memset(&s->entry, 0, sizeof(s->entry));
		s->entry.by_sample = by_sample;
	}
	if (read_labels && unlikely(s->entry.labelled))
		at = read_label_sources(id, own_thread_pointer(task, id), GO_REGISTER(&s->user), compat);
	if (at > MAX_LABEL_BYTES)
		at = MAX_LABEL_BYTES;
	s->header.label_bytes = at;

	if (!read_stacks)
		return sizeof(s->header) + at;
	if (unlikely(!user)) {
		s->header.kernel_frames = kernel_stack(s, ctx, at);
		at += 8 * s->header.kernel_frames;
	}
	if (unlikely(has_user && compat)) {
		s->header.user_stack = OUTCOME_COMPAT;
	} else if (unlikely(!user) && has_user && is_executing(task, &s->user)) {
		s->header.user_stack = OUTCOME_PRESENT;
	} else if (has_user) {
		s->header.user_frames = walk_user_stack(s, s->header.cpu, task, &s->user, at);
		at += 8 * s->header.user_frames;
	}
	return sizeof(s->header) + at;
}

#endif
