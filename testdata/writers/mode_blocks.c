// SPDX-License-Identifier: Apache-2.0
/*
 * Threads that leave the CPU, each in a way and a function of its own: it sleeps, or
 * waits for a lock, for a futex, for a pipe or for nothing in poll, or in the C library
 * for a mutex or a condition variable. The labels are
 *
 *   op     the way, during the call; `after` from its return on, for a little CPU time;
 *          `idle` while the next one is set up; `warmup` before the first
 *   turn   even or odd: the odd waits are longer
 *
 * The truth is the time that passed between two publications less the CPU time, that
 * is, all time off the CPU under this set of labels, the wait for a CPU included.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "futex.h"
#include "labels.h"
#include "modes.h"
#include "options.h"
#include "run.h"

#define WARMUP_SLEEP_NS 10000000u
#define AFTER_NS 20000u
#define EVEN_NS 4000000u
#define ODD_NS 12000000u
#define LONG_FACTOR 200 /* waits that go on over several batches */
#define WAYS 8

/* A waiter and the peer that ends its waits. */
struct pair {
	int request[2]; /* waiter to peer: how long; its end ends the peer */
	int reply[2];
	uint32_t lock;
	uint32_t sequence;
	pthread_mutex_t mutex;
	pthread_cond_t cond;
};

struct way {
	const char *name;
	void (*prepare)(struct pair *pair, uint64_t ns); /* not timed */
	void (*block)(struct pair *pair, uint64_t ns);
	void (*finish)(struct pair *pair);	      /* not timed */
	void (*peer)(struct pair *pair, uint64_t ns); /* NULL: the kernel ends the wait */
	unsigned factor;
};

struct truth {
	uint64_t off_cpu_ns, blocks;
};

static struct pair pairs[WAYS];
static struct truth truths[WAYS][2];
static uint64_t begin_ns;

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static HOT void sleep_ns(uint64_t ns)
{
	struct timespec left = { .tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000) };

	while (syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &left, &left) != 0 && errno == EINTR)
		;
}

static HOT ssize_t read_pipe(int fd, void *to, size_t bytes)
{
	return syscall(SYS_read, fd, to, bytes);
}

static HOT void poll_nothing(uint64_t ns)
{
	struct timespec timeout = { .tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000) };

	syscall(SYS_ppoll, NULL, 0, &timeout, NULL, 0);
}

static void write_pipe(int fd, const void *from, size_t bytes)
{
	if (write(fd, from, bytes) != (ssize_t)bytes)
		fail("write to a pipe");
}

static void ask(struct pair *pair, uint64_t ns)
{
	write_pipe(pair->request[1], &ns, sizeof(ns));
}

static void ask_and_await(struct pair *pair, uint64_t ns)
{
	char reply;

	ask(pair, ns);
	if (read_pipe(pair->reply[0], &reply, 1) != 1)
		fail("read a reply");
}

static void unlock(struct pair *pair)
{
	futex_unlock(&pair->lock);
}

static HOT void blocks_sleep(struct pair *pair, uint64_t ns)
{
	(void)pair;
	sleep_ns(ns);
}

static HOT void blocks_long(struct pair *pair, uint64_t ns)
{
	(void)pair;
	sleep_ns(ns);
}

static HOT void blocks_poll(struct pair *pair, uint64_t ns)
{
	(void)pair;
	poll_nothing(ns);
}

static HOT void blocks_lock(struct pair *pair, uint64_t ns)
{
	(void)ns;
	futex_lock(&pair->lock);
}

static HOT void blocks_futex(struct pair *pair, uint64_t ns)
{
	(void)ns;
	while (__atomic_load_n(&pair->sequence, __ATOMIC_ACQUIRE) == 0)
		futex_wait(&pair->sequence, 0);
	__atomic_store_n(&pair->sequence, 0, __ATOMIC_RELAXED);
}

static HOT void blocks_pipe(struct pair *pair, uint64_t ns)
{
	char reply;

	(void)ns;
	if (read_pipe(pair->reply[0], &reply, 1) != 1)
		fail("read a reply");
}

static HOT void blocks_mutex(struct pair *pair, uint64_t ns)
{
	(void)ns;
	pthread_mutex_lock(&pair->mutex);
}

static void unlock_mutex(struct pair *pair)
{
	pthread_mutex_unlock(&pair->mutex);
}

static HOT void blocks_cond(struct pair *pair, uint64_t ns)
{
	(void)ns;
	pthread_mutex_lock(&pair->mutex);
	while (pair->sequence == 0)
		pthread_cond_wait(&pair->cond, &pair->mutex);
	pair->sequence = 0;
	pthread_mutex_unlock(&pair->mutex);
}

static void peer_mutex(struct pair *pair, uint64_t ns)
{
	pthread_mutex_lock(&pair->mutex);
	write_pipe(pair->reply[1], "", 1);
	sleep_ns(ns);
	pthread_mutex_unlock(&pair->mutex);
}

static void peer_cond(struct pair *pair, uint64_t ns)
{
	sleep_ns(ns);
	pthread_mutex_lock(&pair->mutex);
	pair->sequence = 1;
	pthread_mutex_unlock(&pair->mutex);
	pthread_cond_signal(&pair->cond);
}

static void peer_lock(struct pair *pair, uint64_t ns)
{
	futex_lock(&pair->lock);
	write_pipe(pair->reply[1], "", 1);
	sleep_ns(ns);
	futex_unlock(&pair->lock);
}

static void peer_futex(struct pair *pair, uint64_t ns)
{
	sleep_ns(ns);
	__atomic_store_n(&pair->sequence, 1, __ATOMIC_RELEASE);
	futex_wake(&pair->sequence, 1);
}

static void peer_pipe(struct pair *pair, uint64_t ns)
{
	sleep_ns(ns);
	write_pipe(pair->reply[1], "", 1);
}

static const struct way ways[WAYS] = {
	{ .name = "sleep", .block = blocks_sleep, .factor = 1 },
	{ .name = "long", .block = blocks_long, .factor = LONG_FACTOR },
	{ .name = "poll", .block = blocks_poll, .factor = 1 },
	{ .name = "lock",
	  .prepare = ask_and_await,
	  .block = blocks_lock,
	  .finish = unlock,
	  .peer = peer_lock,
	  .factor = 1 },
	{ .name = "futex", .prepare = ask, .block = blocks_futex, .peer = peer_futex, .factor = 1 },
	{ .name = "pipe", .prepare = ask, .block = blocks_pipe, .peer = peer_pipe, .factor = 1 },
	{ .name = "mutex",
	  .prepare = ask_and_await,
	  .block = blocks_mutex,
	  .finish = unlock_mutex,
	  .peer = peer_mutex,
	  .factor = 1 },
	{ .name = "cond", .prepare = ask, .block = blocks_cond, .peer = peer_cond, .factor = 1 },
};

static const char *const turns[] = { "even", "odd" };

static void publish(const char *op, int turn)
{
	struct label labels[] = { { "op", op }, { "turn", turns[turn] } };
	struct label_set set = { .count = 2, .labels = labels };

	labels_swap(&set, options.in_place);
}

static HOT void burn_after(void)
{
	uint64_t now = thread_cpu_ns();

	burn_until(now + AFTER_NS, now);
}

static void wait_once(const struct way *way, struct pair *pair, struct truth *truth, int turn)
{
	uint64_t ns = (turn ? ODD_NS : EVEN_NS) * (uint64_t)way->factor;
	uint64_t start, start_cpu, end_cpu;

	if (way->prepare)
		way->prepare(pair, ns);
	publish(way->name, turn);
	start = mono_ns();
	start_cpu = thread_cpu_ns();
	way->block(pair, ns);
	end_cpu = thread_cpu_ns();
	truth->off_cpu_ns += mono_ns() - start - (end_cpu - start_cpu);
	truth->blocks++;
	publish("after", turn);
	burn_after();
	publish("idle", turn);
	if (way->finish)
		way->finish(pair);
}

static void waiter(int index)
{
	struct pair *pair = &pairs[index];

	publish("warmup", 0);
	labels_print_variable();
	run_published();
	while (mono_ns() < begin_ns && !run_over())
		sleep_ns(WARMUP_SLEEP_NS);
	for (int turn = 0; !run_over(); turn = !turn)
		wait_once(&ways[index], pair, &truths[index][turn], turn);
	labels_clear();
	close(pair->request[1]);
}

static void peer(int index)
{
	struct pair *pair = &pairs[index];
	uint64_t ns;

	run_published();
	while (read_pipe(pair->request[0], &ns, sizeof(ns)) == sizeof(ns)) {
		if (ways[index].peer)
			ways[index].peer(pair, ns);
	}
}

static void body(int index)
{
	if (index < WAYS)
		waiter(index);
	else
		peer(index - WAYS);
}

static void write_truth(void)
{
	FILE *file = fopen(options.truth, "w");

	if (!file)
		fail(options.truth);
	fprintf(file, "{\"pid\": %d, \"abi\": \"%s\", \"sets\": [", (int)getpid(), publisher->name);
	for (int i = 0; i < 2 * WAYS; i++)
		fprintf(file,
			"%s\n{\"labels\": {\"op\": \"%s\", \"turn\": \"%s\"}, \"off_cpu_ns\": %" PRIu64
			", \"blocks\": %" PRIu64 "}",
			i ? "," : "", ways[i / 2].name, turns[i % 2], truths[i / 2][i % 2].off_cpu_ns,
			truths[i / 2][i % 2].blocks);
	fputs("\n]}\n", file);
	if (fclose(file) != 0)
		fail(options.truth);
}

void mode_blocks(void)
{
	begin_ns = mono_ns() + (uint64_t)options.warmup_ms * 1000000;
	for (int i = 0; i < WAYS; i++) {
		if (pipe(pairs[i].request) != 0 || pipe(pairs[i].reply) != 0)
			fail("make a pipe");
		pthread_mutex_init(&pairs[i].mutex, NULL);
		pthread_cond_init(&pairs[i].cond, NULL);
	}
	run_threads(2 * WAYS, body, NULL);
	if (options.truth)
		write_truth();
}
