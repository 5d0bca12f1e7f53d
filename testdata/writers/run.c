// SPDX-License-Identifier: Apache-2.0
#include "run.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "clock.h"
#include "../switched.h"
#include "memory.h"

#define SLEEP_ONCE_US 2000
#define START_INTERVAL_US 1000
#define WATCH_INTERVAL_US 50000
#define TICK_NS 1000000000u

static uint64_t deadline_ns;
static volatile sig_atomic_t ended_by_signal;
static int waiting; /* threads that have not published yet */
static void (*thread_body)(int index);

static void end(int signal)
{
	(void)signal;
	ended_by_signal = 1;
}

void run_begin(double seconds)
{
	struct sigaction action = { .sa_handler = end };
	pid_t parent = getppid();

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		exit(1); /* the parent ended before the call */
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	deadline_ns = mono_ns() + (uint64_t)(seconds * 1e9);
}

bool run_over(void)
{
	return ended_by_signal || mono_ns() >= deadline_ns;
}

void run_sleep_once(void)
{
	sleep_until_switched(SLEEP_ONCE_US);
}

void run_ready(void)
{
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
}

void run_published(void)
{
	__atomic_sub_fetch(&waiting, 1, __ATOMIC_ACQ_REL);
}

static void *thread_main(void *index)
{
	run_sleep_once();
	thread_body((int)(intptr_t)index);
	return NULL;
}

static void watch(void (*tick)(void))
{
	uint64_t next = mono_ns() + TICK_NS;
	bool ready = false;

	while (!run_over()) {
		usleep(ready ? WATCH_INTERVAL_US : START_INTERVAL_US);
		if (!ready && __atomic_load_n(&waiting, __ATOMIC_ACQUIRE) == 0) {
			if (tick)
				tick();
			run_ready();
			ready = true;
		}
		if (tick && mono_ns() >= next) {
			tick();
			next += TICK_NS;
		}
	}
}

void run_threads(int count, void (*body)(int index), void (*tick)(void))
{
	pthread_t *threads = must_malloc((size_t)count * sizeof(*threads));

	thread_body = body;
	waiting = count;
	for (intptr_t i = 0; i < count; i++) {
		int err = pthread_create(&threads[i], NULL, thread_main, (void *)i);

		if (err) {
			fprintf(stderr, "create a thread: %s\n", strerror(err));
			exit(1);
		}
	}
	watch(tick);
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	if (tick)
		tick();
	free(threads);
}
