/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What differs between x86-64 and aarch64: registers, the thread pointer, where the DTV hangs. */
#ifndef CUSTOM_LABELS_ARCH_H
#define CUSTOM_LABELS_ARCH_H

#include "kernel.h"

/* Where a user stack walk starts, and what else of the registers matters. */
struct user_regs {
	__u64 ip;
	__u64 sp;
	__u64 fp;
	__u64 g; /* aarch64: what Go keeps its goroutine in */
};

#if defined(__TARGET_ARCH_x86)

#define USER_CS_64 0x33 /* __USER_CS, arch/x86/include/asm/segment.h */
/* TASK_SIZE_MAX with five levels of page tables, the most there are. */
#define USER_ADDRESS_END (1ULL << 56)

/* The DTV pointer is at tp + 8 for glibc and musl (struct pthread, after self). */
#define DTV_POINTER_OFFSET_GLIBC 8
#define DTV_POINTER_OFFSET_MUSL 8

static __always_inline bool context_is_user(const struct perf_context *ctx)
{
	return (ctx->cs & 3) == 3;
}

static __always_inline void user_regs_from_context(const struct perf_context *ctx, struct user_regs *r, bool *compat)
{
	r->ip = ctx->ip;
	r->sp = ctx->sp;
	r->fp = ctx->bp;
	*compat = ctx->cs != USER_CS_64;
}

static __always_inline void user_regs_from_task(const struct pt_regs *regs, struct user_regs *r, bool *compat)
{
	r->ip = regs->ip;
	r->sp = regs->sp;
	r->fp = regs->bp;
	*compat = regs->cs != USER_CS_64;
}

static __always_inline __u64 thread_pointer(const struct task_struct *task)
{
	return task->thread.fsbase;
}

static __always_inline __u64 strip_return_address(__u64 addr)
{
	return addr;
}

#else /* arm64 */

#define PSR_MODE_MASK 0xf /* arch/arm64/include/uapi/asm/ptrace.h */
#define PSR_MODE32_BIT 0x10
/* Pointer authentication puts its code above the 48 bits of a user address. */
#define USER_ADDRESS_END (1ULL << 48)

/* glibc: tp points at {dtv, private}; musl: the dtv is the word below tp. */
#define DTV_POINTER_OFFSET_GLIBC 0
#define DTV_POINTER_OFFSET_MUSL -8

static __always_inline bool context_is_user(const struct perf_context *ctx)
{
	return (ctx->pstate & PSR_MODE_MASK) == 0;
}

static __always_inline void user_regs_from_context(const struct perf_context *ctx, struct user_regs *r, bool *compat)
{
	r->ip = ctx->pc;
	r->sp = ctx->sp;
	r->fp = ctx->regs[29];
	/* One instruction: with two neighbours to read, clang would first add to ctx, which the verifier forbids. */
	asm volatile("%0 = *(u64 *)(%1 + %2)"
		     : "=r"(r->g)
		     : "r"(ctx), "i"(__builtin_offsetof(struct perf_context, regs[28])));
	*compat = ctx->pstate & PSR_MODE32_BIT;
}

static __always_inline void user_regs_from_task(const struct pt_regs *regs, struct user_regs *r, bool *compat)
{
	r->ip = regs->user_regs.pc;
	r->sp = regs->user_regs.sp;
	r->fp = regs->user_regs.regs[29];
	r->g = regs->user_regs.regs[28];
	*compat = regs->user_regs.pstate & PSR_MODE32_BIT;
}

static __always_inline __u64 thread_pointer(const struct task_struct *task)
{
	return task->thread.uw.tp_value;
}

static __always_inline __u64 strip_return_address(__u64 addr)
{
	return addr & (USER_ADDRESS_END - 1);
}

#endif
#endif
