/*
 * A program that claims to be a HotSpot: it burns CPU in a code heap that it has made up, whose
 * tables and stack are what KIND says, for the tests of the BPF programs:
 *   hotspot KIND
 *   -> "PID HEAP SEGMENTS"
 * The heap has HEAP_BYTES; the interpreter is its second half. Offsets are those of HotSpot 17.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define HEAP_BYTES (1 << 20)
#define STACK_BYTES (1 << 20)
#define SEGMENT_SHIFT 7
#define BLOCK 16     /* of a heap block before its CodeBlob */
#define CODE 512     /* of a CodeBlob before its code */
#define USED 0x10000 /* of the heap, where a CodeBlob is at its end */
#define SMALL 192    /* of that one before its code, which is short */
#define UNMAPPED 0x10000

static char *map(size_t bytes)
{
	return mmap(NULL, bytes, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void put(char *at, uint64_t v)
{
	memcpy(at, &v, sizeof(v));
}

static void put_half(char *at, uint32_t v)
{
	memcpy(at, &v, sizeof(v));
}

static void put_loop(char *at)
{
#if defined(__x86_64__)
	memcpy(at, "\xeb\xfe", 2);
#else
	put_half(at, 0x14000000);
#endif
}

/* A call, behind which is an address. */
static void put_call(char *behind)
{
#if defined(__x86_64__)
	put_half(behind - 5, 0xe8);
#else
	put_half(behind - 4, 0x94000000);
#endif
}

static void run(char *code, char *sp, char *fp)
{
#if defined(__x86_64__)
	asm volatile("mov %1, %%rsp\n mov %2, %%rbp\n xor %%r13, %%r13\n jmp *%0" : : "a"(code), "S"(sp), "D"(fp));
#else
	asm volatile("mov sp, %1\n mov x29, %2\n mov x30, xzr\n br %0" : : "r"(code), "r"(sp), "r"(fp) : "x30");
#endif
}

int main(int argc, char **argv)
{
	struct rlimit seconds = { 120, 120 };
	char *heap = map(HEAP_BYTES), *segments = map(HEAP_BYTES >> SEGMENT_SHIFT), *stack = map(STACK_BYTES), *blob,
	     *code;
	char *method = map(4096), *sp = stack + 4096, *fp = sp;
	const char *kind = argc == 2 ? argv[1] : "";
	int words = 2;

	setrlimit(RLIMIT_CPU, &seconds);
	memset(segments, 254, HEAP_BYTES >> SEGMENT_SHIFT);
	for (int i = 0; i < 254; i++)
		segments[i] = i;
	blob = heap + BLOCK;
	code = blob + CODE;
	if (!strcmp(kind, "huge_frame"))
		words = 0x7fffffff;
	if (!strcmp(kind, "at_end")) {
		blob = heap + USED - (2 << SEGMENT_SHIFT) + BLOCK;
		code = blob + SMALL;
		segments[(blob - heap) >> SEGMENT_SHIFT] = 0;
		segments[(code - heap) >> SEGMENT_SHIFT] = 1;
	}
	put(blob + 96, (uint64_t)"nmethod");
	put_half(blob + 12, !strcmp(kind, "at_end") ? heap + USED - blob : HEAP_BYTES - BLOCK);
	put_half(blob + 28, words);
	put(blob + 32, (uint64_t)code);
	if (!strcmp(kind, "stubs") || !strncmp(kind, "continuation", 12) || !strcmp(kind, "at_end")) {
		/* Frames without a size, of stubs that call each other. */
		put(blob + 96,
		    (uint64_t)(*kind == 'c' ? "StubRoutines (continuation stubs)" : "StubRoutines (final stubs)"));
		put_half(blob + 28, 0);
		put_call(code + 8);
	}
	if (!strcmp(kind, "continuation_high"))
		put(heap + HEAP_BYTES - 8, 0x8300000000000001); /* where a continuation returns to: no address */
	if (!strcmp(kind, "no_name"))
		put(blob + 96, UNMAPPED);
	if (!strcmp(kind, "small_blob"))
		put_half(blob + 12, 64);
	if (!strcmp(kind, "free_segments"))
		memset(segments, 255, HEAP_BYTES >> SEGMENT_SHIFT);
	if (!strcmp(kind, "long_way")) {
		/* The code is further from the begin of its block than is looked at. */
		memset(segments, 1, HEAP_BYTES >> SEGMENT_SHIFT);
		code = heap + (100 << SEGMENT_SHIFT);
	}
	if (!strcmp(kind, "no_segments"))
		segments = (char *)UNMAPPED;
	/* Frames without an end, as long as there is stack. */
	for (char *at = stack; at < stack + STACK_BYTES; at += 16) {
		put(at, (uint64_t)at + 16);
		put(at + 8, (uint64_t)code + 8);
	}
	if (!strncmp(kind, "interpreted", 11)) {
		code = heap + HEAP_BYTES / 2 + 64;
		memset(stack, 0, STACK_BYTES);
		/* A Method that leads to itself: its bytecodes are behind 48 bytes of it. */
		for (int i = 0; i < 4096; i += 8)
			put(method + i, (uint64_t)method);
		put(method + 32, 100); /* the size of the bytecodes, and indices */
		fp = stack + 8192;
		for (char *at = fp; at < stack + STACK_BYTES - 256; at += 128) {
			put(at - 64, (uint64_t)method + 48 + 5); /* bytecode */
			put(at - 24, (uint64_t)method);
			put(at - 8, (uint64_t)at + 16); /* the sender's stack pointer */
			put(at, (uint64_t)at + 128);
			put(at + 8, (uint64_t)code + 8);
		}
		sp = fp - 80;
		if (!strcmp(kind, "interpreted_circle"))
			put(fp, (uint64_t)fp);
		if (!strcmp(kind, "interpreted_no_method"))
			put(fp - 24, UNMAPPED);
		if (!strcmp(kind, "interpreted_below"))
			put(fp - 8, (uint64_t)fp - 64);
	}
	put_loop(code);
	if (!strcmp(kind, "at_end") && mprotect(heap + USED, HEAP_BYTES / 2 - USED, PROT_NONE))
		return 1;
	printf("%d %lu %lu\n", getpid(), (unsigned long)heap, (unsigned long)segments);
	fflush(stdout);
	run(code, sp, fp);
	return 2;
}
