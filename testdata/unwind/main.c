// SPDX-License-Identifier: Apache-2.0
/*
 * Goes through its cases again and again, in its main thread and in another one:
 * PROGRAM [SECONDS [CASE [DEPTH]]], where DEPTH is that of the case "deep".
 */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "clock.h"
#include "run.h"

#define TURN_NS 10000000
#define STACK_BYTES (8 << 20)

static const struct unwind_case *const groups[] = { spin_cases, library_cases, signal_cases, thread_cases };

static const char *only; /* one case; NULL: all */

bool turn_over(const struct turn *turn)
{
	return mono_ns() >= turn->end_ns;
}

FRAME void w_turn(const struct unwind_case *c, struct turn *turn)
{
	c->run(turn);
	turn->seed++;
}

FRAME void turns(struct turn *turn)
{
	turn->seed++;
}

/* A macro, so that it is no frame. */
#define TURNS(turn, main)                                                                                              \
	do {                                                                                                           \
		while (!run_over())                                                                                    \
			for (size_t g = 0; g < sizeof(groups) / sizeof(groups[0]); g++)                                \
				for (const struct unwind_case *c = groups[g]; c->name; c++) {                          \
					if ((c->main_only && !(main)) || (only && strcmp(only, c->name)))              \
						continue;                                                              \
					(turn)->end_ns = mono_ns() + TURN_NS;                                          \
					w_turn(c, turn);                                                               \
				}                                                                                      \
		turns(turn);                                                                                           \
	} while (0)

FRAME void *w_thread(void *unused)
{
	struct turn *turn = calloc(1, sizeof(*turn));

	(void)unused;
	truth_root = "w_thread";
	turn->seed = 1000000;
	run_sleep_once();
	TURNS(turn, false);
	free(turn);
	return NULL;
}

int main(int argc, char **argv)
{
	struct turn *turn = calloc(1, sizeof(*turn));
	pthread_attr_t attributes;
	pthread_t thread;
	sigset_t alarm;

	run_begin(argc > 1 ? atof(argv[1]) : 10);
	only = argc > 2 ? argv[2] : NULL;
	deep_calls = argc > 3 ? strtoul(argv[3], NULL, 10) : DEEP_CALLS;
	if (deep_calls >= sizeof(turn->path)) {
		fputs("too deep\n", stderr);
		return 2;
	}
	truth_root = "main";
	run_sleep_once();
	/* Only the main thread is interrupted. */
	sigemptyset(&alarm);
	sigaddset(&alarm, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &alarm, NULL);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES); /* musl's default is too small */
	if (pthread_create(&thread, &attributes, w_thread, NULL)) {
		fputs("no thread\n", stderr);
		return 1;
	}
	pthread_sigmask(SIG_UNBLOCK, &alarm, NULL);
	run_ready();
	TURNS(turn, true);
	pthread_join(thread, NULL);
	free(turn);
	return 0;
}
