/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What the instructions of HotSpot's code tell of its frames: macroAssembler, the compilers'
 * prologues and epilogues and c2_safepointPollStubTable of both architectures.
 */
#ifndef CUSTOM_LABELS_HOTSPOTCODE_H
#define CUSTOM_LABELS_HOTSPOTCODE_H

#include "seal.bpf.h"

#ifndef OLDER_KERNELS

/* How much there is of the innermost frame of compiled code. */
enum frame_state {
	FRAME_WHOLE,
	FRAME_NONE,  /* the return address is the last word, or in its register */
	FRAME_LINK,  /* only the caller's frame pointer and the return address */
	FRAME_SPACE, /* its size is right, and the caller's frame pointer (and link) in the register */
};

#if defined(__TARGET_ARCH_x86)

/* The interpreter keeps the address of the bytecode in r13. */
#define BYTECODE_REGISTER(s, w) ((s)->regs[13])
/* At its entry, r13 has the caller's stack pointer, and rax the return address for a while. */
#define ENTRY_SENDER_SP(s, w) ((s)->regs[13])
#define ENTRY_RETURN_ADDRESS(s, w) ((s)->regs[0])

#define PUSH_RBP 0x55
#define POP_RBP 0x5d
#define LEAVE 0xc9
#define RET 0xc3
#define RET_POP 0xc2
#define JMP_FAR 0xe9
#define JMP_NEAR 0xeb
#define JMP_REG 0xff

/* Whether the n bytes of a word, the lowest first, are these. */
static __always_inline bool begins(__u64 code, __u64 bytes, int n)
{
	return (code & (~0ULL >> (64 - 8 * n))) == bytes;
}

/* cmp disp(%r15), %rsp: the poll at a return, whose frame has gone */
static __always_inline bool polls(__u64 code)
{
	return begins(code, 0xa73b49, 3) || begins(code, 0x673b49, 3);
}

static __always_inline enum frame_state frame_state(struct hotspot_walk *h, const struct stack_walk *w)
{
	__u64 *code = h->instructions; /* 8 bytes before ip, 16 behind */
	__u64 next, before;

	if (w->ip <= h->entry && w->ip >= h->code && w->ip < h->code + h->complete)
		return FRAME_NONE;
	if (bpf_probe_read_user(code, sizeof(h->instructions), (const void *)(w->ip - 8)))
		return FRAME_WHOLE;
	before = code[0];
	next = code[1];
	/* push %rbp; mov %eax, -disp(%rsp): is the stack deep enough? */
	if ((__u8)next == PUSH_RBP || (begins(next, 0x248489, 3) && (next >> 48 & 0xff) == 0xff))
		return FRAME_NONE;
	/* sub $size, %rsp; mov %rsp, %rbp */
	if (begins(next, 0xec8348, 3) || begins(next, 0xec8148, 3) || begins(next, 0xec8b48, 3) ||
	    begins(next, 0xe58948, 3)) {
		if (before >> 56 == PUSH_RBP || before >> 40 == 0xec8b48 || before >> 40 == 0xe58948)
			return FRAME_LINK;
		if ((__s64)(w->ip - h->code) < h->complete)
			return FRAME_NONE;
	}
	/* mov %rbp, disp(%rsp) */
	if ((__s64)(w->ip - h->code) < h->complete)
		return begins(next, 0x246c8948, 4) || begins(next, 0x24ac8948, 4) ? FRAME_SPACE : FRAME_WHOLE;
	if ((__u8)next == RET || (__u8)next == RET_POP || polls(next))
		return FRAME_NONE;
	if ((__u8)next == POP_RBP)
		return FRAME_LINK;
	/* Of a native method: cmp $0, disp(%r15); jne; ret, behind leave */
	if (before >> 56 == LEAVE && (begins(next, 0x8349, 2) || begins(next, 0x8149, 2)))
		return FRAME_NONE;
	if (begins(next, 0x850f, 2) && (next >> 48 & 0xff) == RET)
		return FRAME_NONE;
	/* ja, behind the poll */
	if (begins(next, 0x870f, 2) && (polls(before >> 8) || polls(before >> 32)))
		return FRAME_NONE;
	/* jmp, behind add $size, %rsp; pop %rbp */
	if (((__u8)next == JMP_FAR || (__u8)next == JMP_NEAR || (__u8)next == JMP_REG) && before >> 56 == POP_RBP &&
	    (begins(before >> 24, 0xc48348, 3) || begins(before, 0xc48148, 3)))
		return FRAME_NONE;
	/* Where a poll leads: lea disp(%rip), %r10; mov %r10, disp(%r15); jmp */
	if (begins(next, 0x158d4c, 3) && begins(code[1] >> 56 | code[2] << 8, 0x97894d, 3))
		return FRAME_NONE;
	if (begins(next, 0x97894d, 3) && begins(before >> 8, 0x158d4c, 3))
		return FRAME_NONE;
	if ((__u8)next == JMP_FAR && begins(before >> 8, 0x97894d, 3))
		return FRAME_NONE;
	return FRAME_WHOLE;
}

#else /* arm64 */

/* The interpreter keeps the address of the bytecode in x22. */
#define BYTECODE_REGISTER(s, w) ((s)->regs[REG_X22])
/* At its entry, a register has the caller's stack pointer. */
#define ENTRY_SENDER_SP(s, w) entry_sender_sp(s, (w)->sp)
#define ENTRY_RETURN_ADDRESS(s, w) ((w)->lr)
#define MAX_ADAPTER_BYTES 4096 /* that adapters move the stack pointer by */

static __always_inline __u64 entry_sender_sp(const struct scratch *s, __u64 sp)
{
	__u64 sender = s->hotspot.process.sender_x19 ? s->regs[REG_X19] : s->regs[REG_X13];

	return sender - sp < MAX_ADAPTER_BYTES ? sender : sp;
}

#define A64_RET 0xd65f03c0
#define A64_STP_LINK 0xa9007bfd	       /* stp x29, x30, [sp, #offset] */
#define A64_STP_LINK_BEFORE 0xa9807bfd /* stp x29, x30, [sp, #-size]! */
#define A64_LDP_LINK 0xa9407bfd	       /* ldp x29, x30, [sp, #offset] */
#define A64_LDP_LINK_AFTER 0xa8c07bfd  /* ldp x29, x30, [sp], #size */
#define A64_PAIR_MASK 0xffc07fff
#define A64_SUB_SP 0xd10003ff /* sub sp, sp, #size */
#define A64_ADD_SP 0x910003ff /* add sp, sp, #size */
#define A64_SIZE_MASK 0xff8003ff
#define A64_BANG 0xd10003e9 /* sub x9, sp, #size; str xzr, [x9]: is the stack deep enough? */
#define A64_TOUCH 0xf900013f
#define A64_SUB_SP_REG 0xcb2063ff /* sub sp, sp, xN */
#define A64_POLL 0xf9400380	  /* ldr xN, [x28, #offset] */
#define A64_POLL_MASK 0xffc003e0
#define A64_ADR 0x10000000 /* adr xN, offset */
#define A64_ADR_MASK 0x9f000000
#define A64_ADRP 0x90000000
#define A64_B 0x14000000
#define A64_B_MASK 0xfc000000
#define A64_SAVE 0xf9000380 /* str xN, [x28, #offset] */
#define A64_SAVE_MASK 0xffc003e0
#define A64_REGISTER 0x1f
#define A64_CBNZ 0xb5000000
#define A64_CBNZ_MASK 0xff000000
#define A64_TBZ 0x36000000 /* or tbnz */
#define A64_TBZ_MASK 0x7e000000
#define A64_CMP_SP 0xeb2063ff /* cmp sp, xN */
#define A64_CMP_SP_MASK 0xffe0ffff
#define A64_B_HI 0x54000008
#define A64_B_HI_MASK 0xff00001f

static __always_inline bool moves_sp_down(__u32 code)
{
	return (code & A64_SIZE_MASK) == A64_SUB_SP || (code & A64_CMP_SP_MASK) == A64_SUB_SP_REG;
}

/* sub sp, sp, size; stp x29, x30, [sp, #offset] */
static __always_inline bool makes_frame(const __u32 *code)
{
	return (code[0] & A64_SIZE_MASK) == A64_SUB_SP && (code[1] & A64_PAIR_MASK) == A64_STP_LINK;
}

/* adr xN, offset; str xN, [x28, #offset]; a jump. Calls of native code go on otherwise. */
static __always_inline bool saves_place(const __u32 *code)
{
	return (code[0] & A64_ADR_MASK) == A64_ADR && (code[1] & A64_SAVE_MASK) == A64_SAVE &&
	       (code[0] & A64_REGISTER) == (code[1] & A64_REGISTER) &&
	       ((code[2] & A64_B_MASK) == A64_B || (code[2] & A64_ADR_MASK) == A64_ADRP);
}

/* ldr xN, [x28, #offset]; cbnz; ret */
static __always_inline bool ends_native(const __u32 *code)
{
	return (code[0] & A64_POLL_MASK) == A64_POLL && (code[1] & A64_CBNZ_MASK) == A64_CBNZ && code[2] == A64_RET;
}

static __always_inline enum frame_state frame_state(struct hotspot_walk *h, const struct stack_walk *w)
{
	__u32 *code = (__u32 *)h->instructions; /* 2 before ip, 4 behind */
	__u32 before, next;

	if (w->ip <= h->entry && w->ip >= h->code && w->ip < h->code + h->complete)
		return FRAME_NONE;
	if (bpf_probe_read_user(code, sizeof(h->instructions), (const void *)(w->ip - 8)))
		return FRAME_WHOLE;
	before = code[1];
	next = code[2];
	if ((__s64)(w->ip - h->code) < h->complete) {
		/* stp x29, x30, [sp, #-16]!; mov of the size, or to x29; sub sp, sp, size */
		if ((before & A64_PAIR_MASK) == A64_STP_LINK_BEFORE ||
		    ((code[0] & A64_PAIR_MASK) == A64_STP_LINK_BEFORE && moves_sp_down(next)))
			return FRAME_LINK;
		if ((next & A64_PAIR_MASK) == A64_STP_LINK)
			return FRAME_SPACE;
		/* Before that, the depth of the stack is looked at. */
		for (int i = 2; i < 6; i++) {
			if (moves_sp_down(code[i]) || (code[i] & A64_PAIR_MASK) == A64_STP_LINK_BEFORE)
				return FRAME_NONE;
		}
		return FRAME_WHOLE;
	}
	/* A method whose loop is under way is entered further down. */
	if (makes_frame(code + 2) || (next == A64_TOUCH && makes_frame(code + 3)) ||
	    ((next & A64_SIZE_MASK) == A64_BANG && makes_frame(code + 4)))
		return FRAME_NONE;
	if (makes_frame(code + 1))
		return FRAME_SPACE;
	if (next == A64_RET || (before & A64_PAIR_MASK) == A64_LDP_LINK_AFTER)
		return FRAME_NONE;
	if ((next & A64_PAIR_MASK) == A64_LDP_LINK_AFTER)
		return FRAME_LINK;
	if ((before & A64_PAIR_MASK) == A64_LDP_LINK && (next & A64_SIZE_MASK) == A64_ADD_SP)
		return FRAME_SPACE;
	if ((code[0] & A64_PAIR_MASK) == A64_LDP_LINK && (before & A64_SIZE_MASK) == A64_ADD_SP)
		return FRAME_NONE;
	if ((next & A64_POLL_MASK) == A64_POLL && (before & A64_SIZE_MASK) == A64_ADD_SP)
		return FRAME_NONE;
	/* Where a poll leads. */
	if (saves_place(code + 2) || saves_place(code + 1) || saves_place(code))
		return FRAME_NONE;
	/* Of a native method, behind ldp x29, x30: ldr, tbz of a poll (25); is there an exception? */
	if ((next & A64_TBZ_MASK) == A64_TBZ && (before & A64_POLL_MASK) == A64_POLL &&
	    (code[0] & A64_PAIR_MASK) == A64_LDP_LINK_AFTER)
		return FRAME_NONE;
	if (ends_native(code + 2) || ends_native(code + 1))
		return FRAME_NONE;
	if ((next & A64_CMP_SP_MASK) == A64_CMP_SP)
		return FRAME_NONE;
	if ((next & A64_B_HI_MASK) == A64_B_HI && (before & A64_CMP_SP_MASK) == A64_CMP_SP)
		return FRAME_NONE;
	return FRAME_WHOLE;
}

#endif
#endif
#endif
