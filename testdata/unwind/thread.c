// SPDX-License-Identifier: Apache-2.0
/* Threads that hardly live: their stacks at start and end. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "cases.h"

FRAME void *w_brief(void *argument)
{
	struct turn *t = argument;
	unsigned long value = t->seed;

	truth_publish(&t->truth);
	WORK(value, WORK_UNIT / 2);
	truth_publish(NULL);
	return NULL;
}

FRAME void w_threads(struct turn *t)
{
	const char *root = truth_root;

	truth_root = "w_brief";
	truth_describe(&t->truth, "threads", "?0");
	truth_root = root;
	while (!turn_over(t)) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, w_brief, t)) {
			fputs("no thread\n", stderr);
			exit(1);
		}
		pthread_join(thread, NULL);
	}
}

const struct unwind_case thread_cases[] = {
	{ .name = "threads", .run = w_threads, .main_only = true },
	{ 0 },
};
