/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program of all cells of the TLS matrix:
 *
 *   writer CELL [local:LIBRARY | hog:LIBRARY]...
 *
 * It defines variables itself (definer_exe), is linked to a library that does
 * (definer_lib), or loads some. "hog:" only takes room. Threads: "main";
 * "early", which exists before a library is loaded; "late"; and "untouched",
 * which exists before too and never uses a variable. It prints the truth about
 * itself and obeys:
 *
 *   definer NAME ABI MODULE OFFSET      of the block that main has the variable in; 0 0: unknown
 *   thread NAME TID TP
 *   variable THREAD DEFINER ADDRESS
 *   ready
 *
 *   < burn MILLISECONDS                 of CPU time, on all threads
 *   > burnt
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "definer.h"
#include "publish.h"

#define MAX_DEFINERS 4
#define MAX_PRINTED_ERROR 200

static const struct definer *definers[MAX_DEFINERS];
static void *handles[MAX_DEFINERS]; /* for dlsym */
static size_t count;

static const char *cell;
static double burn_seconds;
static pthread_barrier_t created, loaded, started, finished;

static uint64_t thread_pointer(void)
{
	uint64_t tp;
#ifdef __x86_64__
	__asm__("mov %%fs:0, %0" : "=r"(tp));
#else
	__asm__("mrs %0, tpidr_el0" : "=r"(tp));
#endif
	return tp;
}

static void fail(const char *what)
{
	fprintf(stderr, "%s: %s\n", cell, what);
	exit(1);
}

static void *variable_of(size_t i)
{
	void *variable = definers[i]->variable ? definers[i]->variable() :
#ifdef STATIC /* where a library has no part in it */
					       NULL;
#else
					       dlsym(handles[i], definers[i]->symbol);
#endif

	if (!variable)
		fail("no variable");
	return variable;
}

/* Publishes in all variables, once where two definers have the same. */
static void touch(const char *thread)
{
	void *seen[MAX_DEFINERS];

	for (size_t i = 0; i < count; i++) {
		size_t other = 0;

		seen[i] = variable_of(i);
		while (seen[other] != seen[i])
			other++;
		if (other == i)
			publish(definers[i], seen[i], cell, thread);
		printf("variable %s %s %#llx\n", thread, definers[i]->name, (unsigned long long)(uintptr_t)seen[i]);
	}
}

static void introduce(const char *thread)
{
	printf("thread %s %ld %#llx\n", thread, syscall(SYS_gettid), (unsigned long long)thread_pointer());
}

/* Keeps a CPU busy for some CPU time of its own. */
static void burn(void)
{
	struct timespec start, now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
	do {
		for (volatile int i = 0; i < 20000; i++)
			;
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	} while (difftime(now.tv_sec, start.tv_sec) + 1e-9 * (double)(now.tv_nsec - start.tv_nsec) < burn_seconds);
}

static void obey(void)
{
	for (;;) {
		pthread_barrier_wait(&started);
		burn();
		pthread_barrier_wait(&finished);
	}
}

static void *early(void *name)
{
	pthread_barrier_wait(&created);
	pthread_barrier_wait(&loaded);
	introduce(name);
	if (strcmp(name, "untouched"))
		touch(name);
	pthread_barrier_wait(&finished);
	obey();
	return NULL;
}

static void *late(void *name)
{
	introduce(name);
	touch(name);
	pthread_barrier_wait(&finished);
	obey();
	return NULL;
}

static void start(void *(*run)(void *), char *name)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, run, name))
		fail("pthread_create");
}

static void add(const struct definer *definer, void *handle)
{
	if (count == MAX_DEFINERS || !definer)
		fail("definer");
	definers[count] = definer;
	handles[count++] = handle;
}

#ifndef STATIC
static void load(const char *argument)
{
	const char *path = strchr(argument, ':') + 1;
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	const struct definer *(*definer)(void);

	if (!library)
		fail(dlerror());
	if (*argument == 'h')
		return;
	*(void **)&definer = dlsym(library, DLOPEN_SYMBOL);
	if (!definer)
		fail(dlerror());
	add(definer(), library);
}
#endif

/* dl_iterate_phdr: the module with the block that holds an address of this thread. */
struct block {
	uint64_t address, module, offset;
};

static int find_block(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct block *block = arg;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		uint64_t offset = block->address - (uint64_t)(uintptr_t)info->dlpi_tls_data;

		if (info->dlpi_phdr[i].p_type == PT_TLS && info->dlpi_tls_data && offset < info->dlpi_phdr[i].p_memsz) {
			block->module = info->dlpi_tls_modid;
			block->offset = offset;
			return 1;
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct timespec moment = { .tv_nsec = 1000000 };
	unsigned int milliseconds;

	if (argc < 2)
		return 2;
	cell = argv[1];
	setvbuf(stdout, NULL, _IOLBF, 0);
	pthread_barrier_init(&created, NULL, 3);
	pthread_barrier_init(&loaded, NULL, 3);
	pthread_barrier_init(&started, NULL, 4);
	pthread_barrier_init(&finished, NULL, 4);
	start(early, "early");
	start(early, "untouched");
	pthread_barrier_wait(&created);
	if (definer_exe)
		add(definer_exe(), NULL);
#ifndef STATIC
	if (definer_lib)
		add(definer_lib(), RTLD_DEFAULT);
	for (int i = 2; i < argc; i++)
		load(argv[i]);
#endif
	pthread_barrier_wait(&loaded);
	start(late, "late");
	introduce("main");
	touch("main");
	for (size_t i = 0; i < count; i++) {
		struct block block = { .address = (uint64_t)(uintptr_t)variable_of(i) };

		dl_iterate_phdr(find_block, &block);
		printf("definer %s %d %llu %llu\n", definers[i]->name, definers[i]->abi,
		       (unsigned long long)block.module, (unsigned long long)block.offset);
	}
	pthread_barrier_wait(&finished);
	nanosleep(&moment, NULL); /* until then, aarch64 kernels do not know the thread pointer of main */
	puts("ready");
	while (scanf(" burn %u", &milliseconds) == 1) {
		burn_seconds = 1e-3 * milliseconds;
		pthread_barrier_wait(&started);
		burn();
		pthread_barrier_wait(&finished);
		puts("burnt");
	}
	return 0;
}
