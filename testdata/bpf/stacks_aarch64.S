/* The kinds of stacks.c. Each function stays in a loop of its own at the end. */

#define KERNEL 0xffff800080000000
#define UNMAPPED 0x12340

.macro begin name
	.p2align 4
	.globl	\name
	.type	\name, %function
\name:
.endm

.macro stay
9:	b	9b
.endm

.macro return_at_cfa
	.cfi_offset 30, -8
.endm

	.text

begin wild_sp
	.cfi_startproc
	ldr	x0, =UNMAPPED
	mov	sp, x0
	.cfi_def_cfa_offset 16
	return_at_cfa
	stay
	.cfi_endproc

begin kernel_sp
	.cfi_startproc
	ldr	x0, =KERNEL
	mov	sp, x0
	.cfi_def_cfa_offset 16
	return_at_cfa
	stay
	.cfi_endproc

begin far_cfa
	.cfi_startproc
	.cfi_def_cfa_offset 0x7ffffff8
	return_at_cfa
	stay
	.cfi_endproc

begin cfa_below
	.cfi_startproc
	.cfi_def_cfa_offset -64
	return_at_cfa
	stay
	.cfi_endproc

/* The caller of the leaf is the function itself, and its frame takes no room. */
begin cfa_stays
	.cfi_startproc
	adr	x30, 9f
9:	nop
	b	9b
	.cfi_endproc

begin kernel_caller
	.cfi_startproc
	ldr	x0, =KERNEL
	sub	sp, sp, #16
	str	x0, [sp, #8]
	.cfi_def_cfa_offset 16
	return_at_cfa
	stay
	.cfi_endproc

/* More callers than are walked. */
begin calls_itself
	.cfi_startproc
	adr	x0, 8f
	mov	w1, #3000
1:	sub	sp, sp, #16
	str	x0, [sp, #8]
	subs	w1, w1, #1
	b.ne	1b
	.cfi_def_cfa_offset 16
	return_at_cfa
	nop
8:	nop
	stay
	.cfi_endproc

/* A signal frame whose interrupted code is that which returns from it. */
begin signal_loop
	.cfi_startproc
	sub	sp, sp, #1024
	adr	x0, restorer
	mov	x1, sp
	str	x1, [sp, #560]
	str	x0, [sp, #568]
	mov	x30, x0
	stay
	.cfi_endproc

	.p2align 4
	nop
restorer:
	mov	x8, #139
	svc	#0
	.p2align 4

/* What follows has no tables. */

begin fp_circle
	sub	sp, sp, #64
	mov	x29, sp
	str	x29, [sp]
	adr	x0, 9f
	str	x0, [sp, #8]
	stay

begin fp_unmapped
	ldr	x29, =UNMAPPED
	stay

begin fp_kernel
	ldr	x29, =KERNEL
	stay

begin fp_misaligned
	mov	x29, sp
	add	x29, x29, #1
	stay

begin fp_below_sp
	sub	x29, sp, #64
	stay

	.section .note.GNU-stack, "", %progbits
