/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What the BPF programs and Go share: limits, enums and the layout of every
 * record in the ring buffers and of every map value. Nothing else belongs here.
 * bpf2go makes the Go twins; layout_test.go compares both with the object's BTF.
 */
#ifndef CUSTOM_LABELS_RECORD_H
#define CUSTOM_LABELS_RECORD_H

/* Upper bounds. The knobs in maps.h can only lower them. */
#define MAX_LABEL_SOURCES 4	     /* per process */
#define MAX_LABELS 64		     /* live labels copied from one label set */
#define MAX_LABEL_SLOTS 512	     /* slots of one label set examined, holes included */
#define MAX_LABEL_KEY_BYTES 256	     /* of one key */
#define MAX_LABEL_VALUE_BYTES 1024   /* of one value */
#define MAX_CONTEXT_ATTRS_BYTES 2048 /* attrs-data of a thread context record */
#define MAX_LABEL_BYTES 8192	     /* the label section of one record */
#define MAX_NODEJS_BUCKETS 65536     /* of the hash table of an async context; a power of 2 */
#define MAX_NODEJS_CHAIN 64	     /* entries of one bucket examined */
#define MAX_KERNEL_FRAMES 128
#define MAX_USER_FRAMES 1024
#define COMM_BYTES 16 /* TASK_COMM_LEN */
#define EXEC_PATH_BYTES 256

/* Which format a label source publishes. */
enum label_abi {
	LABEL_ABI_NONE = 0,
	LABEL_ABI_V0 = 1,	      /* custom_labels_thread_local_data: {storage, count} */
	LABEL_ABI_V1 = 2,	      /* custom_labels_current_set: pointer to {storage, count, capacity} */
	LABEL_ABI_THREAD_CONTEXT = 3, /* otel_thread_ctx_v1: pointer to a record (OTEP 4947) */
	LABEL_ABI_NODEJS = 4,	      /* otel_thread_ctx_nodejs_v1: the way to a record through V8's heap */
	LABEL_ABI_GO = 5,	      /* pprof labels of the goroutine: a slice, or a map before Go 1.24 */
};

/* How the address of a thread-local variable is computed from the thread pointer. */
enum tls_kind {
	TLS_KIND_STATIC = 0,	/* tp + offset */
	TLS_KIND_DTV_GLIBC = 1, /* dtv[module] + offset, 16-byte entries, generation in dtv[0] */
	TLS_KIND_DTV_MUSL = 2,	/* dtv[module] + offset, 8-byte entries */
	TLS_KIND_REGISTER = 3,	/* no variable: the g register of Go on aarch64 */
};

/* The one list of results: of reading a label source, of walking a stack. */
enum outcome {
	OUTCOME_NONE = 0,	       /* the thread has no labels now; a stack that does not exist */
	OUTCOME_PRESENT = 1,	       /* labels were read; the stack ended where stacks end */
	OUTCOME_TRUNCATED = 2,	       /* read up to a bound; the record says what was cut */
	OUTCOME_FAULT = 3,	       /* an address could not be read */
	OUTCOME_UPDATING = 4,	       /* thread context record with valid == 0; a goroutine that begins or ends */
	OUTCOME_INVALID = 5,	       /* a field has a value the format forbids */
	OUTCOME_NOT_ALLOCATED = 6,     /* the thread never touched the module's TLS block */
	OUTCOME_STALE_MODULE = 7,      /* the thread's DTV is older than the module */
	OUTCOME_NO_THREAD_POINTER = 8, /* the saved thread pointer is 0: not known yet (aarch64) */
	OUTCOME_COMPAT = 9,	       /* 32-bit code in a 64-bit kernel: not supported */
	OUTCOME_MAX = 10,
};

/* Per-CPU counters; hits == the sum of all others in the sample group. */
enum counter {
	COUNTER_HITS = 0,	       /* runs of the sampling program */
	COUNTER_SUBMITTED = 1,	       /* records in the ring buffer */
	COUNTER_FILTERED_IDLE = 2,     /* the idle task was interrupted */
	COUNTER_DROPPED_RING_FULL = 3, /* no room in the ring buffer */
	COUNTER_DROPPED_INTERNAL = 4,  /* the task or the scratch buffer could not be had */
	/* not part of the sum */
	COUNTER_EVENTS_DROPPED = 5, /* lifecycle events that found no room */
	COUNTER_SOURCE_READS = 6,   /* label sources looked at: user memory is read for labels only then */
	COUNTER_MAX = 7,
};

/*
 * Identity of a process image: a reused PID or an exec is another process.
 * tgid as in the init PID namespace, start_ns the group leader's start_boottime,
 * exec_id the task's self_exec_id.
 */
struct process_id {
	__u32 tgid;
	__u32 pad;
	__u64 start_ns;
	__u64 exec_id;
};
_Static_assert(sizeof(struct process_id) == 24, "process_id");

/* Offsets in Go's runtime.g and runtime.m, which differ by release. */
struct go_layout {
	__u16 g_m;
	__u16 g_labels;
	__u16 m_procid;
	__u16 m_curg;
};
_Static_assert(sizeof(struct go_layout) == 8, "go_layout");

struct label_source {
	__s64 offset;	  /* from the thread pointer, or within the TLS block */
	__u64 module;	  /* DTV kinds: module id */
	__u64 generation; /* glibc: the DTV must have reached it; 0: no such requirement */
	__u8 abi;	  /* enum label_abi */
	__u8 kind;	  /* enum tls_kind */
	__u8 v8_field;	  /* Node.js: offset of the first internal field of an object */
	__u8 go_map;	  /* Go: the labels are a map */
	__u8 pad[2];
	__u16 v8_map_type;   /* Node.js: instance type of a JSMap */
	struct go_layout go; /* Go */
};
_Static_assert(sizeof(struct label_source) == 40, "label_source");

struct process_entry {
	__u32 num_sources;
	__u32 pad;
	struct label_source sources[MAX_LABEL_SOURCES];
};
_Static_assert(sizeof(struct process_entry) == 8 + 40 * MAX_LABEL_SOURCES, "process_entry");

/*
 * Head of a sample in the ring buffer. Behind it, in this order and without gaps:
 *   label_bytes     of label blocks
 *   kernel_frames   u64 each, leaf first
 *   user_frames     u64 each, leaf first; the first is an instruction, the others are return addresses
 */
struct sample_header {
	__u64 time_ns; /* CLOCK_MONOTONIC */
	struct process_id process;
	__u64 cgroup_id;
	__u32 pid; /* tgid as the collector's PID namespace sees it; 0: not visible there */
	__u32 tid; /* likewise */
	__u32 uid; /* in the init user namespace */
	__u32 cpu;
	__u16 kernel_frames;
	__u16 user_frames;
	__u16 label_bytes; /* a multiple of 8 */
	__u8 kernel_stack; /* enum outcome */
	__u8 user_stack;   /* enum outcome */
	__u8 known;	   /* labels could be read: the process has an entry, the task runs in user space */
	__u8 kernel_thread;
	__u8 pad[6];
	char comm[COMM_BYTES]; /* of the thread */
};
_Static_assert(sizeof(struct sample_header) == 88, "sample_header");

/* One for each label source that was read; the payload follows, padded to a multiple of 8. */
struct label_block {
	__u8 abi;      /* enum label_abi */
	__u8 outcome;  /* enum outcome */
	__u16 bytes;   /* of payload, without the padding */
	__u32 count;   /* v0, v1, Go: slots as published, saturated; thread context: attrs-data-size */
	__u32 skipped; /* v0, v1: labels whose value.buf is NULL */
	__u32 pad;
};
_Static_assert(sizeof(struct label_block) == 16, "label_block");

/* Payload of v0, v1 and Go: one for each live slot in order; key_bytes of key and value_bytes of value follow. */
struct raw_label {
	__u32 key_len;	   /* as published, saturated */
	__u32 value_len;   /* as published, saturated */
	__u16 key_bytes;   /* that follow */
	__u16 value_bytes; /* that follow */
};
_Static_assert(sizeof(struct raw_label) == 12, "raw_label");

/* Lifecycle of processes, in a ring buffer of its own: a flood of samples must not hide an exec. */
enum event_kind {
	EVENT_EXISTS = 0, /* from the scan at start */
	EVENT_EXEC = 1,
	EVENT_FORK = 2, /* a new process, not a new thread */
	EVENT_EXIT = 3, /* the last thread has gone */
};

struct process_event {
	__u64 time_ns; /* CLOCK_MONOTONIC */
	struct process_id process;
	struct process_id parent; /* EVENT_FORK: whose memory was copied */
	__u32 pid;		  /* as in sample_header */
	__u8 kind;		  /* enum event_kind */
	__u8 kernel_thread;
	__u16 path_bytes;	    /* EVENT_EXEC: of path, without NUL; 0: not read */
	char path[EXEC_PATH_BYTES]; /* EVENT_EXEC: as passed to execve, maybe cut */
};
_Static_assert(sizeof(struct process_event) == 64 + EXEC_PATH_BYTES, "process_event");

#endif
