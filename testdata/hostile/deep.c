/*
 * A program that stays in a hundred frames of a library (deeplib.c):
 *   deep stay LIBRARY
 *   deep replace LIBRARY OTHER   meanwhile maps OTHER's code over LIBRARY's, and LIBRARY's
 *                                again, as fast as it may be noticed
 *   deep move LIBRARY OTHER      on a line of its input moves OTHER's code over LIBRARY's with
 *                                mremap(), and goes on there
 * Prints "ready", and "moved" when it has moved.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "deep.h"

/* Who reads what is mapped sees LIBRARY nearly always. */
#define LIBRARY_US 40000
#define OTHER_US 2000

struct code {
	char *start;
	size_t size;
	long offset; /* in its file */
	deep_function *descend;
	int fd;
};

static volatile int stop;
static struct code library, other;

static void fail(const char *what)
{
	fprintf(stderr, "%s\n", what);
	exit(1);
}

static struct code load(const char *path)
{
	struct code code = { .fd = open(path, O_RDONLY) };
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[4096];

	if (!handle || code.fd < 0 || !maps)
		fail("cannot load the library");
	code.descend = (deep_function *)dlsym(handle, "descend");
	while (fgets(line, sizeof(line), maps)) {
		unsigned long start, end, offset;

		if (sscanf(line, "%lx-%lx r-xp %lx", &start, &end, &offset) == 3 &&
		    (unsigned long)code.descend >= start && (unsigned long)code.descend < end) {
			code.start = (char *)start;
			code.size = end - start;
			code.offset = offset;
		}
	}
	fclose(maps);
	if (!code.start)
		fail("no code of the library");
	return code;
}

static void map(const struct code *from)
{
	if (mmap(library.start, library.size, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, from->fd, from->offset) ==
	    MAP_FAILED)
		fail("mmap");
}

static void *replace(void *unused)
{
	for (;;) {
		map(&other);
		usleep(OTHER_US);
		map(&library);
		usleep(LIBRARY_US);
	}
	return unused;
}

static void *await(void *unused)
{
	if (getchar() == EOF)
		fail("no line");
	stop = 1;
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	if (argc < 3)
		fail("deep stay LIBRARY | replace LIBRARY OTHER | move LIBRARY OTHER");
	alarm(600);
	library = load(argv[2]);
	if (argc > 3 && !strcmp(argv[1], "move"))
		other = load(argv[3]);
	if (argc > 3 && !strcmp(argv[1], "replace")) {
		other = library; /* the same code in the same place of another file */
		other.fd = open(argv[3], O_RDONLY);
		pthread_create(&thread, NULL, replace, NULL);
	}
	if (!strcmp(argv[1], "move"))
		pthread_create(&thread, NULL, await, NULL);
	puts("ready");
	fflush(stdout);
	library.descend(DEPTH, &stop);
	if (library.size != other.size ||
	    mremap(other.start, other.size, other.size, MREMAP_MAYMOVE | MREMAP_FIXED, library.start) == MAP_FAILED)
		fail("mremap");
	puts("moved");
	fflush(stdout);
	stop = 0;
	((deep_function *)(library.start + ((char *)other.descend - other.start)))(DEPTH, &stop);
	return 0;
}
