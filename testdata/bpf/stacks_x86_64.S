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

/* The return address lies across two pages; its caller is the outermost frame. */
begin split_word
	.cfi_startproc
	andq	$-4096, %rsp
	subq	$4, %rsp
	leaq	9f(%rip), %rax
	movq	%rax, (%rsp)
	movq	$0, 8(%rsp)
	movl	$1, %ebp
	nop
9:	nop
	jmp	9b
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

/* It calls a function that ends in a system call; where that returns to has no tables. */
begin ends_in_call
	.cfi_startproc
	subq	$8, %rsp
	.cfi_def_cfa_offset 16
	xorl	%ebp, %ebp
1:	call	2f
	jmp	1b
	.cfi_endproc
	.cfi_startproc
2:	subq	$24, %rsp
	.cfi_def_cfa_offset 32
	movl	$110, %eax /* getppid */
	syscall
	.cfi_endproc
	addq	$24, %rsp
	ret

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

/* Uses the frame pointer for something else when it calls code without a table, which keeps one. */
begin fp_of_keeper
	.cfi_startproc
	movq	$UNMAPPED, %rbp
	subq	$8, %rsp
	.cfi_adjust_cfa_offset 8
no_call:
	call	keeper
	ud2
	.cfi_endproc

/* What linkers and Go put between functions. */
.macro pad_with_breakpoints
	.p2align 4
	.fill	16, 1, 0xcc
.endm

/* Both loads fault when their pages are gone. An instruction between them ends as a breakpoint. */
pad_with_breakpoints
begin load_twice
	.cfi_startproc
	movl	(%rdi), %eax
	movaps	%xmm4, %xmm1
	.globl	second_load
second_load:
	movl	4096(%rdi), %eax
	ret
	.cfi_endproc

/* Stays at its first instruction. */
pad_with_breakpoints
begin padded_loop
	.cfi_startproc
1:	loop	1b
	.cfi_endproc

begin calls_padded_loop
	.cfi_startproc
	movq	$-1, %rcx
	subq	$8, %rsp
	.cfi_adjust_cfa_offset 8
	call	padded_loop
	ud2
	.cfi_endproc

/* What follows has no tables. */

/* No symbol says that these are functions, so that their code is not followed. The second is the last one to be found. */
	.globl	bare_probed, calls_bare_probed
bare_probed:
	pushq	%rbp
	movq	%rsp, %rbp
	stay

calls_bare_probed:
	pushq	%rbp
	movq	%rsp, %rbp
	movq	$UNMAPPED, (%rbp)
	movq	$UNMAPPED, 8(%rbp)
	call	bare_probed
	ud2

keeper:
	pushq	%rbp
	movq	%rsp, %rbp
	stay

/* A return address behind a call of code without a table, and one in code with one that is behind no call. */
.macro lower_link return_address
	subq	$64, %rsp
	movq	%rsp, %rbp
	movq	$UNMAPPED, (%rsp)
	leaq	\return_address(%rip), %rax
	movq	%rax, 8(%rsp)
	movq	$0, 24(%rsp)
	stay
	call	keeper
8:	ud2
.endm

begin fp_lower
	lower_link 8f

begin fp_lower_no_call
	lower_link no_call

/* Words that look like a link, as an array of pointers does, and a text in place of one. */
.macro upper_link at, next, return_address
	leaq	\next(%rsp), %rax
	movq	%rax, \at(%rsp)
	leaq	\return_address, %rax
	movq	%rax, \at + 8(%rsp)
.endm

.macro text at
	movabsq	$0x6161616161616161, %rax
	movq	%rax, \at(%rsp)
	movq	%rax, \at + 8(%rsp)
.endm

begin fp_upper
	subq	$128, %rsp
	movq	$0, -8(%rsp) /* no call is before what the stack pointer points at */
	upper_link 16, 48, (%rsp)
	upper_link 48, 80, (%rsp)
	text	80
	leaq	16(%rsp), %rbp
	stay

/* The second is one. */
begin fp_upper_again
	subq	$128, %rsp
	movq	$0, -8(%rsp) /* no call is before what the stack pointer points at */
	upper_link 16, 48, (%rsp)
	upper_link 48, 80, 8f(%rip)
	upper_link 80, 112, (%rsp)
	text	112
	leaq	16(%rsp), %rbp
	stay
	call	keeper
8:	ud2

/* Its caller is the last one. */
.macro last_link return_address
	subq	$64, %rsp
	movq	$0, 16(%rsp)
	leaq	\return_address(%rip), %rax
	movq	%rax, 24(%rsp)
	leaq	16(%rsp), %rbp
	stay
.endm

begin fp_behind_nop
	last_link 8f
	nop
8:	ud2

begin fp_behind_call_of_table
	last_link 8f
	call	*0x1000(, %rcx, 8)
8:	ud2

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

begin fp_zero
	xorl	%ebp, %ebp
	stay

/* These two would have a caller. */
begin fp_misaligned
	subq	$64, %rsp
	leaq	1(%rsp), %rbp
	leaq	33(%rsp), %rax
	movq	%rax, (%rbp)
	leaq	8f(%rip), %rax
	movq	%rax, 8(%rbp)
	stay
	call	keeper
8:	ud2

begin fp_below_sp
	leaq	-64(%rsp), %rbp
	leaq	-32(%rsp), %rax
	movq	%rax, (%rbp)
	leaq	8f(%rip), %rax
	movq	%rax, 8(%rbp)
	stay
	call	keeper
8:	ud2

/*
 * Children that stay where the system call returns that made them; so does the maker,
 * which has two callers that its frame pointer leads to.
 */
#define THREAD 0x10f00 /* CLONE_VM, _FS, _FILES, _SIGHAND, _THREAD */
#define SPAWN 0x4100   /* CLONE_VM, _VFORK */
#define SIGCHLD 17

.macro maker name
begin \name
	xorl	%ebp, %ebp
	pushq	%rbp
	movq	%rsp, %rbp
	call	1f
	ud2
1:	pushq	%rbp
	movq	%rsp, %rbp
	xorl	%edx, %edx
	xorl	%esi, %esi
	xorl	%r10d, %r10d
.endm

.macro child
2:	testl	%eax, %eax
	jz	2b
	subq	$64, %rsp /* the maker goes on */
3:	movl	$34, %eax /* pause */
	syscall
	jmp	3b
.endm

.macro by_clone name, flags, stack:vararg
maker \name
	movl	$(\flags), %edi
	\stack
	movl	$56, %eax
	syscall
	child
.endm

.macro by_clone3 name, flags, signal, stack, size
maker \name
	pushq	$0 /* tls */
	pushq	$(\size)
	leaq	\stack(%rip), %rax
	xorl	%ecx, %ecx
	movl	$(\size), %edx
	testl	%edx, %edx
	cmovz	%rcx, %rax
	pushq	%rax
	pushq	$(\signal)
	pushq	$0
	pushq	$0
	pushq	$0
	pushq	$(\flags)
	movq	%rsp, %rdi
	movl	$64, %esi
	movl	$435, %eax
	syscall
	child
.endm

by_clone thread, THREAD, leaq -512(%rsp), %rsi
by_clone spawned, SPAWN | SIGCHLD, leaq -512(%rsp), %rsi
by_clone container, SIGCHLD, leaq -512(%rsp), %rsi
by_clone forked, SIGCHLD
by_clone vforked, SPAWN | SIGCHLD, movq %rsp, %rsi
by_clone3 thread3, THREAD, 0, ground, 512
by_clone3 spawned3, SPAWN, SIGCHLD, ground, 512
by_clone3 forked3, 0, SIGCHLD, ground, 0
by_clone3 vforked3, SPAWN, SIGCHLD, ground, 0

/* As musl does it. */
maker thread_musl
	movl	$THREAD, %edi
	leaq	-512(%rsp), %rsi
	xorl	%eax, %eax
	movb	$56, %al
	movq	%rcx, (%rsi)
	syscall
	child

	.bss
	.p2align 4
ground:	.skip	512

	.section .note.GNU-stack, "", @progbits
