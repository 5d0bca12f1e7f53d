/*
 * A program that claims to be a V8, for the tests of the BPF programs:
 *   v8 KIND
 *   -> "PID START OBJECT OBJECT"
 * replaced: one function is compiled anew all the time, to the same place, and another one takes its place. Its machine
 *           code begins at START and has two loops. While the first one runs, up to LOOP bytes behind START, it is that
 *           of the first Code, and then that of the second; the other Code says the same of itself, but is out of use:
 *           nothing leads to it. The objects are the Codes.
 * baseline: code of the baseline compiler runs in the frame of its caller, which is another function, and is the code
 *           of the caller's caller, too. The objects are the SharedFunctionInfos of the caller and of its caller.
 * copied:   two functions are interpreted by a copy of the interpreter's entry, one calls the other. The objects are
 *           their SharedFunctionInfos.
 * spilled:  the same, but that the code is not of the kind of a copy.
 * far:      code runs FAR bytes behind its begin. The objects are Codes, it is in the first one.
 * edge:     the frame of the code that runs is none of a function's, and lies where begins what is mapped of the
 *           stack. Its caller is a function, whose SharedFunctionInfo is the first object; the second is START.
 * forked:   one function runs on one CPU, and in a child process, too, where its SharedFunctionInfo has another
 *           type. The first object is that, the second is the child's PID.
 * again:    a function has called itself, and has not made a frame yet. The objects are Codes, it is in the first one.
 * left:     the same, but that its frame is gone again, x86-64 only.
 * no_source: the script of the function that runs has a source that cannot be read. The objects are Codes.
 * Where fields are: v8Process of v8code_test.go.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#define TAG 1
#define LOOP 256
#define FAR 20000
#define CODE_BYTES 32768
#define HEADER 16 /* of machine code: its map, its Code */
#define OTHER 1	  /* kinds of code */
#define BUILTIN 2
#define BASELINE 3
#define OPTIMIZED 4
#define MAX_PAGE_BYTES 65536
#define UNMAPPED 0x10000
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
	uint64_t data; /* a SharedFunctionInfo's: its code of the baseline compiler */
	uint64_t unused[7];
};

enum {
	FUNCTION,
	SHARED,
	CODE,
	STREAM,
	LIST,
	SCRIPT,
	BYTECODE,
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

/* The same, but that it is called within. */
asm(".globl again, again_end\n"
    "again:\n"
#if defined(__x86_64__)
    "push %rbp; mov %rdi, %rbp; call 1f; pop %rbp; ret; 1: dec %rsi; jnz 1b; ret\n"
#else
    "stp x29, x30, [sp, #-16]!; mov x29, x0; bl 1f; ldp x29, x30, [sp], #16; ret; 1: subs x1, x1, #1; b.ne 1b; ret\n"
#endif
    "again_end:\n");
extern const char again[], again_end[];

#if defined(__x86_64__)
/* The same, further behind the begin, and behind the instruction that gives the frame pointer back. */
asm(".globl left, left_end\n"
    "left:\n"
    "push %rbp; mov %rdi, %rbp; call 1f; pop %rbp; ret; .skip 32; 1: push %rbp; pop %rbp; dec %rsi; jnz 1b; ret\n"
    "left_end:\n");
extern const char left[], left_end[];
#else
#define left again
#define left_end again_end
#endif

static struct map maps[TYPES];
static struct object functions[2], shared[2], codes[2], lists[2], bytecodes[2];

static uint64_t tagged(const void *object)
{
	return (uint64_t)object + TAG;
}

static char *start;
static uint64_t *stack; /* above that of what runs: there frames are looked for */

/* A frame pointer in the stack: below it a context and the function, at it that of the caller. */
static uint64_t *frame(int at, const struct object *function, const uint64_t *caller, const char *return_address)
{
	uint64_t *fp = &stack[at];

	fp[-1] = fp[-2] = tagged(function);
	fp[0] = (uint64_t)caller;
	fp[1] = (uint64_t)return_address;
	return fp;
}

static void run(int which, int at, const uint64_t *fp)
{
	uint64_t stream[HEADER / 8] = { tagged(&maps[STREAM]), tagged(&codes[which]) };

	memcpy(start - HEADER, stream, sizeof(stream));
	((void (*)(const uint64_t *, uint64_t))(void *)(start + at))(fp, TURNS);
}

static void replaced(void)
{
	for (unsigned turn = 0;; turn++) {
		functions[0].of = lists[0].of = lists[1].of = tagged(&shared[turn / 2 % 2]);
		run(turn % 2, turn % 2 * LOOP, frame(8, &functions[0], NULL, NULL));
	}
}

static void baseline(void)
{
	codes[0].kind = BASELINE;
	shared[1].data = tagged(&codes[0]);
	functions[0].of = tagged(&shared[0]);
	functions[1].of = tagged(&shared[1]);
	for (;;)
		run(0, 0, frame(8, &functions[0], frame(16, &functions[1], NULL, NULL), start + 1));
}

static void interpreted(uint32_t kind)
{
	uint64_t *outer = frame(16, &functions[1], NULL, NULL), *inner = frame(8, &functions[0], outer, start + 1);

	codes[0].kind = kind;
	for (int i = 0; i < 2; i++) {
		functions[i].of = tagged(&shared[i]);
		bytecodes[i].map = tagged(&maps[BYTECODE]);
	}
	inner[-4] = tagged(&bytecodes[0]);
	outer[-4] = tagged(&bytecodes[1]);
	inner[-5] = 40ULL << 32;
	outer[-5] = 45ULL << 32;
	for (;;)
		run(0, 0, inner);
}

static void edge(void)
{
	uint64_t *outer = frame(8, &functions[0], NULL, NULL), *inner = frame(2, &functions[0], outer, start + 1);

	inner[-1] = 0;		  /* a small integer */
	codes[0].kind = BASELINE; /* it does not tell whose it is */
	shared[0].data = tagged(&codes[0]);
	functions[0].of = tagged(&shared[0]);
	for (;;)
		run(0, 0, inner);
}

static void far(void)
{
	codes[0].bytes = CODE_BYTES - 128;
	functions[0].of = lists[0].of = tagged(&shared[0]);
	memcpy(start + FAR, loop, loop_end - loop);
	__builtin___clear_cache(start + FAR, start + FAR + LOOP);
	for (;;)
		run(0, FAR, frame(8, &functions[0], NULL, NULL));
}

static void calls_itself(const char *code, const char *end)
{
	functions[0].of = lists[0].of = tagged(&shared[0]);
	memcpy(start, code, end - code);
	__builtin___clear_cache(start, start + LOOP);
	for (;;)
		run(0, 0, frame(8, &functions[0], NULL, NULL));
}

static void no_source(void)
{
	static struct object script;

	script = (struct object){ .map = tagged(&maps[SCRIPT]), .of = UNMAPPED + TAG };
	script.unused[3] = 1ULL << 32; /* its id */
	shared[0].unused[2] = tagged(&script);
	functions[0].of = lists[0].of = tagged(&shared[0]);
	for (;;)
		run(0, 0, frame(8, &functions[0], NULL, NULL));
}

/* Returns twice; what is printed is the parent's. */
static pid_t fork_other(void)
{
	cpu_set_t first;
	pid_t child;

	CPU_ZERO(&first);
	CPU_SET(0, &first);
	sched_setaffinity(0, sizeof(first), &first);
	functions[0].of = lists[0].of = tagged(&shared[0]);
	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		maps[SHARED].type = TYPES + 1;
	}
	return child;
}

static void forked(void)
{
	for (;;)
		run(0, 0, frame(8, &functions[0], NULL, NULL));
}

int main(int argc, char **argv)
{
	struct rlimit seconds = { 120, 120 };
	int is_baseline = argc == 2 && !strcmp(argv[1], "baseline"), is_edge = argc == 2 && !strcmp(argv[1], "edge");
	int is_copied = argc == 2 && !strcmp(argv[1], "copied"), is_spilled = argc == 2 && !strcmp(argv[1], "spilled");
	int of_shared = is_baseline || is_copied || is_spilled;
	uint64_t frames[3 * MAX_PAGE_BYTES / 8] = {}, page_bytes = sysconf(_SC_PAGESIZE);
	char *page;

	stack = frames;
	if (is_edge) {
		page = (char *)(((uintptr_t)frames + page_bytes) & ~(uintptr_t)(page_bytes - 1));
		if (mprotect(page, page_bytes, PROT_NONE))
			return 1;
		stack = (uint64_t *)(page + page_bytes);
	}
	setrlimit(RLIMIT_CPU, &seconds);
	page = mmap(NULL, CODE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return 1;
	memset(page, 0, CODE_BYTES); /* or there would be no pages */
	start = page + 128;	     /* a multiple of what code is aligned to */
	for (int i = 0; i < TYPES; i++)
		maps[i].type = i + 1;
	for (int i = 0; i < 2; i++) {
		functions[i].map = tagged(&maps[FUNCTION]);
		shared[i].map = tagged(&maps[SHARED]);
		lists[i].map = tagged(&maps[LIST]);
		codes[i] =
			(struct object){ tagged(&maps[CODE]), tagged(&lists[i]), (uint64_t)start, OPTIMIZED, 2 * LOOP };
		memcpy(start + i * LOOP, loop, loop_end - loop);
	}
	__builtin___clear_cache(page, page + CODE_BYTES);
	if (argc == 2 && !strcmp(argv[1], "forked")) {
		pid_t child = fork_other();

		if (child > 0)
			printf("%d %lu %lu %d\n", getpid(), (uint64_t)start, tagged(&shared[0]), child);
		fflush(stdout);
		forked();
	}
	printf("%d %lu %lu %lu\n", getpid(), (uint64_t)start, tagged(of_shared || is_edge ? &shared[0] : &codes[0]),
	       is_edge ? (uint64_t)start : tagged(of_shared ? &shared[1] : &codes[1]));
	fflush(stdout);
	if (is_baseline)
		baseline();
	if (is_edge)
		edge();
	if (is_copied || is_spilled)
		interpreted(is_copied ? BUILTIN : OTHER);
	if (argc == 2 && !strcmp(argv[1], "far"))
		far();
	if (argc == 2 && !strcmp(argv[1], "no_source"))
		no_source();
	if (argc == 2 && !strcmp(argv[1], "again"))
		calls_itself(again, again_end);
	if (argc == 2 && !strcmp(argv[1], "left"))
		calls_itself(left, left_end);
	replaced();
}
