// SPDX-License-Identifier: Apache-2.0
#include "frames.h"

#include <alloca.h>
#include <stdarg.h>
#include <string.h>

/* By letter; NULL where a letter is not called by descend. */
static void (*const frames[26])(struct walk *w);

NO_FRAME void descend(struct walk *w)
{
	char next = *w->at;

	if (!next) {
		w->bottom(w);
		return;
	}
	w->at++;
	frames[next - 'A'](w);
	w->at--;
}

/* Nothing to save. */
FRAME void w_A(struct walk *w)
{
	descend(w);
	w->value++;
}

/* More than a page of locals. */
FRAME void w_B(struct walk *w)
{
	volatile char locals[6000];

	locals[w->value % sizeof(locals)] = 1;
	descend(w);
	w->value += (unsigned long)locals[0];
}

/* A frame whose size is only known at run time. */
FRAME void w_C(struct walk *w)
{
	size_t size = 16 + w->value % 200;
	volatile char *locals = alloca(size);

	locals[size - 1] = 1;
	descend(w);
	w->value += (unsigned long)locals[0];
}

/* Locals with an alignment that the stack does not have. */
FRAME void w_D(struct walk *w)
{
	volatile char locals[128] __attribute__((aligned(64)));

	locals[w->value % sizeof(locals)] = 1;
	descend(w);
	w->value += (unsigned long)locals[0];
}

/* Both: the frame is found through a pointer that was put aside. */
FRAME void w_E(struct walk *w)
{
	volatile char locals[64] __attribute__((aligned(64)));
	size_t size = 16 + w->value % 300;
	volatile char *more = alloca(size);

	locals[w->value % sizeof(locals)] = 1;
	more[size - 1] = 1;
	descend(w);
	w->value += (unsigned long)locals[0] + (unsigned long)more[0];
}

/* Every register that a callee has to keep, the frame pointer among them. */
FRAME void w_F(struct walk *w)
{
	unsigned long v = w->value;
	unsigned long a = v * 3, b = v * 5, c = v * 7, d = v * 11, e = v * 13, f = v * 17, g = v * 19, h = v * 23,
		      i = v * 29, j = v * 31, k = v * 37, l = v * 41;

	__asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f));
	__asm__ volatile("" : "+r"(g), "+r"(h), "+r"(i), "+r"(j), "+r"(k), "+r"(l));
	descend(w);
	w->value += a ^ b ^ c ^ d ^ e ^ f ^ g ^ h ^ i ^ j ^ k ^ l;
}

/* Has a way through on which no frame is made. */
FRAME void w_G(struct walk *w)
{
	unsigned long before = w->value;

	if (!w->data) {
		w->value++;
		return;
	}
	descend(w);
	w->value ^= before * 3;
}

/* Pushes the arguments of its callee, which is always w_I. */
FRAME unsigned long w_I(struct walk *w, unsigned long a, ...)
{
	va_list args;

	descend(w);
	va_start(args, a);
	for (int i = 0; i < 9; i++)
		a += va_arg(args, unsigned long);
	va_end(args);
	return a;
}

FRAME void w_H(struct walk *w)
{
	unsigned long v = w->value;

	w->at++;
	w->value += w_I(w, v, v + 1, v + 2, v + 3, v + 4, v + 5, v + 6, v + 7, v + 8, v + 9);
	w->at--;
}

/* Calls from a part that lies elsewhere, because it is thought to be hardly ever run. */
__attribute__((cold, noinline)) static void rare(struct walk *w)
{
	__asm__ volatile("" : : "r"(w) : "memory");
}

FRAME void w_J(struct walk *w)
{
	unsigned long before = w->value;

	if (w->at) {
		rare(w);
		descend(w);
		w->value += before * 5;
		rare(w);
		return;
	}
	w->value += before;
}

static void (*const frames[26])(struct walk *w) = {
	['A' - 'A'] = w_A, ['B' - 'A'] = w_B, ['C' - 'A'] = w_C, ['D' - 'A'] = w_D, ['E' - 'A'] = w_E,
	['F' - 'A'] = w_F, ['G' - 'A'] = w_G, ['H' - 'A'] = w_H, ['J' - 'A'] = w_J,
};

FRAME void w_down(struct walk *w)
{
	descend(w);
}

void frames_path(char *path, size_t length, unsigned long seed)
{
	static const char kinds[] = "ABCDEFGHJ";

	for (size_t i = 0; i < length; i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		path[i] = kinds[(seed >> 33) % (sizeof(kinds) - 1)];
		if (path[i] != 'H')
			continue;
		if (i + 1 == length)
			path[i] = 'A';
		else
			path[++i] = 'I';
	}
	path[length] = '\0';
}
