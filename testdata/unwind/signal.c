// SPDX-License-Identifier: Apache-2.0
/* Signal handlers on top of any instruction, on the stack and on one of their own. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>

#include "cases.h"

#define ALTERNATE_BYTES 65536
#define INTERVAL_US 700

static struct truth *handling; /* what is true in the handler */

FRAME void w_handler_work(unsigned long value)
{
	truth_publish(handling);
	WORK(value, 8 * WORK_UNIT);
	truth_publish(NULL);
}

FRAME void w_handler(int signal)
{
	w_handler_work((unsigned long)signal);
	__asm__ volatile("" : : : "memory");
}

FRAME void w_Y(struct walk *w)
{
	w->value++;
}

NO_FRAME void interrupted(struct turn *t, const char *name, int flags)
{
	const struct itimerval often = { { 0, INTERVAL_US }, { 0, INTERVAL_US } }, never = { 0 };
	struct sigaction action = { .sa_handler = w_handler, .sa_flags = SA_RESTART | flags };
	struct walk *w = &t->walk;

	frames_path(t->path, 100, t->seed);
	truth_describe(&t->truth, name, "w_turn;w_%s;+w_down;%%%sY;~6;w_handler;w_handler_work", name, t->path);
	handling = &t->truth;
	*w = (struct walk){ .at = t->path, .bottom = w_Y, .data = t };
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	while (!turn_over(t))
		w_down(w);
	setitimer(ITIMER_REAL, &never, NULL);
	action = (struct sigaction){ .sa_handler = SIG_IGN };
	sigaction(SIGALRM, &action, NULL);
}

FRAME void w_signal(struct turn *t)
{
	interrupted(t, "signal", 0);
	t->walk.value++;
}

FRAME void w_signalstack(struct turn *t)
{
	static char *memory;
	stack_t own, none = { .ss_flags = SS_DISABLE };

	if (!memory)
		memory = malloc(ALTERNATE_BYTES);
	own = (stack_t){ .ss_sp = memory, .ss_size = ALTERNATE_BYTES };
	if (!memory || sigaltstack(&own, NULL)) {
		perror("sigaltstack");
		exit(1);
	}
	interrupted(t, "signalstack", SA_ONSTACK);
	sigaltstack(&none, NULL);
}

const struct unwind_case signal_cases[] = {
	{ .name = "signal", .run = w_signal, .main_only = true },
	{ .name = "signalstack", .run = w_signalstack, .main_only = true },
	{ 0 },
};
