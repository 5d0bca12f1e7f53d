/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What the BPF programs and Go share: limits, enums and the layout of every
 * record in the ring buffers and of every map value. Nothing else belongs here.
 * internal/record is the Go twin; layout_test.go compares both with the object's BTF.
 */
#ifndef CUSTOM_LABELS_RECORD_H
#define CUSTOM_LABELS_RECORD_H

#include "runtime.h"

/* Upper bounds. */
#define MAX_LABEL_SOURCES 4	     /* per process */
#define MAX_LABELS 64		     /* live labels copied from one label set */
#define MAX_LABEL_SLOTS 512	     /* slots of one label set examined, holes included */
#define MAX_LABEL_KEY_BYTES 256	     /* of one key */
#define MAX_LABEL_VALUE_BYTES 1024   /* of one value */
#define MAX_CONTEXT_ATTRS_BYTES 2048 /* attrs-data of a thread context record */
#define MAX_LABEL_BYTES 8192	     /* the label section of one record */
#define MAX_LABEL_END 8144	     /* where labels end in it: the blocks of all sources have room */
#define MAX_SLOT_END 8064	     /* and those of sets: ids of a thread context behind all of them have room */
#define MAX_NODEJS_BUCKETS 65536     /* of the hash table of an async context; a power of 2 */
#define MAX_NODEJS_CHAIN 64	     /* entries of one bucket examined */
#define MAX_KERNEL_FRAMES 128
#define MAX_USER_FRAMES 1024
#define MAX_UNWIND_TABLES 8192	 /* at the same time */
#define MAX_UNWIND_MAPPINGS 1024 /* with rows, of one process */
#define UNWIND_CHUNK_MAPPINGS 16 /* in one element of unwind_mappings */
#define UNWIND_BLOCK_BYTES 1024	 /* of text that share an index entry */
#define UNWIND_PAGE_BYTES 4096	 /* one element of an unwind table */
#define MAX_FILE_ROWS 4096	 /* files whose rows are found without a list of mappings */
#define MAX_FILE_TEXTS 4	 /* executable segments of such a file */
#define MAX_PROGRAMS 1024	 /* executables whose processes begin with label sources */
#define MAX_PLAIN_PROGRAMS 2048	 /* executables whose processes have none */
#define COMM_BYTES 16		 /* TASK_COMM_LEN */
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
	OUTCOME_NO_ROWS = 10,	       /* a stack that ends in code without unwind rows and frame pointers */
	OUTCOME_MAX = 11,
};

/* Per-CPU counters of each object; hits == the sum of all others in the sample group. */
enum counter {
	COUNTER_HITS = 0,	       /* runs of the sampling program; switches */
	COUNTER_SUBMITTED = 1,	       /* records in the ring buffer */
	COUNTER_FILTERED_IDLE = 2,     /* the idle task was interrupted, or leaves */
	COUNTER_DROPPED_RING_FULL = 3, /* no room in the ring buffer */
	COUNTER_DROPPED_INTERNAL = 4,  /* the task or the scratch buffer could not be had */
	/* not part of the sum */
	COUNTER_EVENTS_DROPPED = 5, /* lifecycle events that found no room */
	COUNTER_SOURCE_READS = 6,   /* label sources looked at: user memory is read for labels only then */
	/* of switches, part of the sum */
	COUNTER_FILTERED_KERNEL = 7,	 /* the task has no user space */
	COUNTER_FILTERED_OWN = 8,	 /* a thread of the collector */
	COUNTER_FILTERED_NOT_DRAWN = 9,	 /* by the threshold */
	COUNTER_DROPPED_TABLE_FULL = 10, /* too many threads are off the CPU */
	/* not part of the sum */
	COUNTER_RETURNS_LOST = 11, /* no room in the ring buffer */
	/* of samples and of switches, part of the sum */
	COUNTER_FILTERED_TARGET = 12,	 /* the process is not wanted */
	COUNTER_DROPPED_USER_SHARE = 13, /* the user has filled its share of the ring buffer */
	/* not part of the sum: samples of processes with a language runtime */
	COUNTER_RUNTIME_WHOLE = 14,	/* all its frames are in the stack */
	COUNTER_RUNTIME_CUT = 15,	/* some are not: too many, or not where the native stack leads */
	COUNTER_RUNTIME_NO_THREAD = 16, /* the runtime does not know the thread, or not for sure */
	COUNTER_RUNTIME_INVALID = 17,	/* what is in memory makes no sense, or could not be read */
	/* not part of the sum */
	COUNTER_CONTEXTS_REFUSED = 18, /* announcements of process contexts beyond what there may be */
	COUNTER_MAX = 19,
};

/* What a thread does, or why it leaves the CPU. */
enum thread_state {
	THREAD_RUNNING = 0,
	THREAD_RUNNABLE = 1,	    /* it could go on: preempted, or gave way */
	THREAD_SLEEPING = 2,	    /* waits, and can be interrupted by a signal */
	THREAD_UNINTERRUPTIBLE = 3, /* waits, mostly for storage or another part of the kernel */
	THREAD_STOPPED = 4,	    /* by a signal or a debugger */
	THREAD_OTHER = 5,
	THREAD_STATE_MAX = 6,
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

/* Unwind rows: how the canonical frame address (CFA) is computed. */
enum cfa_kind {
	CFA_NONE = 0,	  /* no information: by frame pointer */
	CFA_END = 1,	  /* the outermost frame */
	CFA_SP = 2,	  /* SP + cfa_offset */
	CFA_FP = 3,	  /* FP + cfa_offset */
	CFA_REG = 4,	  /* register arg (DWARF number) + cfa_offset, where registers are known */
	CFA_DEREF_SP = 5, /* *(SP + cfa_offset) + arg */
	CFA_DEREF_FP = 6, /* *(FP + cfa_offset) + arg */
	CFA_PLT = 7,	  /* x86-64: SP + cfa_offset + ((IP & 15) >= arg ? 8 : 0) */
	CFA_SIGNAL = 8,	  /* the frame that the kernel made for a signal, at SP */
	CFA_SWITCH = 9,	  /* code that came from another stack, to which FP leads; arg: or FP may have been cleared */
};

enum ra_kind {
	RA_OFFSET = 0,	 /* the return address is at CFA + ra_offset */
	RA_REGISTER = 1, /* in the link register, where registers are known */
	/*
	 * Or'ed to the others: it is the address of an instruction that was interrupted, at which a
	 * call was made to look as if it came from there. On aarch64 its x30 is at CFA - 16.
	 */
	RA_INTERRUPTED = 2,
};

enum fp_kind {
	FP_SAME = 0,	  /* the caller's frame pointer is in its register */
	FP_OFFSET = 1,	  /* at CFA + fp_offset */
	FP_UNDEFINED = 2, /* lost */
	FP_FRAME = 3,	  /* at FP + fp_offset: the stack pointer was aligned */
};

struct unwind_rule {
	__u8 cfa; /* enum cfa_kind */
	__u8 arg;
	__u8 ra; /* enum ra_kind */
	__u8 fp; /* enum fp_kind */
	__s32 cfa_offset;
	__s32 ra_offset;
	__s32 fp_offset;
};
_Static_assert(sizeof(struct unwind_rule) == 16, "unwind_rule");

/*
 * A table is an array of pages, which hold, each from a page's start:
 *   struct unwind_header, then struct unwind_rule by number; the header has the place of rule 0
 *   u32 index entries, one for each block and one more: the first row at or behind the block's start
 *   u32 rows in order: low half the offset in the block, high half the number of the rule
 */
struct unwind_header {
	__u64 id; /* of the table; its slot may get another one */
	__u32 index_page;
	__u32 rows_page;
};
_Static_assert(sizeof(struct unwind_header) == sizeof(struct unwind_rule), "the header has the place of rule 0");

/* Where a process maps code that has a table. */
struct unwind_mapping {
	__u64 start;
	__u64 limit;
	__u64 text; /* address of the table's first block */
	__u64 table_id;
	__u32 slot;   /* in unwind_tables */
	__u32 blocks; /* in the table */
};
_Static_assert(sizeof(struct unwind_mapping) == 40, "unwind_mapping");

struct unwind_chunk {
	__u64 list; /* whose it is: the memory of an element is used again at once */
	struct unwind_mapping mappings[UNWIND_CHUNK_MAPPINGS];
};

struct unwind_chunk_key {
	__u64 list;
	__u32 chunk;
	__u32 pad;
};

/*
 * What a file holds, as the kernel tells files apart; user space only compares and returns it.
 * All zero: the vDSO, which is no file.
 */
struct file_key {
	__u64 inode;
	__u64 size;
	__s64 changed_s; /* ctime */
	__u32 changed_ns;
	__u32 dev;
};
_Static_assert(sizeof(struct file_key) == 32, "file_key");

/* Pages of a file that are mapped as one, executable. */
struct file_text {
	__u32 first_page;
	__u32 limit_page;
	__s64 text; /* where the table's first block is, from where the file's first byte would be */
};

/* The rows of a file, by file_key: only for the very file that the table was made from. */
struct known_rows {
	__u64 table_id;
	__u32 slot;
	__u32 blocks;
	struct file_text texts[MAX_FILE_TEXTS]; /* an unused one has no pages */
	__u64 seal;				/* see seal() */
};
_Static_assert(sizeof(struct known_rows) == 24 + 16 * MAX_FILE_TEXTS, "known_rows");

/* A question of user space: which file does the caller map at an address, or whose file system has it open? */
struct named_file {
	__u64 addr; /* 0: it asks for the descriptor */
	__u32 fd;
	__u32 pad;
	struct file_key key;
};

/* What is known of a process. A forked child begins with what its parent has. */
struct process_entry {
	__u8 labelled;	  /* it has an element in label_sources */
	__u8 filtered;	  /* no sample of it is wanted */
	__u8 by_sample;	  /* user space has not looked at it yet, and is told of its first sample */
	__u8 runtime;	  /* enum runtime_kind: it has an element in runtimes */
	__u32 mappings;	  /* with rows, in unwind_mappings, in address order */
	__u64 list;	  /* whose they are: a forked child shares its parent's; 0: they are not known */
	__u64 exec_pages; /* mapped executable when the list was made; it holds as long as there are as many */
	__u64 seal;	  /* see seal() */
};
_Static_assert(sizeof(struct process_entry) == 32, "process_entry");

/* The label sources of a process, or those that a program's processes begin with. */
struct label_sources {
	__u8 count;
	__u8 presumed;	/* they are those that others had of the same program, and not confirmed */
	__u8 by_sample; /* of a program: it is early enough to look at its processes when they are sampled */
	__u8 pad[5];
	__u64 seal; /* of these and the sources that there are, see sources_seal() */
	struct label_source source[MAX_LABEL_SOURCES];
};
_Static_assert(sizeof(struct label_sources) == 16 + 40 * MAX_LABEL_SOURCES, "label_sources");

/*
 * Head of a sample in the ring buffer. Behind it, in this order and without gaps:
 *   label_bytes     of label blocks
 *   kernel_frames   u64 each, leaf first
 *   user_frames     u64 each, leaf first; the first is an instruction, the others are return addresses;
 *                   for a frame that a signal interrupted and for the signal's, the address plus one;
 *                   for a frame of a language runtime two words, see RUNTIME_FRAME of runtime.h
 */
struct sample_header {
	__u64 time_ns; /* CLOCK_MONOTONIC */
	struct process_id process;
	__u32 pid; /* tgid as the collector's PID namespace sees it; 0: not visible there */
	__u32 tid; /* likewise */
	__u32 uid; /* in the init user namespace */
	__u32 cpu;
	__u16 kernel_frames;
	__u16 user_frames;
	__u16 label_bytes; /* a multiple of 8 */
	__u8 kernel_stack; /* enum outcome */
	__u8 user_stack;   /* enum outcome */
	__u8 kernel_thread;
	__u8 thread_state; /* enum thread_state */
	__u8 presumed;	   /* the labels come from sources that are not confirmed */
	__u8 pad;
	__u32 thread;	       /* tid in the init PID namespace */
	char comm[COMM_BYTES]; /* of the thread */
};
_Static_assert(sizeof(struct sample_header) == 80, "sample_header");

/* A thread, as the BPF programs tell it from others. */
struct thread_id {
	__u32 thread; /* tid in the init PID namespace */
	__u32 pad;
	__u64 start_ns; /* start_boottime */
};
_Static_assert(sizeof(struct thread_id) == 16, "thread_id");

/*
 * In the ring buffer of switches, behind the sample that was taken of the thread when
 * it left, and told from it by its size.
 */
struct thread_return {
	__u64 left_ns; /* time_ns of that sample */
	__u64 time_ns; /* CLOCK_MONOTONIC */
	__u32 thread;
	__u32 pad;
};
_Static_assert(sizeof(struct thread_return) == 24, "thread_return");

/*
 * What a user has in a ring buffer that was not read yet, by positions as the kernel
 * counts them: they only grow.
 */
struct user_share {
	__u64 end;     /* where the older records end */
	__u64 older;   /* bytes of records before */
	__u64 newer;   /* and behind */
	__u64 dropped; /* samples for which there was no room in the share */
};
_Static_assert(sizeof(struct user_share) == 32, "user_share");

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
_Static_assert(MAX_LABEL_END + (MAX_LABEL_SOURCES - 1) * sizeof(struct label_block) == MAX_LABEL_BYTES,
	       "blocks have room");

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
	EVENT_CONTEXT_NAMED =
		4,	   /* it publishes a process context, or has changed it; not more than the kernel allows */
	EVENT_SAMPLED = 5, /* it is sampled, and user space has not looked at it yet; once */
};

struct process_event {
	__u64 time_ns; /* CLOCK_MONOTONIC */
	struct process_id process;
	struct process_id parent; /* EVENT_FORK: whose memory was copied */
	__u64 start_stack;	  /* EVENT_EXEC: of its memory, as in /proc/PID/stat */
	__u32 pid;		  /* as in sample_header */
	__u8 kind;		  /* enum event_kind */
	__u8 kernel_thread;
	__u16 path_bytes;	 /* EVENT_EXEC: of path, without NUL; 0: not read */
	struct file_key program; /* EVENT_EXEC */
	char path[];		 /* EVENT_EXEC: EXEC_PATH_BYTES, as passed to execve, maybe cut */
};
_Static_assert(sizeof(struct process_event) == 104, "process_event");

#endif
