/*
 * A thread in one fixed state of its label sources, for the tests of the BPF
 * programs. Prints where its variables are, then burns CPU in that state:
 *   target STATE [SECONDS]
 *   -> "PID OFFSET_V0 OFFSET_V1 OFFSET_CONTEXT SIGNED DESCEND OFFSET_NODEJS OFFSET_GO"
 * The offsets are from the thread pointer; SIGNED is the number of its frames whose
 * return address is stored with a pointer authentication code; DESCEND is where the
 * function of that name begins, in which a target of state depth-N stays.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/io_uring.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../switched.h"
#include "go.h"
#include "nodejs.h"

struct string {
	size_t len;
	const unsigned char *buf;
};
struct label {
	struct string key, value;
};
struct set {
	struct label *storage;
	size_t count;
	size_t capacity;
};
struct context {
	uint8_t trace_id[16], span_id[8], valid, flags;
	uint16_t size;
	uint8_t attrs[4096];
} __attribute__((packed, aligned(2)));

static __thread struct set v0; /* the first two members are the ABI's */
static __thread struct set *v1;
static __thread struct context *ctx;

static struct label slots[1000];
static struct set set = { slots, 0, 0 };
static struct context context;
static unsigned char bytes[4096];
static char keys[1000][16], values[1000][16];

#include "dtv.h"
#include "pointerbefore.h"
#include "threads.h"

#define UNMAPPED ((void *)0x10000)
#define KERNEL ((void *)0xffff888000000000)

static void put(int i, const void *key, size_t key_len, const void *value, size_t value_len)
{
	slots[i] = (struct label){ { key_len, key }, { value_len, value } };
	if (set.count <= (size_t)i)
		set.count = i + 1;
}

static void put_numbered(int i)
{
	snprintf(keys[i], sizeof(keys[i]), "k%d", i);
	snprintf(values[i], sizeof(values[i]), "v%d", i);
	put(i, keys[i], strlen(keys[i]), values[i], strlen(values[i]));
}

static void put_many(int n)
{
	for (int i = 0; i < n; i++)
		put_numbered(i);
}

#include "strings.h"

static void fill_context(void)
{
	for (int i = 0; i < 16; i++)
		context.trace_id[i] = 0xa0 + i;
	for (int i = 0; i < 8; i++)
		context.span_id[i] = 0xb0 + i;
	context.valid = 1;
	context.flags = 1;
	memset(context.attrs, '.', sizeof(context.attrs)); /* behind what there is */
	ctx = &context;
}

static void add_attrs(int n)
{
	for (int i = 0; i < n; i++) {
		uint8_t *at = context.attrs + context.size;

		at[0] = i;
		at[1] = 2;
		at[2] = 'a';
		at[3] = '0' + i;
		context.size += 4;
	}
}

/* A pointer as allocators that tag memory give it: aarch64 ignores the upper byte, x86-64 does not. */
static void *tagged(const void *p)
{
	return (void *)((uintptr_t)p | 0xa5ULL << 56);
}

static int enter(const char *state)
{
	v1 = &set;
	memset(bytes, 'x', sizeof(bytes));
	if (!strcmp(state, "null"))
		v1 = NULL;
	else if (!strcmp(state, "zero"))
		set.storage = NULL;
	else if (!strcmp(state, "count-0"))
		set.storage = UNMAPPED;
	else if (!strcmp(state, "labels-1") || !strcmp(state, "io-worker") || !strcmp(state, "in-kernel") ||
		 !strcmp(state, "never-switched") || !strcmp(state, "thread-ended"))
		put_many(1);
	else if (!strcmp(state, "thread") || !strcmp(state, "napping-thread") || !strcmp(state, "ending-threads")) {
		put_many(1);
		v1 = NULL; /* the others have labels */
	} else if (!strncmp(state, "dtv-", 4)) {
		put_many(1);
		return dtv_fill(state + 4, &set);
	} else if (!strcmp(state, "labels-10"))
		put_many(10);
	else if (!strcmp(state, "labels-64"))
		put_many(64);
	else if (!strcmp(state, "labels-65"))
		put_many(65);
	else if (!strcmp(state, "holes")) {
		put_many(400);
		for (int i = 0; i < 400; i++)
			if (i % 100 != 99) {
				slots[i].key.buf = NULL;
				slots[i].value.buf = UNMAPPED;
			}
	} else if (!strcmp(state, "holes-600")) {
		put_many(600);
		for (int i = 0; i < 600; i++)
			if (i % 100 != 99)
				slots[i].key.buf = NULL;
	} else if (!strcmp(state, "only-holes")) {
		put_many(3);
		for (int i = 0; i < 3; i++)
			slots[i].key.buf = NULL;
	} else if (!strcmp(state, "slots-600"))
		put_many(600);
	else if (!strcmp(state, "null-value")) {
		put_many(2);
		slots[0].value.buf = NULL;
	} else if (!strcmp(state, "empty"))
		put(0, "", 0, "", 0);
	else if (!strcmp(state, "value-1024"))
		put(0, "k", 1, bytes, 1024);
	else if (!strcmp(state, "value-2000"))
		put(0, "k", 1, bytes, 2000);
	else if (!strcmp(state, "key-300"))
		put(0, bytes, 300, "v", 1);
	else if (!strcmp(state, "value-2-60"))
		put(0, "k", 1, bytes, 1ULL << 60); /* only the bytes up to the bound are read */
	else if (!strcmp(state, "section-full") || !strcmp(state, "section-full-context")) {
		for (int i = 0; i < 20; i++)
			put(i, "k", 1, bytes, 1000);
		fill_context();
		add_attrs(10);
	} else if (!strcmp(state, "section-exact")) {
		for (int i = 0; i < 7; i++)
			put(i, "k", 1, bytes, 1000);
		put(7, "l", 1, bytes, 8064 - 16 - 7 * (12 + 1 + 1000) - (12 + 1)); /* up to its last byte */
		fill_context();
		add_attrs(12);
	} else if (!strcmp(state, "count-2-63")) {
		set.storage = end_of_memory(3 * sizeof(struct label));
		set.count = 1ULL << 63;
	} else if (!strcmp(state, "unmapped-set"))
		v1 = UNMAPPED;
	else if (!strcmp(state, "kernel-set"))
		v1 = KERNEL;
	else if (!strcmp(state, "unmapped-storage")) {
		put_many(1);
		set.storage = UNMAPPED;
	} else if (!strcmp(state, "null-storage")) {
		put_many(1);
		set.storage = NULL;
	} else if (!strcmp(state, "unmapped-key"))
		put(0, UNMAPPED, 4, "v", 1);
	else if (!strcmp(state, "kernel-value"))
		put(0, "k", 1, KERNEL, 8);
	else if (!strcmp(state, "empty-kernel"))
		put(0, KERNEL, 0, KERNEL, 0);
	else if (!strcmp(state, "fault-in-second")) {
		put_many(2);
		slots[1].value.buf = UNMAPPED;
	} else if (!strcmp(state, "tagged")) {
		put_many(2);
		for (int i = 0; i < 2; i++) {
			slots[i].key.buf = tagged(slots[i].key.buf);
			slots[i].value.buf = tagged(slots[i].value.buf);
		}
		set.storage = tagged(set.storage);
		v1 = tagged(&set);
	} else if (!strcmp(state, "context-tagged")) {
		fill_context();
		ctx = tagged(&context);
	} else if (!strcmp(state, "context"))
		fill_context();
	else if (!strcmp(state, "context-attrs-5")) {
		fill_context();
		add_attrs(5);
	} else if (!strcmp(state, "context-updating")) {
		fill_context();
		context.valid = 0;
	} else if (!strcmp(state, "context-garbage")) {
		fill_context();
		context.valid = 212;
	} else if (!strcmp(state, "context-attrs-3000")) {
		fill_context();
		memset(context.attrs, 0xff, 3000); /* one entry, longer than what follows: and resident memory */
		context.size = 3000;
	} else if (!strcmp(state, "context-past-end")) {
		fill_context();
		ctx = end_of_memory(40);
		memcpy(ctx, &context, 28);
		ctx->size = 13; /* one byte more than there is */
	} else if (!strcmp(state, "context-at-end")) {
		fill_context();
		ctx = end_of_memory(40);
		memcpy(ctx, &context, 28);
		ctx->size = 12;
	} else if (!strcmp(state, "context-across")) {
		fill_context();
		add_attrs(3);
		ctx = memcpy(across(40), &context, 40);
	} else if (!strcmp(state, "context-attrs-long")) {
		fill_context();
		context.size = 2 + 150;
		context.attrs[0] = 0;
		context.attrs[1] = 150;
		fill_string((char *)context.attrs + 2, 0, 150);
	} else if (!strcmp(state, "context-unmapped"))
		ctx = UNMAPPED;
	else if (!strncmp(state, "strings-", 8)) {
		if (!strings_fill(state + 8))
			return 0;
	} else if (!strncmp(state, "go-", 3))
		return go_fill(state + 3);
	else if (!strncmp(state, "node-", 5)) {
		fill_context();
		add_attrs(2);
		node_fill(&context);
		if (!strcmp(state, "node-updating"))
			context.valid = 0;
		else if (!strcmp(state, "node-garbage"))
			context.valid = 212;
		else if (!strcmp(state, "node-attrs-3000"))
			context.size = 3000;
		else
			return node_spoil(state + 5);
	} else
		return 0;
	v0 = set;
	return 1;
}

static unsigned signed_frames;
static unsigned long descend(int depth);

static char where[200];

static int find_where(void)
{
	const char *tp = __builtin_thread_pointer();

	return snprintf(where, sizeof(where), "%d %ld %ld %ld %u %lu %ld %ld\n", getpid(), (long)((char *)&v0 - tp),
			(long)((char *)&v1 - tp), (long)((char *)&ctx - tp), signed_frames, (unsigned long)descend,
			(long)((char *)&node - tp), (long)((char *)&go_g - tp));
}

static void say_where(void)
{
	find_where();
	fputs(where, stdout);
	fflush(stdout);
}

static volatile int handled; /* never */

__attribute__((noinline)) static void burn_in_handler(int signal)
{
	volatile unsigned long x = 0;

	(void)signal;
	while (!handled)
		x++;
}

/* A handler whose frame is larger than its return address and its caller's frame pointer. */
static void call_in_handler(int signal)
{
	volatile unsigned long x[8] = { 0 };

	burn_in_handler(signal);
	x[0]++;
}

static int in_handler; /* descend ends in one */

/* A stack of depth frames of this function. */
__attribute__((noinline)) static unsigned long descend(int depth)
{
	volatile unsigned long x = 0, zero = 0;	   /* each frame has a word that is 0 */
	void **frame = __builtin_frame_address(0); /* {caller's frame, return address} */

	/* On aarch64 the builtin removes the code, if there is one. */
	signed_frames += frame[1] != __builtin_return_address(0);
	if (depth == 0)
		say_where();
	if (depth == 0 && in_handler)
		raw_call(SYS_kill, getpid(), SIGUSR1, 0);
	while (depth == 0)
		x++;
	x = descend(depth - 1);
	return x + zero + 1;
}

/*
 * Keeps a worker of io_uring busy: reads that are made by a kernel-made thread of
 * this process, which has a copy of our thread pointer and no labels of its own.
 */
static void burn_in_worker(void)
{
	static char to[1 << 20];
	struct io_uring_params params = { 0 };
	int ring = (int)syscall(SYS_io_uring_setup, 4, &params);
	int from = open("/dev/urandom", O_RDONLY);
	char *sq, *cq;
	struct io_uring_sqe *sqe;
	unsigned tail = 0;

	if (ring < 0 || from < 0) {
		perror("io_uring");
		exit(1);
	}
	sq = mmap(NULL, params.sq_off.array + params.sq_entries * 4, PROT_READ | PROT_WRITE, MAP_SHARED, ring,
		  IORING_OFF_SQ_RING);
	cq = mmap(NULL, params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe), PROT_READ | PROT_WRITE,
		  MAP_SHARED, ring, IORING_OFF_CQ_RING);
	sqe = mmap(NULL, params.sq_entries * sizeof(*sqe), PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQES);
	for (;;) {
		memset(sqe, 0, sizeof(*sqe));
		sqe->opcode = IORING_OP_READ;
		sqe->flags = IOSQE_ASYNC;
		sqe->fd = from;
		sqe->addr = (uintptr_t)to;
		sqe->len = sizeof(to);
		((unsigned *)(sq + params.sq_off.array))[tail & (params.sq_entries - 1)] = 0;
		__atomic_store_n((unsigned *)(sq + params.sq_off.tail), ++tail, __ATOMIC_RELEASE);
		syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0);
		__atomic_store_n((unsigned *)(cq + params.cq_off.head), tail, __ATOMIC_RELEASE);
	}
}

/* A thread that is not the first one, and does nothing but wait. */
__attribute__((noreturn)) static void *nap_in_thread(void *argument)
{
	struct timespec nap = { 0, 1000000 };

	v1 = argument;
	say_where();
	for (;;)
		nanosleep(&nap, NULL);
}

/* A thread that is not the first one, and has labels. */
__attribute__((noreturn)) static void *burn_with_labels(void *argument)
{
	struct timespec nap = { 0, 20000000 };
	volatile unsigned long x = 0;

	v1 = argument;
	nanosleep(&nap, NULL);
	say_where();
	for (;;)
		x++;
}

/* Nearly all of the time inside of one system call. */
static void burn_in_kernel(void)
{
	static char to[1 << 20];
	int from = open("/dev/urandom", O_RDONLY);

	while (read(from, to, sizeof(to)) > 0)
		;
	perror("/dev/urandom");
	exit(1);
}

int main(int argc, char **argv)
{
	volatile unsigned long x = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (argc == 2 && !strcmp(argv[1], "pointer-before"))
		execute_again(argv);
	if (argc < 2 || argc > 3 ||
	    (strncmp(argv[1], "depth-", 6) && strncmp(argv[1], "handler-", 8) && strncmp(argv[1], "caller-", 7) &&
	     !enter(argv[1]))) {
		fprintf(stderr, "usage: %s STATE [SECONDS]\n", argv[0]);
		return 2;
	}
	alarm(argc > 2 ? atoi(argv[2]) : 60);
	while (!strcmp(argv[1], "never-switched"))
		x++;
	sleep_until_switched(20000);
	if (!strncmp(argv[1], "depth-", 6))
		descend(atoi(argv[1] + 6));
	if (!strncmp(argv[1], "handler-", 8)) {
		in_handler = 1;
		signal(SIGUSR1, burn_in_handler);
		descend(atoi(argv[1] + 8));
	}
	if (!strncmp(argv[1], "caller-", 7)) {
		in_handler = 1;
		signal(SIGUSR1, call_in_handler);
		descend(atoi(argv[1] + 7));
	}
	if (!strncmp(argv[1], "dtv-", 4))
		dtv_burn(where, find_where());
	if (!strcmp(argv[1], "thread"))
		wait_for_thread(burn_with_labels, &set);
	if (!strcmp(argv[1], "napping-thread"))
		wait_for_thread(nap_in_thread, &set);
	if (!strcmp(argv[1], "thread-ended"))
		pthread_join(start_thread(return_at_once, NULL), NULL);
#ifdef __aarch64__
	if (!strcmp(argv[1], "go-register")) {
		find_where();
		go_burn_in_register(where);
	}
#endif
	say_where();
	if (!strcmp(argv[1], "ending-threads"))
		end_threads(&set);
	if (!strcmp(argv[1], "io-worker"))
		burn_in_worker();
	if (!strcmp(argv[1], "in-kernel"))
		burn_in_kernel();
	for (;;)
		change(x++);
}
