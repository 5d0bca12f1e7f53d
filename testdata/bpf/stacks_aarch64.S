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

/* It calls a function that ends in a system call; where that returns to has no tables. */
begin ends_in_call
	.cfi_startproc
	str	x30, [sp, #-16]!
	.cfi_def_cfa_offset 16
	.cfi_offset 30, -16
	mov	x29, #0
1:	bl	2f
	b	1b
	.cfi_endproc
	.cfi_startproc
2:	str	x30, [sp, #-32]!
	.cfi_def_cfa_offset 32
	.cfi_offset 30, -32
	mov	x8, #173 /* getppid */
	svc	#0
	.cfi_endproc
	ldr	x30, [sp], #32
	ret

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

begin fp_zero
	mov	x29, xzr
	stay

begin fp_misaligned
	mov	x29, sp
	add	x29, x29, #1
	stay

begin fp_below_sp
	sub	x29, sp, #64
	stay

/*
 * Children that stay where the system call returns that made them; so does the maker,
 * which has two callers that its frame pointer leads to.
 */
#define THREAD 0x10f00 /* CLONE_VM, _FS, _FILES, _SIGHAND, _THREAD */
#define SPAWN 0x4100   /* CLONE_VM, _VFORK */
#define SIGCHLD 17

.macro maker name
begin \name
	stp	xzr, x30, [sp, #-16]!
	mov	x29, sp
	bl	1f
	brk	#0
1:	stp	x29, x30, [sp, #-16]!
	mov	x29, sp
	mov	x1, #0
	mov	x2, #0
	mov	x3, #0
	mov	x4, #0
.endm

/* Pages of a child's copy of a stack are there for BPF once it has touched them. */
.macro child
2:	ldr	x5, [x29]
	ldr	x5, [x29, #24]
	cbz	x0, 2b
3:	mov	x0, #0
	mov	x1, #0
	mov	x2, #0
	mov	x3, #0
	mov	x8, #73 /* ppoll */
	svc	#0
	b	3b
.endm

.macro by_clone name, flags, stack:vararg
maker \name
	ldr	x0, =(\flags)
	\stack
	mov	x8, #220
	svc	#0
	child
.endm

.macro by_clone3 name, flags, signal, stack, size
maker \name
	adrp	x5, \stack
	add	x5, x5, :lo12:\stack
	mov	x6, #\size
	cmp	x6, #0
	csel	x5, xzr, x5, eq
	ldr	x7, =(\flags)
	mov	x9, #\signal
	stp	x6, xzr, [sp, #-16]!
	stp	x9, x5, [sp, #-16]!
	stp	xzr, xzr, [sp, #-16]!
	stp	x7, xzr, [sp, #-16]!
	mov	x0, sp
	mov	x1, #64
	mov	x8, #435
	svc	#0
	child
.endm

by_clone thread, THREAD, sub x1, sp, #512
by_clone thread_musl, THREAD, sub x1, sp, #512
by_clone spawned, SPAWN | SIGCHLD, sub x1, sp, #512
by_clone container, SIGCHLD, sub x1, sp, #512
by_clone forked, SIGCHLD
by_clone vforked, SPAWN | SIGCHLD, mov x1, sp
by_clone3 thread3, THREAD, 0, ground, 512
by_clone3 spawned3, SPAWN, SIGCHLD, ground, 512
by_clone3 forked3, 0, SIGCHLD, ground, 0
by_clone3 vforked3, SPAWN, SIGCHLD, ground, 0

	.bss
	.p2align 4
ground:	.skip	512

	.section .note.GNU-stack, "", %progbits
