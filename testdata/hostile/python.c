// SPDX-License-Identifier: Apache-2.0
/*
 * A program that says that it is CPython 3.13, and has in memory what its first argument says. Its
 * structs are its own; where their fields are is in _PyRuntime, as in 3.13's _Py_DebugOffsets
 * (Include/internal/pycore_debug_offsets.h). With BAD_OFFSET, one is where no field can be.
 *
 *   python MODE FILE    FILE is what its functions say that they are from
 */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WORDS 96    /* of _Py_DebugOffsets */
#define FRAMES 400  /* of the modes that have many */
#define CODES 65536 /* of the mode that has too many */

struct text {
	uint64_t references, type, length, hash, state;
	char ascii[64];
};

struct bytes {
	uint64_t references, type, size, hash;
	char text[64];
};

/* The longest table of lines that is read. */
struct many_bytes {
	struct bytes head;
	char more[64 << 10];
};

struct code {
	uint64_t references, type, size;
	struct text *file, *name;
	struct bytes *lines;
	uint64_t first_line, instructions;
};

struct frame {
	struct frame *previous;
	struct code *code;
	uint64_t instruction, owner;
	uint64_t unused[8]; /* as much is read */
};

struct thread {
	struct thread *next;
	struct frame *frame;
	uint64_t native_id;
};

struct interpreter {
	struct interpreter *next;
	struct thread *threads;
};

const unsigned long Py_Version = 0x030d00f0;
char PyCode_Type[8];

struct {
	uint64_t offsets[WORDS];
	struct interpreter *interpreters;
} _PyRuntime = {
	.offsets = {
		[0] = 0x7970677562656478, /* xdebugpy */
		[1] = 0x030d00f0,
		[5] = 8 * WORDS, /* interpreters_head */
		[8] = 0,	 /* interpreter_state.next */
		[9] = 8,	 /* threads_head */
		[21] = 0,	 /* thread_state.next */
		[23] = 8,	 /* current_frame */
#ifdef BAD_OFFSET
		[25] = 1ULL << 40,
#else
		[25] = 16, /* native_thread_id */
#endif
		[29] = 0,  /* interpreter_frame.previous */
		[30] = 8,  /* executable */
		[31] = 16, /* instr_ptr */
		[33] = 24, /* owner */
		[35] = 24, /* code_object.filename */
		[37] = 32, /* qualname */
		[38] = 40, /* linetable */
		[39] = 48, /* firstlineno */
		[43] = 56, /* co_code_adaptive */
		[45] = 8,  /* pyobject.ob_type */
		[65] = 16, /* bytes_object.ob_size */
		[66] = 32, /* ob_sval */
		[68] = 32, /* unicode_object.state */
		[69] = 16, /* length */
		[70] = 40, /* asciiobject_size */
	},
};

enum {
	ASCII = 0x64,
	OWNED_BY_C = 3
};

static struct text file_name = { .state = ASCII };
static struct text names[2] = {
	{ .length = 9, .state = ASCII, .ascii = "hostile_a" },
	{ .length = 9, .state = ASCII, .ascii = "hostile_b" },
};
static struct many_bytes many_lines;
static struct bytes lines = { .size = 2, .text = { (char)0x80, 0 } };
static struct code codes[CODES];
static struct frame frames[FRAMES];
static struct thread thread;
static struct interpreter interpreter;

static int is(const char *mode, const char *name)
{
	return strcmp(mode, name) == 0;
}

static int many(const char *mode)
{
	return is(mode, "too-many") || is(mode, "large");
}

static void fill(struct code *c)
{
	*c = (struct code){ .references = 1,
			    .type = (uint64_t)PyCode_Type,
			    .size = 8,
			    .file = &file_name,
			    .name = &names[0],
			    .lines = &lines,
			    .first_line = 7 };
}

/* A chain of n frames that ends with entry. */
static void chain(unsigned n, struct frame *entry)
{
	for (unsigned i = 0; i < n; i++)
		frames[i] = (struct frame){ .previous = i + 1 < n ? &frames[i + 1] : entry, .code = &codes[i] };
	thread.frame = &frames[0];
}

/* What a mode goes on to change while it is sampled. */
static __attribute__((noinline)) void run(const char *mode)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);

	printf("ready %d\n", getpid());
	fflush(stdout);
	for (uint64_t round = 0;; round++) {
		for (volatile int i = 0; i < 2000; i++)
			;
		if (is(mode, "changing")) {
			codes[0].name = &names[round & 1];
		} else if (many(mode)) {
			for (unsigned i = 0; i < FRAMES; i++)
				frames[i].code = &codes[(round * FRAMES + i) % CODES];
		} else if (is(mode, "freed")) {
			struct code *c = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

			if (c == MAP_FAILED)
				return;
			fill(c);
			frames[0].code = c;
			for (volatile int i = 0; i < 200000; i++)
				;
			frames[0].code = &codes[0];
			munmap(c, page);
		}
	}
}

/* Its C stack has the frame that ends a chain. */
static __attribute__((noinline)) void evaluate(const char *mode)
{
	struct frame entry = { .owner = OWNED_BY_C };

	chain(many(mode) ? FRAMES : 2, &entry);
	if (is(mode, "no-thread")) {
		thread.native_id = 1;
	} else if (is(mode, "thread-cycle")) {
		thread.native_id = 1;
		thread.next = &thread;
	} else if (is(mode, "interpreter-cycle")) {
		interpreter.threads = NULL;
		interpreter.next = &interpreter;
	} else if (is(mode, "frame-cycle")) {
		frames[1].previous = &frames[0];
	} else if (is(mode, "evaluation-cycle")) {
		entry.previous = &entry;
	} else if (is(mode, "elsewhere")) {
		chain(2, NULL);
		frames[1].previous = &frames[2];
		frames[2] = (struct frame){ .owner = OWNED_BY_C }; /* not on the stack */
	} else if (is(mode, "kernel-frame")) {
		thread.frame = (struct frame *)0xffffffff81000000;
	} else if (is(mode, "no-frame-memory")) {
		frames[0].previous = (struct frame *)0x1000;
	} else if (is(mode, "no-address")) {
		frames[0].code = (struct code *)0xdead000000000000;
	} else if (is(mode, "other-type")) {
		codes[0].type = 8;
	} else if (is(mode, "no-references")) {
		codes[0].references = codes[1].references = 0;
	} else if (is(mode, "long-name")) {
		names[0].length = UINT64_MAX;
	} else if (is(mode, "no-name")) {
		codes[0].name = NULL;
	} else if (is(mode, "no-text")) {
		names[0].state = 0;
	} else if (is(mode, "wide-name")) {
		names[0].state = 0x30; /* 4 bytes a character, not ASCII */
		memset(names[0].ascii, 0xff, sizeof(names[0].ascii));
	} else if (is(mode, "control-name")) {
		memcpy(names[0].ascii, "\033[2J\n\0\r\177", 9);
	} else if (is(mode, "no-file")) {
		codes[0].file = (struct text *)0x10;
	} else if (is(mode, "long-lines")) {
		lines.size = UINT64_MAX;
	} else if (is(mode, "large")) {
		memset(many_lines.head.text, 0x80, sizeof(many_lines) - offsetof(struct many_bytes, head.text));
		many_lines.head.size = sizeof(many_lines.more);
		for (unsigned i = 0; i < CODES; i++)
			codes[i].lines = &many_lines.head;
	} else if (is(mode, "bad-lines")) {
		lines.size = sizeof(lines.text);
		memset(lines.text, 0x7f, sizeof(lines.text));
	}
	run(mode);
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	file_name.length = strnlen(argv[2], sizeof(file_name.ascii));
	memcpy(file_name.ascii, argv[2], file_name.length);
	for (unsigned i = 0; i < CODES; i++)
		fill(&codes[i]);
	thread = (struct thread){ .native_id = (uint64_t)syscall(SYS_gettid) };
	interpreter = (struct interpreter){ .threads = &thread };
	_PyRuntime.interpreters = &interpreter;
	evaluate(argv[1]);
	return 1;
}
