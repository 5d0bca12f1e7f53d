/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host SECONDS MILLISECONDS LIBRARY...: loads one library after the other, in turn, calls its go()
 * for so many milliseconds and unloads it. Meanwhile the thread has the library's number as its name,
 * "plugin-0" and so on. In the end it prints how many were loaded, and how many of them where the one
 * before had been.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	double end = now() + atof(argv[1]), until;
	unsigned loaded = 0, same = 0;
	void (*last)(void) = NULL;

	for (; now() < end; loaded++) {
		int n = loaded % (argc - 3);
		void *library = dlopen(argv[3 + n], RTLD_NOW);
		void (*go)(void);
		char name[16];

		if (!library) {
			fprintf(stderr, "%s\n", dlerror());
			return 1;
		}
		*(void **)&go = dlsym(library, "go");
		same += go == last;
		last = go;
		snprintf(name, sizeof(name), "plugin-%d", n);
		prctl(PR_SET_NAME, name);
		for (until = now() + atof(argv[2]) / 1000; now() < until;)
			go();
		prctl(PR_SET_NAME, "host");
		dlclose(library);
	}
	printf("%u %u\n", loaded, same);
	return 0;
}
