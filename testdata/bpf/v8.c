/*
 * A program that claims to be a V8 with one function, which is compiled anew all the time, to the same place, and of
 * which others take the place: for the tests of the BPF programs.
 *   v8
 *   -> "PID START CODE CODE"
 * Its machine code begins at START and has two loops. While the first one runs, up to LOOP bytes behind START, it is
 * that of the first Code, and then that of the second; the other Code says the same of itself, but is out of use:
 * nothing leads to it. Where fields are: v8Process of v8code_test.go.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define TAG 1
#define LOOP 256
#define HEADER 16     /* of machine code: its map, its Code */
#define KIND 4	      /* of code: optimized */
#define TURNS 2000000 /* of a loop, some milliseconds */

struct map {
	uint64_t unused;
	uint32_t more;
	uint32_t type;
};

struct object {
	uint64_t map;
	uint64_t of; /* a function's SharedFunctionInfo, a Code's deoptimization data, and what that is of */
	uint64_t start;
	uint32_t kind;
	uint32_t bytes;
	uint64_t unused[8];
};

enum {
	FUNCTION,
	SHARED,
	CODE,
	STREAM,
	LIST,
	TYPES
};

/* Called with a frame pointer and a number of turns. */
asm(".globl loop, loop_end\n"
    "loop:\n"
#if defined(__x86_64__)
    "push %rbp; mov %rdi, %rbp; 1: dec %rsi; jnz 1b; pop %rbp; ret\n"
#else
    "stp x29, x30, [sp, #-16]!; mov x29, x0; 1: subs x1, x1, #1; b.ne 1b; ldp x29, x30, [sp], #16; ret\n"
#endif
    "loop_end:\n");
extern const char loop[], loop_end[];

static struct map maps[TYPES];
static struct object function, shared[2], codes[2], lists[2];

static uint64_t tagged(const void *object)
{
	return (uint64_t)object + TAG;
}

int main(void)
{
	struct rlimit seconds = { 120, 120 };
	uint64_t frame[7] = {}, *fp = &frame[5], stream[HEADER / 8];
	char *page, *start;

	setrlimit(RLIMIT_CPU, &seconds);
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return 1;
	start = page + 128; /* a multiple of what code is aligned to */
	for (int i = 0; i < TYPES; i++)
		maps[i].type = i + 1;
	function.map = tagged(&maps[FUNCTION]);
	for (int i = 0; i < 2; i++) {
		shared[i].map = tagged(&maps[SHARED]);
		lists[i].map = tagged(&maps[LIST]);
		codes[i] = (struct object){ tagged(&maps[CODE]), tagged(&lists[i]), (uint64_t)start, KIND, 2 * LOOP };
		memcpy(start + i * LOOP, loop, loop_end - loop);
	}
	__builtin___clear_cache(page, page + 4096);
	fp[-1] = fp[-2] = tagged(&function); /* a context, the function */
	printf("%d %lu %lu %lu\n", getpid(), (uint64_t)start, tagged(&codes[0]), tagged(&codes[1]));
	fflush(stdout);
	for (unsigned turn = 0;; turn++) {
		function.of = lists[0].of = lists[1].of = tagged(&shared[turn / 2 % 2]);
		stream[0] = tagged(&maps[STREAM]);
		stream[1] = tagged(&codes[turn % 2]);
		memcpy(start - HEADER, stream, sizeof(stream));
		((void (*)(uint64_t *, uint64_t))(void *)(start + turn % 2 * LOOP))(fp, TURNS);
	}
}
