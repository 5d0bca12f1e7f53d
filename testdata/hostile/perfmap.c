/*
 * A program that runs code which no file has, where a perf map names its functions:
 *   perfmap own           the map is a file of the program
 *   perfmap link TARGET   it is a symbolic link
 * Prints "ready".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CODE ((void *)0x10000000)
#define CODE_BYTES 4096
#define ROUNDS 50000000UL

static unsigned long __attribute__((noinline)) busy(volatile unsigned long rounds)
{
	unsigned long x = 0;

	while (rounds--)
		x += rounds;
	return x;
}

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

int main(int argc, char **argv)
{
	char path[64];
	unsigned long (*code)(unsigned long);

	alarm(600);
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	unlink(path);
	if (argc == 3 && !strcmp(argv[1], "link")) {
		if (symlink(argv[2], path))
			fail("symlink");
	} else {
		FILE *map = fopen(path, "w");

		if (!map)
			fail("fopen");
		fprintf(map, "%lx %x own_function\n", (unsigned long)CODE, CODE_BYTES);
		fclose(map);
	}
	if (mmap(CODE, CODE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		 0) != CODE)
		fail("mmap");
	memcpy(CODE, (const void *)busy, 256);
	__builtin___clear_cache((char *)CODE, (char *)CODE + 256);
	code = (unsigned long (*)(unsigned long))CODE;
	puts("ready");
	fflush(stdout);
	for (;;)
		code(ROUNDS);
}
