/*
 * A thread pointer of our own, with a DTV as a C library keeps it, right and otherwise:
 * states of target.c. Layouts as in internal/bpf/src/tls.bpf.h. The variable is in module 2, at
 * DTV_OFFSET of its block, and was loaded in generation 7.
 */
#ifndef TARGET_DTV_H
#define TARGET_DTV_H

#define DTV_MODULE 2
#define DTV_GENERATION 7
#define DTV_OFFSET 24
#define DTV_UNALLOCATED (~0ULL) /* glibc: TLS_DTV_UNALLOCATED */

static uint64_t dtv_block[8];
static uint64_t dtv_array[16];
static uint64_t dtv_head[4];
static uint64_t dtv_thread_pointer;

/* Where the DTV is told, from the thread pointer. */
#ifdef __x86_64__
#define DTV_POINTER(libc) (&dtv_head[2])
#else
#define DTV_POINTER(libc) (*(libc) == 'm' ? &dtv_head[0] : &dtv_head[1])
#endif

/* state is without the prefix "dtv-": the C library and what is wrong. */
static int dtv_fill(const char *state, void *variable)
{
	int musl = !strncmp(state, "musl-", 5);
	const char *kind = strchr(state, '-') + 1;
	/* glibc: {modules}, {generation}, then {block, to free} of each; musl: modules, then blocks. */
	uint64_t *modules = &dtv_array[0], *generation = &dtv_array[2], *blocks = &dtv_array[musl ? 0 : 2];
	uint64_t *block = blocks + (musl ? 1 : 2) * DTV_MODULE;

	dtv_block[DTV_OFFSET / 8] = (uintptr_t)variable;
	*generation = DTV_GENERATION;
	*modules = DTV_MODULE;
	*block = (uintptr_t)dtv_block;
	*DTV_POINTER(state) = (uintptr_t)blocks;
	dtv_thread_pointer = (uintptr_t)&dtv_head[1];
	if (!strcmp(kind, "none"))
		*DTV_POINTER(state) = 0;
	else if (!strcmp(kind, "unmapped"))
		*DTV_POINTER(state) = 0x10000;
	else if (!strcmp(kind, "short"))
		*modules = DTV_MODULE - 1;
	else if (!strcmp(kind, "old") && !musl)
		*generation = DTV_GENERATION - 1;
	else if (!strcmp(kind, "young") && !musl)
		*generation = DTV_GENERATION + 1;
	else if (!strcmp(kind, "untouched"))
		*block = musl ? 0 : DTV_UNALLOCATED;
	else if (!strcmp(kind, "zero") && !musl)
		*block = 0;
	else if (!strcmp(kind, "lost-block"))
		*block = 0x10000;
	else if (!strcmp(kind, "no-pointer"))
		dtv_thread_pointer = 0;
	else if (strcmp(kind, "right"))
		return 0;
	return 1;
}

#ifdef __x86_64__
#define DTV_SET_FS 0x1002 /* ARCH_SET_FS, arch/x86/include/uapi/asm/prctl.h */
#endif

/* Says line when the kernel knows the thread pointer, and stays. */
__attribute__((noinline, noreturn)) static void dtv_burn(const char *line, size_t bytes)
{
#ifdef __x86_64__
	raw_call(SYS_arch_prctl, DTV_SET_FS, (long)dtv_thread_pointer, 0);
#else
	asm volatile("msr tpidr_el0, %0" : : "r"(dtv_thread_pointer) : "memory");
#endif
	sleep_until_switched(20000);
	raw_call(SYS_write, 1, (long)line, (long)bytes);
	for (;;)
		asm volatile("");
}

#endif
