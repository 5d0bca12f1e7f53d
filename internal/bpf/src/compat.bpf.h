/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What kernels before 6.1 do in another way. The objects for them are compiled from the same
 * source with OLDER_KERNELS; package bpf chooses by what the kernel can do. They take nothing
 * that Linux 5.10 lacks:
 *
 *   bpf_loop (5.17)                           plain loops, see LOOP
 *   maps that grow, in perf events (6.1)      maps of a fixed size
 *   mappings in a maple tree (6.1)            no look at what user space has not seen
 *   bpf_task_pt_regs (5.15)                   registers read from the kernel's stack
 *   programs of type syscall (5.14)           no name_file
 *   pointers to global functions (5.12)       static functions
 *   atomic operations with a result (5.12)    plain reads and writes, see share.bpf.h
 *   bpf_get_current_task_btf (5.11)           members read by bpf_probe_read_kernel
 */
#ifndef CUSTOM_LABELS_COMPAT_H
#define CUSTOM_LABELS_COMPAT_H

/* Code that seldom runs is put out of the way: at low rates most of a sample's time goes for what the caches lack. */
#ifndef likely
#define likely(condition) __builtin_expect(!!(condition), 1)
#define unlikely(condition) __builtin_expect(!!(condition), 0)
#endif

#include "kernel.h"

#ifdef OLDER_KERNELS

/* Whether stacks have the frames of language runtimes: their loops are those of bpf_loop. */
#define WALKS_RUNTIMES false

/* Whether a process's mappings are in a maple tree (Linux 6.1). */
#define has_mapping_tree() false

/* A member of a task, or of what members lead to. */
#define FIELD(from, ...) BPF_CORE_READ(from, __VA_ARGS__)

/* A function of its own that takes pointers: the verifier goes through it for each call. */
#define SEPARATE static __noinline

/* Flags of a hash map that programs of all types use. */
#define GROWING_MAP 0

/*
 * A loop whose body the verifier goes through once, however often it runs: it is a global
 * function, to which only numbers are passed. What the body works on is in the scratch buffer.
 */
#define LOOP_BODY(body, state)                                                                                         \
	__noinline int body##_once(__u32 i)                                                                            \
	{                                                                                                              \
		struct scratch *s = this_scratch();                                                                    \
                                                                                                                       \
		return !s || body(i, state);                                                                           \
	}

#define MAX_LOOPS 1024

/* Runs a body so many times, at most MAX_LOOPS, or until it returns 1. */
#define LOOP(times, body)                                                                                              \
	do {                                                                                                           \
		for (__u32 i_ = 0; i_ < MAX_LOOPS; i_++) {                                                             \
			if (i_ >= (times) || body##_once(i_))                                                          \
				break;                                                                                 \
		}                                                                                                      \
	} while (0)

/* The same for a body whose state is a variable; its place is a member of the scratch buffer. */
#define LOOP_WITH(times, body, variable, place)                                                                        \
	do {                                                                                                           \
		struct scratch *scratch_ = this_scratch();                                                             \
                                                                                                                       \
		if (!scratch_)                                                                                         \
			break;                                                                                         \
		scratch_->place = variable;                                                                            \
		LOOP(times, body);                                                                                     \
		variable = scratch_->place;                                                                            \
	} while (0)

static __always_inline struct task_struct *current_task(void)
{
	return (struct task_struct *)bpf_get_current_task();
}

#else

#define WALKS_RUNTIMES true
#define has_mapping_tree() bpf_core_field_exists(((struct mm_struct *)0)->mm_mt)
#define FIELD(from, ...) ___arrow(from, __VA_ARGS__)
#define SEPARATE __noinline
#define GROWING_MAP BPF_F_NO_PREALLOC
#define LOOP_BODY(body, state)
#define LOOP(times, body) bpf_loop(times, body, NULL, 0)
#define LOOP_WITH(times, body, variable, place) bpf_loop(times, body, &(variable), 0)

static __always_inline struct task_struct *current_task(void)
{
	return bpf_get_current_task_btf();
}

#endif
#endif
