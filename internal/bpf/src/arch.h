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
	__u64 lr; /* aarch64: the link register */
	__u64 g;  /* aarch64: what Go keeps its goroutine in */
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

/* All registers, by DWARF number (System V ABI for x86-64, figure 3.36). */
#define NUM_REGS 16
#define COPY_REGS(to, from)                                                                                            \
	do {                                                                                                           \
		(to)[0] = (from)->ax;                                                                                  \
		(to)[1] = (from)->dx;                                                                                  \
		(to)[2] = (from)->cx;                                                                                  \
		(to)[3] = (from)->bx;                                                                                  \
		(to)[4] = (from)->si;                                                                                  \
		(to)[5] = (from)->di;                                                                                  \
		(to)[6] = (from)->bp;                                                                                  \
		(to)[7] = (from)->sp;                                                                                  \
		(to)[8] = (from)->r8;                                                                                  \
		(to)[9] = (from)->r9;                                                                                  \
		(to)[10] = (from)->r10;                                                                                \
		(to)[11] = (from)->r11;                                                                                \
		(to)[12] = (from)->r12;                                                                                \
		(to)[13] = (from)->r13;                                                                                \
		(to)[14] = (from)->r14;                                                                                \
		(to)[15] = (from)->r15;                                                                                \
	} while (0)

/* all takes what COPY_REGS copies. */
static __always_inline void user_regs_from_context(const struct perf_context *ctx, struct user_regs *r, __u64 *all,
						   bool *compat)
{
	COPY_REGS(all, ctx);
	r->ip = ctx->ip;
	r->sp = ctx->sp;
	r->fp = ctx->bp;
	*compat = ctx->cs != USER_CS_64;
}

static __always_inline void user_regs_from_task(const struct pt_regs *regs, struct user_regs *r, __u64 *all,
						bool *compat)
{
	COPY_REGS(all, regs);
	r->ip = regs->ip;
	r->sp = regs->sp;
	r->fp = regs->bp;
	*compat = regs->cs != USER_CS_64;
}

/* The frame pointer points into the frame, to its upper end. */
#define FP_BELOW_SP 0
#define FP_GIVES_SP 1
#define LINK_REGISTER 0

/* Of struct rt_sigframe behind its return address (arch/x86/include/asm/sigframe.h): struct ucontext. */
#define SIGNAL_REGS_OFFSET 40 /* uc_mcontext, struct sigcontext_64: r8 to r15, di, si, bp, bx, dx, ax, cx, sp, ip */
struct signal_regs {
	__u64 r8, r9, r10, r11, r12, r13, r14, r15, di, si, bp, bx, dx, ax, cx, sp, ip;
};
#define SIGNAL_FP(r) ((r)->bp)
#define SIGNAL_LR(r) 0
#define SIGNAL_COPY_REGS(to, r) COPY_REGS(to, r)

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

/* One instruction: with neighbours to read, clang would first add to ctx, which the verifier forbids. */
#define context_reg(ctx, n)                                                                                            \
	({                                                                                                             \
		__u64 value;                                                                                           \
		asm volatile("%0 = *(u64 *)(%1 + %2)"                                                                  \
			     : "=r"(value)                                                                             \
			     : "r"(ctx), "i"(__builtin_offsetof(struct perf_context, regs[n])));                       \
		value;                                                                                                 \
	})

static __always_inline void user_regs_from_context(const struct perf_context *ctx, struct user_regs *r, __u64 *all,
						   bool *compat)
{
	r->ip = ctx->pc;
	r->sp = ctx->sp;
	r->fp = context_reg(ctx, 29);
	r->lr = context_reg(ctx, 30);
	r->g = context_reg(ctx, 28);
	*compat = ctx->pstate & PSR_MODE32_BIT;
}

static __always_inline void user_regs_from_task(const struct pt_regs *regs, struct user_regs *r, __u64 *all,
						bool *compat)
{
	r->ip = regs->user_regs.pc;
	r->sp = regs->user_regs.sp;
	r->fp = regs->user_regs.regs[29];
	r->lr = regs->user_regs.regs[30];
	r->g = regs->user_regs.regs[28];
	*compat = regs->user_regs.pstate & PSR_MODE32_BIT;
}

/* The frame pointer points to the lower end of the frame, Go's to a word below. */
#define FP_BELOW_SP 8
#define FP_GIVES_SP 0
#define LINK_REGISTER 1

/* No compiler makes a CFA of other registers than the stack and frame pointer. */
#define NUM_REGS 1
#define COPY_REGS(to, from)

/* Of struct rt_sigframe (arch/arm64/kernel/signal.c): siginfo, struct ucontext, in it struct sigcontext. */
#define SIGNAL_REGS_OFFSET (128 + 176 + 8) /* behind fault_address */
struct signal_regs {
	__u64 x[31], sp, ip;
};
#define SIGNAL_FP(r) ((r)->x[29])
#define SIGNAL_LR(r) ((r)->x[30])
#define SIGNAL_COPY_REGS(to, r)

static __always_inline __u64 thread_pointer(const struct task_struct *task)
{
	return task->thread.uw.tp_value;
}

static __always_inline __u64 strip_return_address(__u64 addr)
{
	/* Bit 55 is no part of the code: it tells kernel addresses. */
	return addr & 1ULL << 55 ? addr : addr & (USER_ADDRESS_END - 1);
}

#endif
#endif
