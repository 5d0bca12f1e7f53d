// SPDX-License-Identifier: Apache-2.0
/*
 * A process context that comes late and grows. The program burns CPU time without
 * any; then, every --dwell-us give or take a half, it publishes one key more
 * (key_0, key_1 ...) and uses it at once, with the number as its value. The log
 * has a line "update N T" for each, T (CLOCK_MONOTONIC, ns) being right after the
 * first record with key N was published. Such a record has N + 1 in the last byte of
 * its span id, and the sampled flag where that is odd.
 *
 * With --fork, a child comes after the first updates, and goes through what can
 * become of one, a line "child PID", "own T" and "exec T" each, with half of
 * the time between two: it has inherited its thread's record, but no process context;
 * then publishes a context of its own; then runs spin-plain.
 */
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "burn.h"
#include "labels.h"
#include "memory.h"
#include "modes.h"
#include "options.h"
#include "process_context.h"
#include "random.h"
#include "run.h"

#define MAX_UPDATES 200
#define TEXT_BYTES 16
#define FORK_AT 2
#define CHILD_STEP_NS 1500000000u
#define CHILD_CPU_NS 150000000u

static FILE *log_file;
static struct label labels[MAX_UPDATES];
static struct label_set set = { .labels = labels, .trace_id = { 0x75, 1 }, .span_id = { 0x75, 2 } };

static HOT uint64_t work(uint64_t mono)
{
	uint64_t x = 0;

	while (mono_ns() < mono && !run_over())
		x = burn_until(thread_cpu_ns() + 100000, x);
	return x;
}

static void note(const char *what, long n)
{
	fprintf(log_file, "%s %ld %" PRIu64 "\n", what, n, mono_ns());
	fflush(log_file);
}

static void update(void)
{
	size_t n = set.count;
	char *key = must_malloc(TEXT_BYTES), *value = must_malloc(TEXT_BYTES);

	snprintf(key, TEXT_BYTES, "key_%zu", n);
	snprintf(value, TEXT_BYTES, "%zu", n);
	labels[n] = (struct label){ key, value };
	set.count = n + 1;
	set.span_id[7] = (uint8_t)set.count;
	set.trace_flags = set.count & 1;
	labels_swap(&set, options.in_place);
	note("update", (long)n);
}

/* Goes on for a while, and on a busy machine for as long as that takes to give it some of a CPU. */
static HOT void child_step(void)
{
	uint64_t until = mono_ns() + CHILD_STEP_NS, cpu = thread_cpu_ns() + CHILD_CPU_NS, x = 0;

	while (mono_ns() < until || thread_cpu_ns() < cpu)
		x = burn_until(thread_cpu_ns() + 100000, x);
}

static void run_child(void)
{
	char path[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - sizeof("spin-plain"));
	char *name;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	note("child", getpid());
	child_step();
	options.service = "child";
	process_context_forget();
	labels_swap(&set, false);
	note("own", getpid());
	child_step();
	/* Nobody may be reading what the next program says. */
	if (len < 0 || !freopen("/dev/null", "w", stdout))
		exit(1);
	path[len] = '\0';
	name = strrchr(path, '/') + 1;
	strcpy(name, "spin-plain");
	note("exec", getpid());
	execl(path, path, "spin", "--seconds", "3", (char *)NULL);
	perror(path);
	exit(1);
}

void mode_updates(void)
{
	uint64_t random = mono_ns();

	log_file = fopen(options.log, "w");
	if (!log_file) {
		perror(options.log);
		exit(1);
	}
	run_sleep_once();
	run_ready();
	while (!run_over()) {
		uint64_t dwell_ns = (uint64_t)options.dwell_us * 1000;

		work(mono_ns() + dwell_ns / 2 + random_between(&random, 0, dwell_ns));
		if (set.count < MAX_UPDATES)
			update();
		if (options.fork && set.count == FORK_AT) {
			options.fork = false;
			if (fork() == 0)
				run_child();
		}
	}
	fclose(log_file);
	while (wait(NULL) > 0)
		;
}
