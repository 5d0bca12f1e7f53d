/*
 * A program that executes another one with a thread pointer at which that one, whose addresses are the same, has what
 * looks like labels.
 */
#include <sched.h>
#include <sys/personality.h>

static struct label decoy_label = { { 5, (const unsigned char *)"decoy" }, { 5, (const unsigned char *)"label" } };
static struct set decoy_set = { &decoy_label, 1, 1 };
static struct set *volatile decoy = &decoy_set;

/* Takes the thread pointer, is switched out, and executes: nothing else can be called with that pointer. */
__attribute__((noinline)) static void execute_with_pointer(uintptr_t pointer, char **argv)
{
	static const struct timespec nap = { 0, 20000000 };
#ifdef __aarch64__
	register uintptr_t x0 __asm__("x0") = (uintptr_t)&nap, x1 __asm__("x1") = 0,
			      x2 __asm__("x2") = (uintptr_t)environ;
	register uintptr_t x8 __asm__("x8") = SYS_nanosleep;

	__asm__ volatile(
		"msr tpidr_el0, %[pointer]\n"
		"svc #0\n"
		"mov x0, %[path]\n"
		"mov x1, %[argv]\n"
		"mov x8, %[execve]\n"
		"svc #0\n"
		"brk #1"
		: "+r"(x0), "+r"(x1), "+r"(x8)
		: "r"(x2), [pointer] "r"(pointer), [path] "r"(argv[0]), [argv] "r"(argv), [execve] "i"(SYS_execve)
		: "memory");
#else
	enum {
		ARCH_SET_FS = 0x1002
	};
	register uintptr_t rax __asm__("rax") = SYS_arch_prctl, rdi __asm__("rdi") = ARCH_SET_FS,
			       rsi __asm__("rsi") = pointer;

	__asm__ volatile("syscall\n"
			 "mov %[nanosleep], %%eax\n"
			 "mov %[nap], %%rdi\n"
			 "xor %%esi, %%esi\n"
			 "syscall\n"
			 "mov %[execve], %%eax\n"
			 "mov %[path], %%rdi\n"
			 "mov %[argv], %%rsi\n"
			 "mov %[envp], %%rdx\n"
			 "syscall\n"
			 "ud2"
			 : "+r"(rax), "+r"(rdi), "+r"(rsi)
			 : [nap] "r"(&nap), [path] "r"(argv[0]), [argv] "r"(argv), [envp] "r"(environ),
			   [nanosleep] "i"(SYS_nanosleep), [execve] "i"(SYS_execve)
			 : "rcx", "rdx", "r11", "memory");
#endif
}

/*
 * Begins anew where addresses are not random, then once more with the pointer: the third program never gives up its
 * CPU, which threads of ordinary priority do not take from it for most of a second.
 */
static void execute_again(char **argv)
{
	const struct sched_param first = { .sched_priority = 1 };
	char *again[] = { "/proc/self/exe", "never-switched", NULL };

	if (personality(0xffffffff) & ADDR_NO_RANDOMIZE)
		execute_with_pointer((uintptr_t)&decoy - (uintptr_t)((char *)&v1 - (char *)__builtin_thread_pointer()),
				     again);
	sched_setscheduler(0, SCHED_FIFO, &first);
	personality(ADDR_NO_RANDOMIZE);
	execv("/proc/self/exe", argv);
	perror("execv");
	exit(1);
}
