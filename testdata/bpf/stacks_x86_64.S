/* The kinds of stacks.c. Each function stays in a loop of its own at the end. */

#define KERNEL 0xffffffff81000000
#define UNMAPPED 0x12340

.macro begin name
	.p2align 4
	.globl	\name
	.type	\name, @function
\name:
.endm

.macro stay
9:	jmp	9b
.endm

	.text

begin wild_sp
	.cfi_startproc
	movq	$UNMAPPED, %rsp
	stay
	.cfi_endproc

begin kernel_sp
	.cfi_startproc
	movq	$KERNEL, %rsp
	stay
	.cfi_endproc

begin far_cfa
	.cfi_startproc
	.cfi_def_cfa_offset 0x7ffffff8
	stay
	.cfi_endproc

begin cfa_below
	.cfi_startproc
	.cfi_def_cfa_offset -64
	stay
	.cfi_endproc

/* The caller of the leaf is the function itself, and its frame takes no room. */
begin cfa_stays
	.cfi_startproc
	leaq	9f(%rip), %rax
	movq	%rax, -8(%rsp)
	.cfi_def_cfa_offset 0
	nop
9:	nop
	jmp	9b
	.cfi_endproc

begin kernel_caller
	.cfi_startproc
	movq	$KERNEL, %rax
	pushq	%rax
	stay
	.cfi_endproc

/* More callers than are walked. */
begin calls_itself
	.cfi_startproc
	leaq	8f(%rip), %rax
	movl	$3000, %ecx
1:	pushq	%rax
	decl	%ecx
	jnz	1b
	nop
8:	nop
	stay
	.cfi_endproc

/* A signal frame whose interrupted code is that which returns from it. */
begin signal_loop
	.cfi_startproc
	subq	$1024, %rsp
	leaq	restorer(%rip), %rax
	movq	%rsp, 160(%rsp)
	movq	%rax, 168(%rsp)
	pushq	%rax
	stay
	.cfi_endproc

	.p2align 4
	nop
restorer:
	movq	$15, %rax
	syscall
	.p2align 4

/* What follows has no tables. */

begin fp_circle
	subq	$64, %rsp
	movq	%rsp, %rbp
	movq	%rsp, (%rsp)
	leaq	9f(%rip), %rax
	movq	%rax, 8(%rsp)
	stay

begin fp_unmapped
	movq	$UNMAPPED, %rbp
	stay

begin fp_kernel
	movq	$KERNEL, %rbp
	stay

begin fp_misaligned
	leaq	1(%rsp), %rbp
	stay

begin fp_below_sp
	leaq	-64(%rsp), %rbp
	stay

	.section .note.GNU-stack, "", @progbits
