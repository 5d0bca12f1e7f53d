/*
 * Claims to be a V8, by the symbols that it is compiled with, and runs one function in frames
 * within each other, by code that was generated and that belongs to no Code: what is looked for
 * in vain takes long. Offsets are those of V8 13.6. x86-64.
 *
 *   lostv8 FUNCTION SHARED SCRIPT...     types of objects, as maps have them
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define DEPTH 40
#define CODE_BYTES (256 << 10) /* more than is looked through for one instruction */
#define TYPES 3
#define OBJECT_WORDS 16

static uint64_t maps[TYPES][2], objects[TYPES][OBJECT_WORDS];

/*
 * Called with five words, a depth and a number of turns, pushes the words behind a frame pointer and
 * calls itself: push %rbp; mov %rsp, %rbp; push (%rdi); push 8(%rdi) ...; dec %rsi; jz 1f;
 * call itself; jmp 2f; 1: dec %rdx; jnz 1b; 2: leave; ret
 */
static const unsigned char nested[] = { 0x55, 0x48, 0x89, 0xe5, 0xff, 0x37, 0xff, 0x77, 0x08, 0xff, 0x77, 0x10, 0xff,
					0x77, 0x18, 0xff, 0x77, 0x20, 0x48, 0xff, 0xce, 0x74, 0x07, 0xe8, 0xe4, 0xff,
					0xff, 0xff, 0xeb, 0x05, 0x48, 0xff, 0xca, 0x75, 0xfb, 0xc9, 0xc3 };

int main(int argc, char **argv)
{
	uint64_t slots[5] = {};
	unsigned char *code;

	code = mmap(NULL, CODE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (code == MAP_FAILED || argc <= TYPES)
		return 1;
	for (unsigned i = 0; i < TYPES; i++) {
		maps[i][1] = (uint64_t)atoi(argv[i + 1]) << 32;
		objects[i][0] = (uint64_t)maps[i] + 1;
	}
	objects[0][4] = (uint64_t)objects[1] + 1; /* SharedFunctionInfo */
	objects[1][5] = (uint64_t)objects[2] + 1; /* Script */
	objects[2][1] = (uint64_t)objects[1] + 1; /* its source */
	objects[2][8] = 1ULL << 32;		  /* its number */
	slots[0] = slots[1] = (uint64_t)objects[0] + 1;
	memset(code, 0, CODE_BYTES); /* or there would be no pages */
	memcpy(code + CODE_BYTES - sizeof(nested), nested, sizeof(nested));
	printf("ready %d\n", getpid());
	fflush(stdout);
	for (;;)
		((void (*)(uint64_t *, uint64_t, uint64_t))(void *)(code + CODE_BYTES - sizeof(nested)))(slots, DEPTH,
													 1000000);
}
