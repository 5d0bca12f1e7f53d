/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WRITERS_MEMORY_H
#define WRITERS_MEMORY_H

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GARBAGE 0xdb

static inline void *must_malloc(size_t size)
{
	void *p = malloc(size ? size : 1);

	if (!p) {
		fputs("out of memory\n", stderr);
		exit(1);
	}
	return p;
}

/* Frees memory whose next reader, if there is one, shall notice. */
static inline void free_overwritten(void *p, size_t size)
{
	memset(p, GARBAGE, size);
	/* The compiler must not see that nobody reads this again. */
	__asm__ volatile("" : : "r"(p) : "memory");
	free(p);
}

#endif
