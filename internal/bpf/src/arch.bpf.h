/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What differs between x86-64 and aarch64: registers, the thread pointer, where the DTV hangs. */
#ifndef CUSTOM_LABELS_ARCH_H
#define CUSTOM_LABELS_ARCH_H

#include "compat.bpf.h"
#include "kernel.h"

#define MIN_PAGE_BYTES 4096 /* some kernels of aarch64 have larger ones */

/* Where a user stack walk starts, and what else of the registers matters. */
struct user_regs {
	__u64 ip;
	__u64 sp;
	__u64 fp;
	__u64 called;  /* the kernel was entered by a system call: its instruction is before ip */
	__u64 stopped; /* at a probe, and it is not known whether its instruction has run */
	/* Of a system call that has just returned, if one has. */
	__u64 result;
	__u64 call;   /* its number */
	__u64 second; /* its second argument */
#if defined(__TARGET_ARCH_arm64)
	__u64 lr; /* the link register */
	__u64 g;  /* what Go keeps its goroutine in */
#else
	__u64 faulted; /* the kernel was entered because the instruction at ip could not be executed */
#endif
};

/*
 * The bits of the addresses that programs have. On aarch64 there may be fewer than 48, as the kernel was built
 * (CONFIG_ARM64_VA_BITS), and pointer authentication puts its code above them (ptrauth_user_pac_mask, asm/compiler.h).
 */
const volatile __u64 address_mask = (1ULL << 48) - 1; /* set by Go */

/*
 * Whether a system call has executed a program: that has not run yet, and has no instruction before its first. exec has
 * cleared the registers (ELF_PLAT_INIT, start_thread): on x86-64 the one that pointed at the path, on aarch64 the one
 * with the call's number.
 */
#define began(call, cleared) (!(cleared) && ((call) == CALL_EXECVE || (call) == CALL_EXECVEAT))

#if defined(__TARGET_ARCH_x86)

/* Selectors of 64-bit user code: __USER_CS, and FLAT_USER_CS64 of Xen's paravirtualised guests. */
#define USER_CS_64 0x33	      /* arch/x86/include/asm/segment.h */
#define USER_CS_64_XEN 0xe033 /* arch/x86/include/asm/xen/interface_64.h */
/* TASK_SIZE_MAX with five levels of page tables, the most there are. */
#define USER_ADDRESS_END (1ULL << 56)

/* The DTV pointer is at tp + 8 for glibc and musl (struct pthread, after self). */
#define DTV_POINTER_OFFSET_GLIBC 8
#define DTV_POINTER_OFFSET_MUSL 8

static __always_inline bool context_is_user(const struct perf_context *ctx)
{
	return (ctx->cs & 3) == 3;
}

/* As the kernel's user_64bit_mode() has it. Outside of Xen the second lies beyond the descriptor table. */
static __always_inline bool is_64bit_code(__u64 cs)
{
	return (__u16)cs == USER_CS_64 || (__u16)cs == USER_CS_64_XEN;
}

/* Where to read what a program's pointer points at. */
#define POINTED_AT(pointer) (pointer)

#define ALIGNED_CODE 16 /* where functions begin behind others, which may be padded with breakpoints */

/* Whether the instruction before that at hand is a breakpoint, and that one is none. */
static __always_inline bool behind_breakpoint(const struct user_regs *r)
{
	__u8 code[2];

	return !r->faulted && r->ip % ALIGNED_CODE &&
	       !bpf_probe_read_user(code, sizeof(code), (const void *)(r->ip - 1)) && code[0] == 0xcc &&
	       code[1] != 0xcc;
}

#define FLAGS_RESUME (1 << 16) /* X86_EFLAGS_RF: the processor sets it for a fault, and not for a breakpoint */

/* Whether the instruction before an address makes a system call, or cannot be read. */
static __noinline bool behind_system_call(__u64 ip)
{
	__u16 code;

	return bpf_probe_read_user(&code, sizeof(code), (const void *)(ip - sizeof(code))) ||
	       code == 0x050f || /* syscall */
	       code == 0x80cd;	 /* int $0x80 */
}

#define CALL_EXECVE 59
#define CALL_EXECVEAT 322
#define CALL_CLONE 56
#define CALL_CLONE3 435
#define CALL_UNKNOWN (~0ULL) /* as the kernel has it after an interrupt */

/* All registers, by DWARF number (System V ABI for x86-64, figure 3.36). */
#define NUM_REGS 16
#define CFA_REGS 1
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

static __always_inline void user_regs_from_context(const struct perf_context *ctx, struct user_regs *r, bool *compat)
{
	r->ip = ctx->ip;
	r->sp = ctx->sp;
	r->fp = ctx->bp;
	r->result = ctx->ax;
	r->called = r->stopped = r->faulted = 0;
	r->call = CALL_UNKNOWN;
	r->second = ctx->si;
	*compat = !is_64bit_code(ctx->cs);
}

static __always_inline void user_regs_from_task(const struct pt_regs *regs, struct user_regs *r, bool *compat)
{
	r->ip = regs->ip;
	r->sp = regs->sp;
	r->fp = regs->bp;
	r->result = regs->ax;
	r->call = regs->orig_ax;
	r->stopped = 0;
	/*
	 * The processor puts ip into cx (without FRED). A signal, or what has the call made again, gives another ip,
	 * and keeps the number.
	 */
	r->called = r->call != CALL_UNKNOWN && !began(r->call, r->call == CALL_EXECVE ? regs->di : regs->si) &&
		    (regs->cx == regs->ip || behind_system_call(regs->ip));
	r->faulted = regs->flags & FLAGS_RESUME;
	r->second = regs->si;
	*compat = !is_64bit_code(regs->cs);
}

static __always_inline __u64 user_sp(const struct pt_regs *regs)
{
	return FIELD(regs, sp);
}

/* THREAD_SIZE of arch/x86/include/asm/page_64_types.h, without KASAN */
#define KERNEL_STACK_BYTES (1 << 14)
#define SAVED_REGS_WORDS 21 /* of struct pt_regs: all */

#define CLONE_ARGS_MIN 64 /* size of struct clone_args, second argument of clone3 (include/uapi/linux/sched.h) */
#define CLONE_ARGS_MAX 256
#define CLONE_TEST_BYTES 5 /* of code, until a child has rows of its own (glibc) or no frame pointer (musl) */

/*
 * The system call that has just given its result. Where an interrupt finds the task in
 * user space, its number is gone, and the code has to tell; that is only read where the
 * registers may be those of a child. It may not be there yet for the first instruction of
 * a process.
 */
static __always_inline __u64 made_by(const struct user_regs *r)
{
	/* "mov $number, %eax; syscall"; musl: "mov %rcx, (%rsi); syscall" */
	const __u64 clone = 0x050f00000038b8, clone3 = 0x050f000001b3b8, musl = 0x050f0e8948;
	bool stack_passed = r->second == r->sp;
	__u64 code[2], end;

	if (r->call == CALL_CLONE || r->call == CALL_CLONE3)
		return r->call;
	if (!stack_passed && (r->second < CLONE_ARGS_MIN || r->second > CLONE_ARGS_MAX))
		return CALL_UNKNOWN;
	if (bpf_probe_read_user(code, sizeof(code), (const void *)(r->ip - sizeof(code))))
		return stack_passed ? CALL_CLONE : CALL_UNKNOWN;
	for (int i = 0; i <= CLONE_TEST_BYTES; i++) {
		end = code[1] >> 8;
		if (end == clone || end >> 16 == musl)
			return CALL_CLONE;
		if (end == clone3)
			return CALL_CLONE3;
		code[1] = code[1] << 8 | code[0] >> 56;
		code[0] <<= 8;
	}
	return CALL_UNKNOWN;
}

/* The frame pointer points into the frame, to its upper end. */
#define FP_BELOW_SP 0
#define FP_GIVES_SP 1
#define LINK_REGISTER 0
#define GO_REGISTER(r) 0

/* Of struct rt_sigframe behind its return address (arch/x86/include/asm/sigframe.h): struct ucontext. */
#define SIGNAL_REGS_OFFSET 40 /* uc_mcontext, struct sigcontext_64: r8 to r15, di, si, bp, bx, dx, ax, cx, sp, ip */
struct signal_regs {
	__u64 r8, r9, r10, r11, r12, r13, r14, r15, di, si, bp, bx, dx, ax, cx, sp, ip;
};
#define SIGNAL_FP(r) ((r)->bp)
#define SIGNAL_LR(r) 0
#define SIGNAL_COPY_REGS(to, r) COPY_REGS(to, r)
#define TASK_COPY_REGS(to, r) COPY_REGS(to, r)

static __always_inline __u64 thread_pointer(const struct task_struct *task)
{
	return FIELD(task, thread.fsbase);
}

static __always_inline __u64 strip_return_address(__u64 addr)
{
	return addr;
}

/* Whether a call comes before an address: e8, or ff /2 with a register or memory. */
static __noinline __attribute__((unused)) bool behind_call(__u64 addr)
{
	__u64 code;

	if (bpf_probe_read_user(&code, sizeof(code), (const void *)(addr - 8)))
		return false;
	if ((__u8)(code >> 24) == 0xe8)
		return true;
	return (code >> 48 & 0xf8ff) == 0xd0ff ||    /* call *%reg */
	       (code >> 40 & 0xf8ff) == 0x50ff ||    /* call *disp8(%reg) */
	       (code >> 32 & 0xffff) == 0x54ff ||    /* call *disp8(%reg, %reg) */
	       (code >> 16 & 0xf8ff) == 0x90ff ||    /* call *disp32(%reg) */
	       (code >> 16 & 0xffff) == 0x15ff ||    /* call *disp32(%rip) */
	       (code >> 40 & 0xffff) == 0x14ff ||    /* call *(%reg, %reg) */
	       (code >> 8 & 0xffff) == 0x94ff ||     /* call *disp32(%reg, %reg) */
	       (code >> 8 & 0x07ffff) == 0x0514ff || /* call *disp32(, %reg, 8) */
	       (code >> 48 & 0xf8ff) == 0x10ff;	     /* call *(%reg) */
}

/* Whether a nop comes before an address, as where runtime.goexit is returned to (runtime/asm_amd64.s). */
static __always_inline bool behind_nop(__u64 addr)
{
	__u8 code = 0;

	bpf_probe_read_user(&code, sizeof(code), (const void *)(addr - 1));
	return code == 0x90;
}

#else /* arm64 */

#define PSR_MODE_MASK 0xf /* arch/arm64/include/uapi/asm/ptrace.h */
#define PSR_MODE32_BIT 0x10
/* No program has addresses above, but by asking for them (arch/arm64/include/asm/processor.h, DEFAULT_MAP_WINDOW). */
#define USER_ADDRESS_END (1ULL << 48)

/* glibc: tp points at {dtv, private}; musl: the dtv is the word below tp. */
#define DTV_POINTER_OFFSET_GLIBC 0
#define DTV_POINTER_OFFSET_MUSL -8

/* Where to read what a program's pointer points at: its upper byte is ignored, and may be a tag. The kernel's functions
 * that read it in a BPF program do not take that away. */
#define POINTED_AT(pointer) ((__u64)((__s64)((__u64)(pointer) << 8) >> 8))

#define CALL_EXECVE 221
#define CALL_EXECVEAT 281
#define CALL_CLONE 220
#define CALL_CLONE3 435
#define CALL_UNKNOWN (~0ULL)
#define NO_SYSCALL (-1) /* arch/arm64/include/asm/ptrace.h */

/* No compiler makes a CFA of other registers than the stack and frame pointer. These are HotSpot's. */
#define NUM_REGS 4
#define CFA_REGS 0
#define REG_X13 0
#define REG_X19 1
#define REG_X22 2

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

static __always_inline void user_regs_from_context(const struct perf_context *ctx, struct user_regs *r, bool *compat)
{
	r->ip = ctx->pc;
	r->sp = ctx->sp;
	r->fp = context_reg(ctx, 29);
	r->lr = context_reg(ctx, 30);
	r->g = context_reg(ctx, 28);
	r->result = context_reg(ctx, 0);
	r->called = r->stopped = 0;
	r->call = context_reg(ctx, 8);
	r->second = context_reg(ctx, 1);
	*compat = ctx->pstate & PSR_MODE32_BIT;
}

static __always_inline void user_regs_from_task(const struct pt_regs *regs, struct user_regs *r, bool *compat)
{
	r->ip = regs->user_regs.pc;
	r->sp = regs->user_regs.sp;
	r->fp = regs->user_regs.regs[29];
	r->lr = regs->user_regs.regs[30];
	r->g = regs->user_regs.regs[28];
	r->result = regs->user_regs.regs[0];
	r->call = regs->user_regs.regs[8];
	r->stopped = 0;
	r->called = regs->syscallno != NO_SYSCALL && !began(regs->syscallno, r->call);
	r->second = regs->user_regs.regs[1];
	*compat = regs->user_regs.pstate & PSR_MODE32_BIT;
}

static __always_inline __u64 user_sp(const struct pt_regs *regs)
{
	return FIELD(regs, user_regs.sp);
}

/* THREAD_SIZE of arch/arm64/include/asm/memory.h, without KASAN: at least a page. */
#define KERNEL_STACK_BYTES (page_bytes > 1 << 14 ? page_bytes : 1 << 14)
#define SAVED_REGS_WORDS 36 /* of struct pt_regs: to syscallno */

#define SVC 0xd4000001 /* svc #0 */
#define CLONE_TESTS 3  /* instructions, until a child has rows of its own (glibc) or has used its stack (musl) */

/*
 * The system call that has just given its result. The register of its number keeps that
 * for longer, so the code has to tell, which is only read after a call that makes tasks.
 * It may not be there yet for the first instruction of a process.
 */
static __always_inline __u64 made_by(const struct user_regs *r)
{
	__u32 code[CLONE_TESTS];

	if (r->call != CALL_CLONE && r->call != CALL_CLONE3)
		return CALL_UNKNOWN;
	if (bpf_probe_read_user(code, sizeof(code), (const void *)(r->ip - sizeof(code))))
		return r->call;
	for (int i = 0; i < CLONE_TESTS; i++)
		if (code[i] == SVC)
			return r->call;
	return CALL_UNKNOWN;
}

/* The frame pointer points to the lower end of the frame, Go's to a word below. */
#define FP_BELOW_SP 8
#define FP_GIVES_SP 0
#define LINK_REGISTER 1
#define GO_REGISTER(r) ((r)->g)

/* Of struct rt_sigframe (arch/arm64/kernel/signal.c): siginfo, struct ucontext, in it struct sigcontext. */
#define SIGNAL_REGS_OFFSET (128 + 176 + 8) /* behind fault_address */
struct signal_regs {
	__u64 x[31], sp, ip;
};
#define SIGNAL_FP(r) ((r)->x[29])
#define SIGNAL_LR(r) ((r)->x[30])
#define COPY_REGS(to, from)                                                                                            \
	do {                                                                                                           \
		(to)[REG_X13] = (from)[13];                                                                            \
		(to)[REG_X19] = (from)[19];                                                                            \
		(to)[REG_X22] = (from)[22];                                                                            \
	} while (0)
#define SIGNAL_COPY_REGS(to, r) COPY_REGS(to, (r)->x)
#define TASK_COPY_REGS(to, r) COPY_REGS(to, (r)->user_regs.regs)

static __always_inline __u64 thread_pointer(const struct task_struct *task)
{
	return FIELD(task, thread.uw.tp_value);
}

static __always_inline __u64 strip_return_address(__u64 addr)
{
	/* Bit 55 is no part of the code: it tells kernel addresses. */
	return addr & 1ULL << 55 ? addr : addr & address_mask;
}

/* Whether a call comes before an address: bl, blr. */
static __noinline __attribute__((unused)) bool behind_call(__u64 addr)
{
	__u32 code;

	if (bpf_probe_read_user(&code, sizeof(code), (const void *)(addr - 4)))
		return false;
	return (code & 0xfc000000) == 0x94000000 || (code & 0xfffffc1f) == 0xd63f0000;
}

static __always_inline bool behind_nop(__u64 addr)
{
	return false;
}

#endif
#endif
