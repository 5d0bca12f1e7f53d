/*
 * Stacks of all kinds of frames that a compiler makes without frame pointers.
 *
 *   frames fault DEPTH   faults in leaf() at that depth and stops in the handler
 *   frames walk          stops, goes through all kinds of frames, and ends
 *
 * A stop is a breakpoint.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noinline, noclone))

#ifdef __aarch64__
#define STOP() __asm__ volatile("brk #0")
#else
#define STOP() __asm__ volatile("int3")
#endif

static int numbers[] = { 5, 3, 9, 1, 7 };
static int *nowhere;
static volatile int sink;

int recurse(int depth, int (*end)(int *));

NOINLINE int leaf(int *p)
{
	return *p + 1;
}

NOINLINE int quiet(int *p)
{
	return p == NULL;
}

NOINLINE static void on_fault(int sig)
{
	sink = sig;
	STOP();
	sink = 0;
}

/* The stack pointer is aligned, the old one is kept on the stack. */
NOINLINE int realigned(int depth, int (*end)(int *))
{
	volatile char block[100] __attribute__((aligned(128)));

	block[depth % 100] = 1;
	return recurse(depth - 1, end) + block[depth % 100];
}

/* Of a size that is not known before. */
NOINLINE int variable(int depth, int (*end)(int *))
{
	volatile char block[64 + depth % 7 * 16];

	block[depth % 64] = 1;
	return recurse(depth - 1, end) + block[depth % 64];
}

/* Aligned, and of a size that is not known before. */
NOINLINE int both(int depth, int (*end)(int *))
{
	volatile char block[100] __attribute__((aligned(64)));
	volatile char more[64 + depth % 7 * 16];

	block[depth % 100] = more[depth % 64] = 1;
	return recurse(depth - 1, end) + block[depth % 100] + more[depth % 64];
}

/* Seven arguments on the stack. */
NOINLINE int pushing(int a, int b, int c, int d, int e, int f, int g, int h, int depth, int (*end)(int *))
{
	return recurse(depth - 1, end) + a + b + c + d + e + f + g + h;
}

static int reached;
static int callback_depth;
static int (*callback_end)(int *);

NOINLINE int compare(const void *a, const void *b)
{
	if (!reached++)
		sink = recurse(callback_depth, callback_end);
	return *(const int *)a - *(const int *)b;
}

/* Through a function of the C library, which may have no call frame information: NO_SORT. */
NOINLINE int sorted(int depth, int (*end)(int *))
{
	int copy[5];

	memcpy(copy, numbers, sizeof(copy));
	reached = 0;
	callback_depth = depth - 1;
	callback_end = end;
	qsort(copy, 5, sizeof(copy[0]), compare);
	return copy[0];
}

/* Compilers make loops of what calls itself last. */
NOINLINE int recurse(int depth, int (*end)(int *))
{
	int result;

	if (depth <= 0)
		result = end(nowhere);
	else if (depth % 16 == 1)
		result = realigned(depth, end);
	else if (depth % 16 == 3)
		result = variable(depth, end);
	else if (depth % 16 == 5)
		result = both(depth, end);
	else if (depth % 16 == 7)
		result = pushing(1, 2, 3, 4, 5, 6, 7, 8, depth, end);
#ifndef NO_SORT
	else if (depth % 16 == 9)
		result = sorted(depth, end);
#endif
	else
		result = recurse(depth - 1, end);
	sink = result;
	return result + 1;
}

int main(int argc, char **argv)
{
	static char alternate[64 << 10];
	stack_t stack = { .ss_sp = alternate, .ss_size = sizeof(alternate) };
	struct sigaction action = { .sa_handler = on_fault, .sa_flags = SA_ONSTACK };
	char line[64];

	if (argc == 3 && !strcmp(argv[1], "fault")) {
		sigaltstack(&stack, NULL);
		sigaction(SIGSEGV, &action, NULL);
		return recurse(atoi(argv[2]), leaf);
	}
	STOP();
	sink = recurse(20, quiet);
	/* The first calls go through the dynamic loader. */
	snprintf(line, sizeof(line), "%d %s %.3f\n", sink, argv[0], 0.5);
	sink = (int)strtol(line, NULL, 10) + (int)strlen(line);
	STOP();
	return 0;
}
