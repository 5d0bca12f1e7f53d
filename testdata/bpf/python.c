/*
 * A program that claims to be a CPython: it burns CPU, without a frame to go to, in a thread
 * whose state is what KIND says, for the tests of the BPF programs:
 *   python KIND
 *   -> "PID INTERPRETERS"
 * unreadable: it runs a frame that cannot be read.
 * no_code:    it runs a frame without a code object.
 * other:      it is another thread's.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define UNMAPPED 0x10000

/* PyThreadState and PyInterpreterState, of which the test knows the offsets. */
static struct {
	uint64_t next, native_id;
	void *frame;
	char rest[4096];
} thread;

static struct {
	uint64_t next;
	void *threads;
} interpreter = { .threads = &thread };

static struct {
	uint64_t previous, code, instruction, rest[16];
} no_code;

static void *interpreters = &interpreter;

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	no_code.code = 0; /* or it would not be in memory */
	thread.frame = strcmp(argv[1], "no_code") ? (void *)UNMAPPED : &no_code;
	if (strcmp(argv[1], "other"))
		thread.native_id = getpid();
	setpriority(PRIO_PROCESS, 0, 19);
	printf("%d %lu\n", getpid(), (unsigned long)&interpreters);
	fflush(stdout);
#if defined(__x86_64__)
	asm volatile("xor %%rbp, %%rbp\n 0: jmp 0b" : : : "memory");
#else
	asm volatile("mov x29, xzr\n 0: b 0b" : : : "memory");
#endif
	return 0;
}
