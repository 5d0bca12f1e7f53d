/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Which processes are sampled. User space decides; here a flag is looked up. */
#ifndef CUSTOM_LABELS_TARGETS_H
#define CUSTOM_LABELS_TARGETS_H

#include "identity.bpf.h"
#include "seal.bpf.h"

/*
 * Whether no sample of a task is wanted. Not inlined: the key would stay on the stack of the whole sample.
 */
static __noinline bool is_filtered(const struct task_struct *task)
{
	struct process_entry *known, entry;
	struct process_id id;

	process_identity(task, &id);
	known = bpf_map_lookup_elem(&processes, &id);
	if (!known)
		return false;
	copy_element(&entry, known);
	return entry.filtered && entry.seal == seal_of(&entry, &id);
}

/* The same, by one lookup, and none unless targets are selected. */
static __always_inline bool filtered_target(const struct task_struct *task)
{
	return select_targets && is_filtered(task);
}

#endif
