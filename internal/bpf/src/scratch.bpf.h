/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What a sample is put together in, and the state of the walks that do it. */
#ifndef CUSTOM_LABELS_SCRATCH_H
#define CUSTOM_LABELS_SCRATCH_H

#include "arch.bpf.h"
#include "record.h"

/*
 * Where a record is put together before it is copied to the ring buffer. The
 * sections have room for one maximal write behind their bound, so that an
 * offset checked against the bound can take any one item.
 */
#define LABEL_ITEM_MAX (sizeof(struct raw_label) + MAX_LABEL_KEY_BYTES + MAX_LABEL_VALUE_BYTES)
#define SAMPLE_BODY_BYTES (MAX_LABEL_BYTES + 8 * (MAX_KERNEL_FRAMES + MAX_USER_FRAMES))
#define SAMPLE_BODY_SLACK (16 * MAX_PYTHON_FRAMES)

_Static_assert(LABEL_ITEM_MAX <= SAMPLE_BODY_SLACK, "a label fits into the slack");
_Static_assert(8 * MAX_KERNEL_FRAMES <= SAMPLE_BODY_SLACK, "a kernel stack fits into the slack");
_Static_assert(16 * MAX_PYTHON_FRAMES <= SAMPLE_BODY_SLACK, "the frames of a Python thread fit into the slack");
_Static_assert(MAX_LABEL_BYTES < 1 << 16, "label_bytes is 16 bits wide");
#ifdef OLDER_KERNELS
_Static_assert(MAX_USER_FRAMES <= MAX_LOOPS && MAX_LABEL_SLOTS <= MAX_LOOPS, "loops are long enough");
#endif

/*
 * One slot of a custom label set: struct custom_labels_label_t (ABI v0 and v1).
 * Go's strings are the other way round: {buf, len}.
 */
struct label_slot {
	__u64 key_len;
	__u64 key_buf;
	__u64 value_len;
	__u64 value_buf;
};

/* Pieces of the target's memory that label sets are read from, see labelmemory.bpf.h. */
enum label_windows {
	KEY_WINDOW,
	VALUE_WINDOW,
	STRING_WINDOWS,
	SET_WINDOW = STRING_WINDOWS, /* a set or its slots, and what follows */
	LABEL_WINDOWS,
};

struct label_window {
	__u64 start; /* address */
	__u64 bytes; /* 0: nothing was read */
};

#define STRING_WINDOW_BYTES 512 /* that are read at once where a string is asked for */
#define SET_WINDOW_BYTES 1024	/* where a set is */

struct label_memory {
	struct label_window window[LABEL_WINDOWS];
	__u64 words[2]; /* of read_two() */
	__u8 strings[STRING_WINDOWS][STRING_WINDOW_BYTES];
	struct label_slot slots[MAX_LABEL_SLOTS]; /* of SET_WINDOW, or collected */
	__u8 slack[MAX_LABEL_VALUE_BYTES];	  /* never filled: what is copied in whole words may reach into it */
};
#define LABEL_MEMORY_BYTES                                                                                             \
	(sizeof(((struct label_memory *)0)->strings) + sizeof(((struct label_memory *)0)->slots)) /* of windows */
_Static_assert(offsetof(struct label_memory, slots) ==
		       offsetof(struct label_memory, strings) + sizeof(((struct label_memory *)0)->strings),
	       "windows lie together");

/* Bucket of a map[string]string before Go 1.24: runtime/map.go, type bmap. */
#define GO_BUCKET_SLOTS 8
struct go_string {
	__u64 buf;
	__u64 len;
};
struct go_bucket {
	__u8 tophash[GO_BUCKET_SLOTS];
	struct go_string keys[GO_BUCKET_SLOTS];
	struct go_string values[GO_BUCKET_SLOTS];
	__u64 overflow;
};
_Static_assert(sizeof(struct go_bucket) == 272, "go_bucket");

/*
 * State of the walk over the buckets of a map. On the stack, where the verifier knows
 * the values, it would follow each number of slots for itself.
 */
struct go_map_walk {
	__u64 bucket; /* the next one; 0: of the tables */
	__u64 buckets;
	__u64 old_buckets;
	__u64 count; /* of labels, as the map says */
	__u32 next;  /* in the tables, the old one behind the new one */
	__u32 num;
	__u32 num_old;
	__u32 slots; /* filled */
	__u32 outcome;
	__u32 pad;
};

/* State of one pass over the slots of a label set. */
struct slot_pass {
	__u32 at;      /* offset into scratch.body */
	__u32 live;    /* labels copied */
	__u32 skipped; /* labels with value.buf == NULL */
	__u32 go;      /* Go's strings */
	__u32 first;   /* offset of the first slot in label_memory.slots, in bytes */
	enum outcome outcome;
};

/* State of the walk along the entries of one bucket of V8's. */
struct v8_chain {
	__u64 entries; /* address of the first entry of the table */
	__u64 capacity;
	__u64 key;
	__u64 next; /* a small integer */
	__u64 value;
	enum outcome outcome;
};

/* Both architectures store {caller's frame pointer, return address} at the frame pointer. */
struct frame_link {
	__u64 fp;
	__u64 return_address;
};

/* Where the scratch buffer of a stack walk is. */
struct walk_context {
	__u32 scratch; /* index */
};

#define STACK_WINDOW_BYTES 1024 /* of a stack that are read at once */
#define PYTHON_WINDOW_BYTES 512 /* of Python's frames */
#define PYTHON_STRING_BYTES 128 /* of a string of Python's */
#define RECENT_MAPPINGS 4	/* of a process that are kept on a CPU, a power of 2 */
#define KNOWN_RULES_BITS 9	/* log2 of the rules that are kept on a CPU */
#define EXPECTED_RULES 16	/* of the last stack, its outermost: this one may be alike; a power of 2 */

/* What find_rule() has found. It stays true: a table does not change, and no other one gets its number. */
struct known_rule {
	__u64 table_id; /* 0: nothing */
	__u64 offset;	/* in the table's text */
	struct unwind_rule rule;
};

#define MAPLE_PIVOTS 15

/* A mapping of the current process, as the kernel has it. */
struct vma_walk {
	__u64 start;
	__u64 limit;
	__u64 page; /* of the file, at start */
	struct file_key key;
	__u64 pivots[MAPLE_PIVOTS];
};

#define CACHE_LINE __attribute__((aligned(64)))

/*
 * State of the walk up a user stack. In the scratch buffer for the same reason. What each frame uses is in one cache
 * line, what it seldom uses behind the window.
 */
struct stack_walk {
	__u64 ip CACHE_LINE;
	__u64 sp;
	__u64 fp;
	__u64 window_start;
	__u64 window_bytes; /* a multiple of 8; 0: none */
	__u32 at;	    /* offset into scratch.body of the next frame */
	__u32 frames;
	__u8 sp_known;
	__u8 exact;	 /* ip is that of an instruction, not a return address */
	__u8 regs_known; /* all of them can be had, not only ip, sp and fp */
	__u8 fp_known;
	__u8 guessed;  /* rows may be missing: code without them may use the frame pointer for anything */
	__u8 by_vma;   /* there is no list that holds: files are looked up in the kernel's tree */
	__u8 runtime;  /* enum runtime_kind of the process */
	__u8 bare;     /* the frame whose caller is looked for has no row */
	__u16 doubted; /* the last frames that count only if a caller is found, up to that at doubted_sp */
	__u8 regs_copied;
	__u8 by_guess; /* some frame may have been found by a register that was no frame pointer */
	__u32 below;   /* bytes below an address that are wanted in the window, too */

	struct unwind_mapping mapping; /* the last one used */
	__u64 list;		       /* of mappings */
	__u64 recent_list;	       /* 0: those in recent are of this stack only */
	__u32 recent_next;	       /* the one that gives way */
	__u32 mappings;

	/* Those used before, of this list. They stay true: a list is replaced by one with another number. */
	struct unwind_mapping recent[RECENT_MAPPINGS];
	__u64 lr;
	__u64 frame_sp;	  /* the stack pointer of the frame whose caller is looked for */
	__u64 bare_start; /* the range without rows that was looked up last: a mapping, or what lies between two of the
			     list */
	__u64 bare_limit;

	__u64 window[STACK_WINDOW_BYTES / 8]; /* a piece of the stack */
	__u64 marker; /* an address on the stack: the native frame around it runs the runtime's next frames; 0: none */
	__u64 doubted_sp;     /* the stack pointer of the last frame that is doubted */
	__u64 return_address; /* of a function that returns to a trampoline of the kernel's */
	struct vma_walk vma;
	struct known_rows rows; /* a copy, of the file in vma */
};
_Static_assert(offsetof(struct stack_walk, mapping) == 64, "what each frame uses is in one cache line");
_Static_assert(offsetof(struct stack_walk, window) % 64 == 0, "the window is in no more cache lines than it must be");

/* Where the frames end that one native evaluation runs. */
struct python_evaluation {
	__u64 marker; /* an address in its native frame */
	__u32 end;    /* the number of its outermost frame, plus one */
	__u32 pad;
};

/* From the current thread of a CPython to the frames that it runs. */
struct python_walk {
	struct python_process of;
	__u64 interpreter;
	__u64 thread;
	__u64 found; /* the innermost frame of the thread's state, of those with frames the first */
	__u64 found_cframe;
	__u64 second; /* the same of another one with frames: it is in two interpreters */
	__u64 second_cframe;
	__u64 cframe;
	__u64 frame;
	__u64 last_code; /* whose cookie is the last one */
	__u64 last_cookie;
	__u64 last_units;
	__u64 last_shim; /* it belongs to no function */
	__u32 tid;	 /* as the thread itself sees it */
	__u32 result;	 /* enum counter, 0: go on */
	__u32 count;	 /* of frames */
	__u32 put;	 /* of these, into the record */
	__u32 from;	 /* the next of these */
	__u32 evaluations;
	__u32 next;  /* of evaluations: the innermost that was not emitted */
	__u32 end;   /* of evaluations, where the other state's begin */
	__u32 first; /* evaluations of the state that was collected first, if those of the second are emitted first */
	__u32 overflow;				/* frames were left out */
	__u32 known;				/* CPython has the thread */
	__u64 window_start;			/* of the piece of memory in window */
	__u64 window_bytes;			/* 0: none */
	__u64 frame_at;				/* offset of the frame at hand in window */
	__u8 window[PYTHON_WINDOW_BYTES + 128]; /* room for any offset in a frame */
	__u8 thread_bytes[PYTHON_THREAD_BYTES + 8];
	__u8 code_bytes[PYTHON_CODE_BYTES + 8];
	__u64 string_start; /* of the piece of memory in string */
	__u64 string_bytes;
	__u8 string[PYTHON_STRING_BYTES + PYTHON_NAME_BYTES]; /* and a piece that is not in it */
	struct python_evaluation evaluation[MAX_PYTHON_EVALUATIONS];
	__u64 words[2 * MAX_PYTHON_FRAMES];
};

/* From code in HotSpot's code heaps to its caller. */
struct hotspot_walk {
	struct hotspot_process process;
	__u64 pc;    /* whose block is looked for */
	__u64 blob;  /* the last CodeBlob, 0: none */
	__u64 limit; /* where it ends */
	__u64 name;  /* address of its name, which tells what is behind: nmethod, adapter, continuation; 0: none */
	__u64 code;  /* where its code begins */
	__u64 entry; /* of an nmethod: behind the check of the receiver's class */
	__u64 deopt; /* the address to which a frame returns whose method is to be left */
	__u64 deopt_mh;
	__s64 complete; /* from code on, the frame has been made */
	__u64 frame_bytes;
	__u64 cookie;
	__u64 wanted; /* the Method that is looked at */
	__u64 method; /* the last one, 0: none */
	__u64 method_cookie;
	__u64 bytecodes; /* where its bytecodes are */
	__u64 code_size;
	__u64 lowest_sp; /* below which the frame of a caller does not begin */
	__u32 orig_pc;	 /* where a frame has the address instead of which it returns to deopt */
	__u32 nmethod;
	__u32 adapter;
	__u32 frames; /* of the runtime, in this stack */
	__u32 failed;
	__u32 from_native; /* the frame at hand has called native code */
	__u32 in_interpreter;
	__u32 continuation; /* the stubs of continuations */
	__u64 instructions[3];
	__u64 frame[12];
	__u8 const_bytes[HOTSPOT_CONST_BYTES + 8];
	__u8 blob_bytes[512 + 8]; /* HOTSPOT_BLOB_BYTES, and room for any offset */
};

/* What is below the frame pointer of a JavaScript function. */
struct v8_slots {
	__u64 offset;
	__u64 bytecode;
	__u64 arguments;
	__u64 function;
	__u64 context;
};

#define V8_OBJECT_BYTES 128  /* of an object that are read */
#define V8_SEARCH_BYTES 1024 /* of generated code that are searched at once */
/* What is remembered; powers of 2. */
#define V8_KNOWN 8	  /* functions of a stack */
#define V8_KNOWN_CODES 16 /* of stacks */

/* A function that a stack has. */
struct v8_function {
	__u64 function; /* JSFunction; 0: none */
	__u64 shared;	/* SharedFunctionInfo */
	__u64 hash;
	__u64 data;
};

/* Of what V8's heap has, what the walk looks at: each has a map that says so. */
enum v8_kind {
	V8_SHARED, /* SharedFunctionInfo */
	V8_SCRIPT,
	V8_BYTECODE, /* BytecodeArray */
	V8_CODE,
	V8_STREAM,   /* InstructionStream */
	V8_LIST,     /* the deoptimization data of a Code */
	V8_FUNCTION, /* JSFunction, which has one of several maps */
	V8_MAPS = V8_FUNCTION + 4,
};

/* A Code that a stack has, or another stack had. */
struct v8_code {
	__u64 code; /* 0: none */
	__u64 of;   /* SharedFunctionInfo; 0: not known */
	__u64 start;
	__u32 bytes;
	__u32 kind;
	__u64 stack; /* in which this was read */
};

/* State of the walk along frames of V8. */
struct v8_walk {
	struct v8_process of;
	/* the frame at hand */
	__u64 pc; /* in the instruction that runs, or calls */
	__u64 sp;
	__u64 fp;
	struct v8_slots slots;
	__u8 leaf;	/* pc was interrupted */
	__u8 generated; /* pc is in no file */
	__u8 replaces;	/* its address in the record gives way to the function */
	__u8 found;
	__u32 result;	       /* enum counter; 0: there is no V8 */
	struct v8_function at; /* its function */
	/* the last of each */
	__u64 last_script;
	__u64 script_id;
	__u32 source_length;
	__u32 codes_seen;  /* each takes the next place */
	__u64 stack;	   /* counts them */
	__u64 interpreter; /* where an interpreted frame of this stack goes on; 0: none yet */
	struct v8_code in;
	__u64 deopt; /* of that Code, if it was read just now */
	__u64 stream_map;
	struct process_id maps_of;
	__u64 maps[V8_MAPS]; /* by kind, of the process; 0: none */
	__u64 search_at;     /* the highest address where the InstructionStream that is looked for may begin */
	__u64 search_end;
	__u64 search_left; /* reads */
	struct v8_code codes[V8_KNOWN_CODES];
	struct v8_function functions[V8_KNOWN];
	__u8 object[V8_OBJECT_BYTES + 8];
	__u8 search[V8_SEARCH_BYTES];
};

/* What each sample uses comes first, together: at low rates most of its time goes for what the caches lack. */
struct scratch {
	struct user_regs user;		/* of the task */
	struct process_entry entry;	/* a copy; nothing is known of a task without user space */
	__u16 expected[EXPECTED_RULES]; /* of rules */
	struct stack_walk walk_state;
	struct sample_header header CACHE_LINE;
	__u8 body[SAMPLE_BODY_BYTES + SAMPLE_BODY_SLACK];
	struct known_rule rules[1 << KNOWN_RULES_BITS] CACHE_LINE;
	struct label_sources sources; /* a copy, for as long as reading takes */
	__u32 end;		      /* of copy_slots: where the labels end */
	__u32 skipped;		      /* and those without a value */
	struct label_memory label_memory;
	struct go_bucket bucket;
	struct go_map_walk walk;
	struct signal_regs signal;
	__u64 regs[NUM_REGS]; /* that rules may refer to, by DWARF number, see copy_regs() */
#ifdef OLDER_KERNELS
	struct slot_pass pass;
	struct v8_chain chain;
	struct walk_context context;
	__u64 saved_regs[SAVED_REGS_WORDS];
#else
	struct python_walk python;
	struct hotspot_walk hotspot;
	struct v8_walk v8;
#endif
};

/* A word of the body, at any offset: both architectures have that in one instruction, clang would take one for each
 * byte. */
static __always_inline __u64 *body_word(struct scratch *s, __u32 at)
{
	void *word = s->body + at;

	return word;
}

#endif
