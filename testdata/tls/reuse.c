/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads argv[1] and argv[2], lets a thread use the variable of both, unloads
 * both and loads argv[3] and argv[4], which take over their module ids and which
 * only the main thread uses. After each half it prints
 *
 *   THREAD TP ADDRESS ADDRESS
 *
 * for "main" and the thread "other" (ADDRESS 0: not used), then "ready", and
 * waits for a byte.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_barrier_t turn;
static void *library[2];
static int used;

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

static void print(const char *name, int use)
{
	const char *variable = "custom_labels_current_set";

	printf("%s %#llx %p %p\n", name, (unsigned long long)thread_pointer(), use ? dlsym(library[0], variable) : 0,
	       use ? dlsym(library[1], variable) : 0);
}

static void *other(void *unused)
{
	(void)unused;
	for (;;) {
		pthread_barrier_wait(&turn);
		print("other", used);
		pthread_barrier_wait(&turn);
	}
	return 0;
}

static void half(char **path, int use)
{
	char byte;
	int i;

	for (i = 0; i < 2; i++) {
		library[i] = dlopen(path[i], RTLD_NOW);
		if (!library[i]) {
			fprintf(stderr, "%s\n", dlerror());
			exit(2);
		}
	}
	used = use;
	pthread_barrier_wait(&turn);
	pthread_barrier_wait(&turn);
	print("main", 1);
	puts("ready");
	fflush(stdout);
	if (read(0, &byte, 1) != 1)
		exit(0);
}

int main(int argc, char **argv)
{
	pthread_t thread;

	if (argc != 5)
		return 3;
	pthread_barrier_init(&turn, 0, 2);
	if (pthread_create(&thread, 0, other, 0))
		return 3;
	half(argv + 1, 1);
	if (dlclose(library[0]) || dlclose(library[1]))
		return 4;
	half(argv + 3, 0);
	return 0;
}
