// SPDX-License-Identifier: Apache-2.0
/* Stacks that end in the C library, the kernel, the vDSO, or a linkage table. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cases.h"
#include "clock.h"
#include "tiny.h"

#define BLOCK_BYTES 20000

NO_FRAME void call(struct turn *t, const char *name, void (*bottom)(struct walk *w), int others)
{
	struct walk *w = &t->walk;

	frames_path(t->path, 20, t->seed);
	truth_describe(&t->truth, name, "w_turn;w_%s;w_down;@%s;w_in_%s;?%d", name, t->path, name, others);
	*w = (struct walk){ .at = t->path, .bottom = bottom, .truth = &t->truth, .data = t };
	while (!turn_over(t))
		w_down(w);
}

static __thread char blocks[2][BLOCK_BYTES];

FRAME void w_in_memset(struct walk *w)
{
	truth_publish(w->truth);
	for (size_t i = 0; i < 300; i++)
		memset(blocks[0] + i % 64, (int)i, BLOCK_BYTES - 64);
	truth_publish(NULL);
}

FRAME void w_memset(struct turn *t)
{
	call(t, "memset", w_in_memset, 2);
	t->walk.value++;
}

FRAME void w_in_memcpy(struct walk *w)
{
	truth_publish(w->truth);
	for (size_t i = 0; i < 300; i++)
		memcpy(blocks[0] + i % 64, blocks[1], i * 60);
	truth_publish(NULL);
}

FRAME void w_memcpy(struct turn *t)
{
	call(t, "memcpy", w_in_memcpy, 2);
	t->walk.value++;
}

/* From the C library back into the program. */
struct callback {
	struct truth *outside, *inside;
};
static __thread struct callback *callback;

FRAME int w_compare(const void *a, const void *b)
{
	unsigned long x = *(const unsigned *)a, y = *(const unsigned *)b;

	truth_publish(callback->inside);
	WORK(x, WORK_UNIT / 300);
	truth_publish(NULL);
	return (x > y) - (x < y);
}

FRAME void w_in_qsort(struct walk *w)
{
	unsigned numbers[200];

	for (size_t i = 0; i < 200; i++)
		numbers[i] = (unsigned)(i * 7919 % 200);
	callback = w->data;
	qsort(numbers, 200, sizeof(numbers[0]), w_compare);
	w->value += numbers[0];
}

FRAME void w_qsort(struct turn *t)
{
	static __thread struct truth inside;
	struct callback c = { .inside = &inside };
	struct walk *w = &t->walk;

	frames_path(t->path, 20, t->seed);
	truth_describe(&inside, "qsort", "w_turn;w_qsort;w_down;@%s;w_in_qsort;~24;w_compare", t->path);
	*w = (struct walk){ .at = t->path, .bottom = w_in_qsort, .data = &c };
	while (!turn_over(t))
		w_down(w);
}

FRAME void w_in_strlen(struct walk *w)
{
	memset(blocks[1], 'x', BLOCK_BYTES - 1);
	truth_publish(w->truth);
	for (size_t i = 0; i < 300; i++) {
		w->value += strlen(blocks[1] + i);
		__asm__ volatile("" : : : "memory");
	}
	truth_publish(NULL);
}

FRAME void w_strlen(struct turn *t)
{
	call(t, "strlen", w_in_strlen, 2);
	t->walk.value++;
}

FRAME void w_in_malloc(struct walk *w)
{
	truth_publish(w->truth);
	for (size_t i = 1; i < 300; i++) {
		void *memory = malloc(i * 7), *other = malloc(i);

		__asm__ volatile("" : "+r"(memory), "+r"(other) : : "memory");
		memory = realloc(memory, i * 9);
		free(other);
		free(memory);
	}
	truth_publish(NULL);
	w->value++;
}

FRAME void w_malloc(struct turn *t)
{
	call(t, "malloc", w_in_malloc, 12);
	t->walk.value++;
}

FRAME void w_in_printf(struct walk *w)
{
	truth_publish(w->truth);
	for (unsigned i = 0; i < 100; i++)
		w->value += (unsigned long)snprintf(blocks[0], BLOCK_BYTES, "%s %d %.17g %p", "text", i, i / 7.0,
						    (void *)w);
	truth_publish(NULL);
}

FRAME void w_printf(struct turn *t)
{
	call(t, "printf", w_in_printf, 12);
	t->walk.value++;
}

/* System calls: entry and exit, and the kernel's frames on top. */
FRAME void w_in_getppid(struct walk *w)
{
	truth_publish(w->truth);
	for (int i = 0; i < 1000; i++)
		w->value += (unsigned long)syscall(SYS_getppid);
	truth_publish(NULL);
}

FRAME void w_getppid(struct turn *t)
{
	call(t, "getppid", w_in_getppid, 2);
	t->walk.value++;
}

FRAME void w_in_write(struct walk *w)
{
	static int null = -1;

	if (null < 0)
		null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	truth_publish(w->truth);
	for (int i = 0; i < 1000; i++)
		w->value += (unsigned long)write(null, "x", 1);
	truth_publish(NULL);
}

FRAME void w_write(struct turn *t)
{
	call(t, "write", w_in_write, 3);
	t->walk.value++;
}

FRAME void w_in_vdso(struct walk *w)
{
	truth_publish(w->truth);
	for (int i = 0; i < 1000; i++)
		w->value += mono_ns();
	truth_publish(NULL);
}

FRAME void w_vdso(struct turn *t)
{
	call(t, "vdso", w_in_vdso, 4);
	t->walk.value++;
}

FRAME void w_in_plt(struct walk *w)
{
	truth_publish(w->truth);
	for (unsigned i = 0; i < 1000; i++)
		w->value += tiny_0(i) + tiny_1(i) + tiny_2(i) + tiny_3(i);
	truth_publish(NULL);
}

FRAME void w_plt(struct turn *t)
{
	call(t, "plt", w_in_plt, 3);
	t->walk.value++;
}

const struct unwind_case library_cases[] = {
	{ .name = "memset", .run = w_memset },
	{ .name = "memcpy", .run = w_memcpy },
	{ .name = "strlen", .run = w_strlen },
	{ .name = "malloc", .run = w_malloc },
	{ .name = "printf", .run = w_printf },
	{ .name = "qsort", .run = w_qsort },
	{ .name = "getppid", .run = w_getppid },
	{ .name = "write", .run = w_write },
	{ .name = "vdso", .run = w_vdso },
	{ .name = "plt", .run = w_plt },
	{ 0 },
};
