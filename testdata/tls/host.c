/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints, for several threads, the thread pointer and the address of the
 * variable in variable.c, then waits until its input ends:
 *
 *   THREAD TP ADDRESS
 *
 * -DBYNAME: it asks the dynamic loader for the address and not the library.
 * -DLINKED: the variable is in the executable or in a library linked to it;
 * without it the library in argv[1] is loaded with dlopen. "early" exists
 * before that and uses the variable, "late" is created behind it and uses it,
 * "untouched" exists before it and never does (ADDRESS 0).
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#if defined(BYNAME)
#include <dlfcn.h>
static void *library; /* 0: RTLD_DEFAULT */

static void *variable_address(void)
{
	return dlsym(library, "custom_labels_current_set");
}
#elif defined(LINKED)
void *variable_address(void);
#else
#include <dlfcn.h>
static void *library;
static void *(*variable_address)(void);
#endif

static pthread_barrier_t created, loaded, printed;
static pthread_mutex_t printing = PTHREAD_MUTEX_INITIALIZER;

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

static void print(const char *name, int touch)
{
	uint64_t address = touch ? (uint64_t)(uintptr_t)variable_address() : 0;

	pthread_mutex_lock(&printing);
	printf("%s %#llx %#llx\n", name, (unsigned long long)thread_pointer(), (unsigned long long)address);
	fflush(stdout);
	pthread_mutex_unlock(&printing);
}

static void *early(void *touch)
{
	pthread_barrier_wait(&created);
	pthread_barrier_wait(&loaded);
	print(touch ? "early" : "untouched", touch != 0);
	pthread_barrier_wait(&printed);
	pause();
	return 0;
}

static void *late(void *unused)
{
	(void)unused;
	print("late", 1);
	pthread_barrier_wait(&printed);
	pause();
	return 0;
}

static void start(void *(*run)(void *), void *arg)
{
	pthread_t thread;

	if (pthread_create(&thread, 0, run, arg))
		exit(3);
}

int main(int argc, char **argv)
{
	char byte;

	(void)argc;
	(void)argv;
	pthread_barrier_init(&created, 0, 3);
	pthread_barrier_init(&loaded, 0, 3);
	pthread_barrier_init(&printed, 0, 4);
	start(early, &created);
	start(early, 0);
	pthread_barrier_wait(&created);
#ifndef LINKED
	library = dlopen(argv[1], RTLD_NOW);
	const char *needed = "custom_labels_current_set";
#ifndef BYNAME
	needed = "variable_address";
	if (library)
		*(void **)&variable_address = dlsym(library, needed);
#endif
	if (!library || !dlsym(library, needed)) {
		fprintf(stderr, "%s\n", dlerror());
		return 2;
	}
#endif
	pthread_barrier_wait(&loaded);
	start(late, 0);
	print("main", 1);
	pthread_barrier_wait(&printed);
	puts("ready");
	fflush(stdout);
	while (read(0, &byte, 1) > 0)
		;
	return 0;
}
