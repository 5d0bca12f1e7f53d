// SPDX-License-Identifier: Apache-2.0
/* Stacks of the program's own functions. */
#include <setjmp.h>

#include "cases.h"

size_t deep_calls;

FRAME void w_spin(struct walk *w)
{
	truth_publish(w->truth);
	WORK(w->value, 5 * WORK_UNIT);
	truth_publish(NULL);
}

NO_FRAME void spin(struct turn *t, const char *name, size_t depth)
{
	struct walk *w = &t->walk;

	frames_path(t->path, depth, t->seed);
	truth_describe(&t->truth, name, "w_turn;w_%s;w_down;@%s;w_spin", name, t->path);
	*w = (struct walk){ .at = t->path, .bottom = w_spin, .truth = &t->truth, .data = t };
	while (!turn_over(t))
		w_down(w);
}

FRAME void w_flat(struct turn *t)
{
	spin(t, "flat", 1);
	t->walk.value++;
}

FRAME void w_deep(struct turn *t)
{
	spin(t, "deep", deep_calls);
	t->walk.value++;
}

/* Down and up without a rest: every instruction of the functions is sampled. */
FRAME void w_Z(struct walk *w)
{
	w->value++;
}

FRAME void w_walk(struct turn *t)
{
	struct walk *w = &t->walk;

	frames_path(t->path, 40, t->seed);
	truth_describe(&t->truth, "walk", "w_turn;w_walk;+w_down;%%%sZ;?1", t->path);
	*w = (struct walk){ .at = t->path, .bottom = w_Z, .truth = &t->truth, .data = t };
	while (!turn_over(t)) {
		truth_publish(w->truth);
		for (int i = 0; i < 1000; i++)
			w_down(w);
		truth_publish(NULL);
	}
}

/* The way through a function on which it makes no frame, and the one on which it does. */
FRAME void w_early(struct turn *t)
{
	struct walk *w = &t->walk;

	truth_describe(&t->truth, "early", "w_turn;w_early;+w_down;%%GZ");
	*w = (struct walk){ .at = "G", .bottom = w_Z, .truth = &t->truth };
	while (!turn_over(t)) {
		truth_publish(w->truth);
		for (int i = 0; i < 10000; i++) {
			w->data = i & 8 ? t : NULL;
			w_down(w);
		}
		truth_publish(NULL);
	}
}

/* A call at the very end of a function: the return address is in the next one. */
FRAME __attribute__((noreturn)) void w_leave(struct walk *w)
{
	truth_publish(w->truth);
	WORK(w->value, WORK_UNIT);
	truth_publish(NULL);
	longjmp(*(jmp_buf *)w->data, 1);
}

FRAME void w_last(struct walk *w)
{
	volatile char locals[1000];

	locals[w->value % sizeof(locals)] = 1;
	w_leave(w);
}

FRAME void w_noreturn(struct turn *t)
{
	struct walk *w = &t->walk;
	jmp_buf back;

	truth_describe(&t->truth, "noreturn", "w_turn;w_noreturn;w_down;@ABC;w_last;w_leave");
	*w = (struct walk){ .at = "ABC", .bottom = w_last, .truth = &t->truth, .data = &back };
	setjmp(back);
	w->at = "ABC";
	if (!turn_over(t))
		w_down(w);
}

const struct unwind_case spin_cases[] = {
	{ .name = "flat", .run = w_flat },	   { .name = "deep", .run = w_deep },
	{ .name = "walk", .run = w_walk },	   { .name = "early", .run = w_early },
	{ .name = "noreturn", .run = w_noreturn }, { 0 },
};
