// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "load.h"

/* LIBRARY is a file name; the file lies beside the executable. */
const struct publisher *load_publisher(void)
{
	char exe[PATH_MAX], path[2 * PATH_MAX];
	const struct publisher *(*publisher)(void);
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	void *library;

	if (n < 0) {
		perror("readlink /proc/self/exe");
		exit(1);
	}
	exe[n] = '\0';
	snprintf(path, sizeof(path), "%s/%s", dirname(exe), LIBRARY);
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	*(void **)&publisher = dlsym(library, "labels_publisher");
	if (!publisher) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	return publisher();
}
