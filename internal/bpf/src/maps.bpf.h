/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Maps and knobs shared by the programs. Sizes marked as set by Go are placeholders. */
#ifndef CUSTOM_LABELS_MAPS_H
#define CUSTOM_LABELS_MAPS_H

#include "scratch.bpf.h"

/* Knobs, fixed when the programs are loaded. */
const volatile __u32 read_labels = 1;
const volatile __u32 read_stacks = 1;
const volatile __u32 max_kernel_frames = MAX_KERNEL_FRAMES;
const volatile __u64 watermark_bytes = 1 << 20;	       /* of unread samples that wake the reader */
const volatile __u64 events_watermark_bytes = 1 << 16; /* of unread events that can wait */
const volatile __u32 use_rows = 1;		       /* 0: frame pointers only */
const volatile __u32 select_targets;		       /* some processes may be filtered */
const volatile __u32 judge_forked;		       /* whether one is, it does not inherit */
const volatile __u32 page_bytes = 4096;
/* Inode of the PID namespace whose numbers are reported; 0: the init namespace. */
const volatile __u32 pid_ns_inum;

struct counters {
	__u64 value[COUNTER_MAX];
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 23); /* set by Go */
} samples SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 18); /* set by Go */
} events SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, GROWING_MAP);
	__uint(max_entries, 1 << 15); /* set by Go */
	__type(key, struct process_id);
	__type(value, struct process_entry);
} processes SEC(".maps");

/* Of the processes that have some. Who has an element here or in runtimes has one in processes, which says so. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, GROWING_MAP);
	__uint(max_entries, 1 << 15); /* set by Go */
	__type(key, struct process_id);
	__type(value, struct label_sources);
} label_sources SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, GROWING_MAP);
	__uint(max_entries, 1 << 16); /* set by Go */
	__type(key, struct unwind_chunk_key);
	__type(value, struct unwind_chunk);
} unwind_mappings SEC(".maps");

/* Tables have as many pages as they need; the one here only says of what kind they are. */
struct unwind_table {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_INNER_MAP);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, UNWIND_PAGE_BYTES);
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, MAX_UNWIND_TABLES);
	__type(key, __u32);
	__array(values, struct unwind_table);
} unwind_tables SEC(".maps");

/* Rows by the file that has them. User space alone says so, and takes it back with the table. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, GROWING_MAP);
	__uint(max_entries, MAX_FILE_ROWS);
	__type(key, struct file_key);
	__type(value, struct known_rows);
} file_rows SEC(".maps");

/* What is known of programs: their next processes begin with it. Without sources, that they have no labels. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, GROWING_MAP);
	__uint(max_entries, MAX_PROGRAMS + MAX_PLAIN_PROGRAMS);
	__type(key, struct file_key);
	__type(value, struct label_sources);
} programs SEC(".maps");

/* The language runtimes of processes. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, GROWING_MAP);
	__uint(max_entries, MAX_RUNTIMES);
	__type(key, struct process_id);
	__type(value, struct runtime_process);
} runtimes SEC(".maps");

/*
 * Indexed by CPU: a per-CPU map takes values up to 32 KiB only (PCPU_MIN_UNIT_SIZE). Values of a map that can be mapped
 * to memory, which nobody does, begin with a page.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* set by Go */
	__type(key, __u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct counters);
} counts SEC(".maps");

/*
 * Only one program of an object may use it, of a type that does not nest on a CPU.
 * The programs of switches are an object of their own for that reason.
 */
static __always_inline struct scratch *this_scratch(void)
{
	__u32 cpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&scratches, &cpu);
}

static __always_inline void count(enum counter c)
{
	__u32 zero = 0;
	struct counters *cs = bpf_map_lookup_elem(&counts, &zero);

	if (cs)
		cs->value[c]++;
}

#endif
