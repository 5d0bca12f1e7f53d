/*
 * Claims to be a V8, by the symbols that it is compiled with, and has nonsense where one has its
 * heap: code that was generated runs with frame pointers to made-up frames, whose objects are at
 * random pointers to each other, maps of the right types, small integers, forwarding addresses
 * and lengths. All of it changes all the time. x86-64.
 *
 *   hostilev8 TYPE...     types of objects, as maps have them
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define WORDS 8192
#define FRAMES 200
#define FRAME_WORDS 8
#define CODE_BYTES (64 << 10)
#define ALIGNMENT 64
#define HEADER 32 /* of an InstructionStream */

static uint64_t arena[WORDS] __attribute__((aligned(16)));
static unsigned types;
static uint64_t seed = 88172645463325252ULL;

static uint64_t any(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static uint64_t object(void)
{
	return (uint64_t)&arena[any() % WORDS] + 1;
}

static uint64_t map(void)
{
	return (uint64_t)&arena[2 * (any() % types)] + 1;
}

static uint64_t value(const unsigned char *code)
{
	switch (any() % 8) {
	case 0:
	case 1:
		return map();
	case 2:
		return (any() % 64) << 32;
	case 3:
		return any() << 32;
	case 4:
		return object() - 1; /* moved */
	case 5:
		return (uint64_t)code + any() % CODE_BYTES;
	case 6:
		return any();
	}
	return object();
}

/* Loops with a frame pointer: push %rbp; mov %rdi, %rbp; 1: dec %rsi; jnz 1b; pop %rbp; ret */
static const unsigned char loop[] = { 0x55, 0x48, 0x89, 0xfd, 0x48, 0xff, 0xce, 0x75, 0xfb, 0x5d, 0xc3 };

int main(int argc, char **argv)
{
	uint64_t frames[FRAME_WORDS * (FRAMES + 2)];
	unsigned char *code;

	types = argc - 1;
	code = mmap(NULL, CODE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (code == MAP_FAILED || !types)
		return 1;
	printf("ready %d\n", getpid());
	fflush(stdout);
	for (;;) {
		unsigned at = any() % (CODE_BYTES / ALIGNMENT - 1) * ALIGNMENT + ALIGNMENT;

		for (unsigned i = 2 * types; i < WORDS; i++)
			arena[i] = value(code);
		for (unsigned i = 0; i < types; i++) {
			arena[2 * i] = map();
			arena[2 * i + 1] = (uint64_t)atoi(argv[i + 1]) << 32;
		}
		for (unsigned i = 0; i < CODE_BYTES; i += ALIGNMENT) {
			uint64_t stream[2] = { map(), object() };

			memcpy(code + i + ALIGNMENT - HEADER, stream, sizeof(stream));
		}
		for (unsigned i = 0; i < FRAMES; i++) {
			uint64_t *fp = &frames[FRAME_WORDS * (i + 1)];

			for (unsigned k = 1; k <= 5; k++)
				fp[-(int)k] = any() % 4 ? object() : value(code);
			fp[0] = i + 1 < FRAMES ? (uint64_t)(fp + FRAME_WORDS) : 0;
			fp[1] = (uint64_t)code + any() % CODE_BYTES;
		}
		memcpy(code + at, loop, sizeof(loop));
		((void (*)(uint64_t *, uint64_t))(void *)(code + at))(&frames[FRAME_WORDS], 1000000);
	}
}
