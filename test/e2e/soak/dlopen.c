// SPDX-License-Identifier: Apache-2.0
/*
 * Loads and unloads libraries: dlopen MICROSECONDS LIBRARY... until it is killed. One more
 * thread comes and goes with each, and uses CPU time meanwhile.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void *burn(void *arg)
{
	uint64_t end = now_ns() + 1000000;

	while (now_ns() < end)
		;
	return arg;
}

int main(int argc, char **argv)
{
	for (int i = 0; argc > 2; i++) {
		void *library = dlopen(argv[2 + i % (argc - 2)], RTLD_NOW);
		pthread_t thread;

		if (!library) {
			fprintf(stderr, "%s\n", dlerror());
			return 1;
		}
		if (!pthread_create(&thread, NULL, burn, NULL))
			pthread_join(thread, NULL);
		usleep(strtoul(argv[1], NULL, 10));
		dlclose(library);
	}
	return 2;
}
