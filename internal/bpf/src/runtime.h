/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The part of record.h that is about language runtimes: how their frames are recorded, and
 * what the BPF programs know of a process that has one.
 */
#ifndef CUSTOM_LABELS_RUNTIME_H
#define CUSTOM_LABELS_RUNTIME_H

#define MAX_RUNTIMES 2048	   /* processes with a language runtime */
#define MAX_PYTHON_FRAMES 512	   /* of one thread that are recorded */
#define MAX_PYTHON_EVALUATIONS 256 /* native ones, of one thread */
#define MAX_PYTHON_THREADS 1024	   /* of one process, and its interpreters, that are looked through */
#define PYTHON_FRAME_BYTES 80	   /* of a frame that are read */
#define PYTHON_THREAD_BYTES 256	   /* of a thread's state */
#define PYTHON_CODE_BYTES 256	   /* of a code object */
#define PYTHON_NAME_BYTES 32	   /* of a name's begin and of its end, in a cookie */
#define MAX_HOTSPOT_HEAPS 4	   /* ranges of code of one process */
#define HOTSPOT_BLOB_BYTES 384	   /* of an nmethod that are read */
#define HOTSPOT_CONST_BYTES 64	   /* of a ConstMethod */

/* Language runtimes, whose frames are not those of functions in files. */
enum runtime_kind {
	RUNTIME_NONE = 0,
	RUNTIME_CPYTHON = 1,
	RUNTIME_HOTSPOT = 2,
	RUNTIME_V8 = 3,
	RUNTIME_MAX = 4,
};

/*
 * A frame of a runtime is two words of a user stack, behind the native frame that runs it.
 * The first has, from the top: 1 bit that is set, 7 bits enum runtime_kind, 32 bits cookie,
 * 24 bits position. No address looks like that: those of user space are below 2^56, those
 * above have all of their upper bits set. The second is the address of the object that tells
 * what runs; the cookie tells whether another one is there by now.
 *
 * CPython: a code object. Position: 1 + the index of the last instruction in code units;
 * 0: not known.
 *
 * HotSpot: a frame takes the place of the native one. The lower bits of the object say what it
 * is. HOTSPOT_CODE: a CodeBlob. Position: what is behind the instruction, from the begin of the
 * code. HOTSPOT_METHOD: a Method that is interpreted. Position: 1 + the index of the bytecode;
 * 0: not known.
 *
 * V8: a SharedFunctionInfo. Position: 1 + the offset in its bytecode, or, with a cookie of its
 * own, in the code of the baseline compiler. Or the Code of an optimizing compiler. Position:
 * 1 + the offset in it. 0: not known.
 */
#define HOTSPOT_CODE 0ULL
#define HOTSPOT_METHOD 1ULL
#define HOTSPOT_IN_HEAP 1 /* position of a stub: here are frames of a virtual thread that are in the heap */
#define RUNTIME_FRAME (1ULL << 63)
#define RUNTIME_KIND_SHIFT 56
#define RUNTIME_COOKIE_SHIFT 24
#define RUNTIME_POSITION_MASK ((1 << RUNTIME_COOKIE_SHIFT) - 1)

/* Where a CPython keeps what its stacks are made of. Offsets are in the structs of its headers. */
struct python_process {
	__u64 interpreters; /* address of the pointer to the first PyInterpreterState */
	__u64 code_type;    /* address of PyCode_Type */
	__u32 interpreter_next;
	__u32 interpreter_threads;
	__u16 thread_next;
	__u16 thread_native_id;
	__u16 thread_frame; /* of the current frame, or of the current _PyCFrame */
	__u16 code_bytes;   /* of PyCodeObject before its instructions */
	__u16 code_filename;
	__u16 code_qualname;
	__u16 code_linetable;
	__u16 code_first_line;
	__u8 by_cframe; /* 3.11, 3.12: the current frame is in a _PyCFrame */
	__u8 cframe_current;
	__u8 cframe_previous;
	/* 3.11: is_entry. Else 0: frames on the C stack are between those of two evaluations. */
	__u8 frame_entry;
	__u8 frame_code;
	__u8 frame_previous;
	__u8 frame_instruction;
	__u8 frame_owner;
	__u8 text_offset; /* of the characters of a compact ASCII string */
	__u8 wide_offset; /* of another compact string */
	__u8 object_type; /* PyObject.ob_type, the last field of an object's header */
	__u8 pad[5];
};
_Static_assert(sizeof(struct python_process) == 56, "python_process");

/* A range of code that HotSpot makes. */
struct hotspot_heap {
	__u64 start;
	__u64 limit;
	__u64 segments; /* address of its segment map */
};

/* Where a HotSpot keeps what its stacks are made of. Else than addresses: offsets in the structs that it names itself.
 */
struct hotspot_process {
	__u64 low; /* of all heaps */
	__u64 high;
	__u64 interpreter;
	__u64 interpreter_limit;
	__u64 call_stub_return;	   /* where the call stub goes on */
	__u64 continuation_return; /* address of the variable with that of Continuation.enter's stub; 0: not known */
	struct hotspot_heap heaps[MAX_HOTSPOT_HEAPS];
	__u16 blob_name; /* of CodeBlob */
	__u16 blob_size;
	__u16 blob_frame_size;
	__u16 blob_frame_complete;
	__u16 blob_code;
	__u16 method; /* of nmethod */
	__u16 compile_id;
	__u16 verified_entry;
	__u16 deopt_handler;
	__u16 deopt_mh_handler;
	__u16 orig_pc;
	__u16 const_method; /* of Method */
	__u16 constants;    /* of ConstMethod */
	__u16 const_bytes;  /* its size: bytecodes follow */
	__u16 code_size;
	__u16 name_index;
	__u16 signature_index;
	__u16 idnum;
	__u16 pool_holder;  /* of ConstantPool */
	__u16 klass_name;   /* of Klass */
	__u8 segment_shift; /* log2 of the bytes of a segment */
	__u8 block_bytes;   /* of a heap block before its CodeBlob */
	__u8 bytecode_slot; /* bytes below an interpreted frame's pointer */
	__u8 relative;	    /* 25: places in code are offsets instead of addresses */
	__u8 sender_x19;    /* aarch64: a method begins with its caller's stack pointer in x19, not in x13 */
	__u8 pad[3];
};
_Static_assert(sizeof(struct hotspot_process) == 192, "hotspot_process");
/*
 * Where a V8 keeps what its stacks are made of: types of objects, as their maps have them, and
 * offsets in objects.
 */
struct v8_process {
	__u16 function_first; /* types of JSFunctions */
	__u16 function_last;
	__u16 shared_type; /* SharedFunctionInfo */
	__u16 script_type;
	__u16 bytecode_type; /* BytecodeArray */
	__u16 code_type;
	__u16 stream_type; /* InstructionStream */
	__u16 list_type;   /* the deoptimization data of a Code */
	__u8 function_shared;
	__u8 shared_data;
	__u8 shared_builtin;
	__u8 shared_name;
	__u8 shared_script;
	__u8 shared_literal;
	__u8 code_deopt;
	__u8 code_start;
	__u8 code_flags;
	__u8 code_size;
	__u8 stream_header;  /* bytes before the instructions */
	__u8 deopt_shared;   /* in the deoptimization data */
	__u8 shared_wrapped; /* that is a SharedFunctionInfoWrapper */
	/* Kind of baseline code, in the lower 4 bits of a Code's flags; those of optimizing compilers follow. */
	__u8 baseline;
	__u8 bytecode_header; /* bytes of a BytecodeArray before its instructions */
	__u8 builtin;	      /* kind of the code of builtins */
};
_Static_assert(sizeof(struct v8_process) == 32, "v8_process");

/* The runtime of a process. */
struct runtime_process {
	__u32 kind; /* enum runtime_kind */
	__u32 pad;
	__u64 seal; /* of the kind and the struct of that kind, see runtime_seal() */
	struct python_process python;
	struct hotspot_process hotspot;
	struct v8_process v8;
};
_Static_assert(sizeof(struct runtime_process) == 296, "runtime_process");

#endif
