/* SPDX-License-Identifier: Apache-2.0 */
/* Functions whose frames have every form that compilers make. */
#ifndef UNWIND_FRAMES_H
#define UNWIND_FRAMES_H

#include <stddef.h>

#include "truth.h"

/* A frame of the stack by which a test knows it: a call of it is a call. */
#if defined(__GNUC__) && !defined(__clang__)
#define FRAME __attribute__((noipa))
#else
#define FRAME __attribute__((noinline))
#endif

/* Never a frame. */
#define NO_FRAME static inline __attribute__((always_inline))

struct walk {
	const char *at;			/* letters of the functions that are to be called yet */
	void (*bottom)(struct walk *w); /* is called by the last one */
	struct truth *truth;
	unsigned long value; /* is changed after each call, so that none is a jump */
	void *data;
};

/* Calls the functions of the path, one from within the other, and bottom from the last. */
void w_down(struct walk *w);

/*
 * Writes a path of length letters. It is always the same for the same seed and calls
 * functions of every kind.
 */
void frames_path(char *path, size_t length, unsigned long seed);

#endif
