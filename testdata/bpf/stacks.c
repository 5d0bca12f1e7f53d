/*
 * A thread whose stack, registers or unwind tables are not what they should be, or are
 * still those of the thread that has made it, for the tests of the BPF programs. Burns
 * CPU in a function of stacks_ARCH.S:
 *   stacks KIND
 *   -> "PID START"
 * START is where that function begins. What burns CPU may be a child.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>
#include <unistd.h>

#define KINDS(kind)                                                                                                    \
	kind(wild_sp) kind(kernel_sp) kind(far_cfa) kind(cfa_below) kind(cfa_stays) kind(kernel_caller)                \
		kind(calls_itself) kind(ends_in_call) kind(signal_loop) kind(fp_circle) kind(fp_unmapped)              \
			kind(fp_kernel) kind(fp_misaligned) kind(fp_below_sp) kind(fp_zero) kind(thread)               \
				kind(thread_musl) kind(thread3) kind(spawned) kind(spawned3) kind(container)           \
					kind(forked) kind(forked3) kind(vforked) kind(vforked3)

#define DECLARE(name) void name(void);
KINDS(DECLARE)
#if defined(__x86_64__)
DECLARE(split_word) /* aarch64 keeps the stack pointer aligned */
/* and frame pointers */
DECLARE(fp_of_keeper)
DECLARE(fp_lower)
DECLARE(fp_lower_no_call)
DECLARE(fp_upper)
DECLARE(fp_upper_again)
DECLARE(fp_behind_nop)
DECLARE(fp_behind_call_of_table)
DECLARE(calls_padded_loop)
DECLARE(calls_bare_probed)
void load_twice(const char *pages);
#endif

/* Where the last word of linked frames is, in every process that has them. */
#define LINKS_END 0x3000100000
#define LINK_BYTES 56 /* so that of many one lies across two pages of 4 KiB */

/*
 * Stays with the innermost of so many frame pointers, which lead up to the last word of what
 * is mapped. Return addresses count from first, in steps.
 */
static void link_frames(int links, uintptr_t first, long step)
{
	size_t bytes = 1 << 16;
	char *from = mmap((void *)(LINKS_END - bytes), bytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	uintptr_t link = LINKS_END - 16 - (links - 1) * LINK_BYTES, innermost = link;

	if (from == MAP_FAILED)
		return;
	for (int i = 0; i < links; i++, link += LINK_BYTES)
		memcpy((void *)link, (uintptr_t[]){ i == links - 1 ? 0 : link + LINK_BYTES, first + step * i }, 16);
#if defined(__x86_64__)
	asm volatile("mov $1, %%eax; mov %0, %%rsp; mov %0, %%rbp; 9: jmp 9b" ::"r"(innermost) : "rax");
#else
	asm volatile("mov x0, #1; mov sp, %0; mov x29, %0; 9: b 9b" ::"r"(innermost) : "x0");
#endif
}

static void many_links(void)
{
	link_frames(120, 0x10000, 16);
}

static void links_down(void)
{
	link_frames(120, 0x10000 + 119 * 16, -16);
}

/* Functions that are called all the time, with frame pointers. The innermost takes some 0.1 ms. */
static volatile unsigned long value;
#define CALLED(name, body)                                                                                             \
	__attribute__((noinline, noclone, optimize("no-omit-frame-pointer", "no-optimize-sibling-calls"))) void name(  \
		void)                                                                                                  \
	{                                                                                                              \
		body;                                                                                                  \
		value++;                                                                                               \
	}
CALLED(innermost, value = (unsigned long)__builtin_frame_address(0); for (int i = 0; i < 100000; i++) value++)
CALLED(probed, innermost())
CALLED(between, probed())
CALLED(probed_too, between())
CALLED(outermost, probed_too())
CALLED(calls, for (;;) outermost())
CALLED(often, )
CALLED(calls_often, for (;;) often())

/* Which a test probes, so that the kernel knows this thread as one that comes by probes. */
CALLED(once, )

#if defined(__x86_64__)

static void loads(void)
{
	char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	once();
	while (pages != MAP_FAILED && !madvise(pages, 8192, MADV_DONTNEED))
		load_twice(pages);
}

static void stays_at_first(void)
{
	once();
	calls_padded_loop();
}

#endif

/* Returns from a signal to where no address is, which is the next signal. Bit 55 keeps aarch64 from dropping what is
 * above it. */
static void to_no_address(int signal, siginfo_t *info, void *context)
{
	mcontext_t *at = &((ucontext_t *)context)->uc_mcontext;
#if defined(__x86_64__)
	at->gregs[REG_RIP] = 0x8180000000000004;
#else
	at->pc = 0x8180000000000004;
#endif
}

static void no_address(void)
{
	struct sigaction action = { .sa_sigaction = to_no_address, .sa_flags = SA_SIGINFO };

	sigaction(SIGSEGV, &action, NULL);
	raise(SIGSEGV);
}

static void few_links(void)
{
	link_frames(4, 0x20000, 16);
}

static void other_links(void)
{
	link_frames(4, 0x30000, 16);
}

/* With the code of pointer authentication from bit 39 on, as where a kernel gives programs that many bits. */
static void signed_links(void)
{
	link_frames(4, 0x40000 | ((1UL << 55) - (1UL << 39)), 16);
}

static const struct {
	const char *name;
	void (*run)(void);
} kinds[] = {
#define ENTRY(name) { #name, name },
	KINDS(ENTRY) ENTRY(many_links) ENTRY(links_down) ENTRY(few_links) ENTRY(other_links) ENTRY(signed_links)
		ENTRY(calls) ENTRY(calls_often) ENTRY(no_address)
#if defined(__x86_64__)
			ENTRY(split_word) ENTRY(fp_of_keeper) ENTRY(fp_lower) ENTRY(fp_lower_no_call) ENTRY(fp_upper)
				ENTRY(fp_upper_again) ENTRY(fp_behind_nop) ENTRY(fp_behind_call_of_table)
					ENTRY(calls_bare_probed) ENTRY(loads) ENTRY(stays_at_first)
#endif
};

int main(int argc, char **argv)
{
	/* Of children, too, which nothing else ends if the test does not. */
	struct rlimit seconds = { 120, 120 };

	setrlimit(RLIMIT_CPU, &seconds);
	for (size_t i = 0; argc == 2 && i < sizeof(kinds) / sizeof(*kinds); i++) {
		if (strcmp(argv[1], kinds[i].name))
			continue;
		printf("%d %lu\n", getpid(), (unsigned long)kinds[i].run);
		fflush(stdout);
		kinds[i].run();
	}
	return 2;
}
