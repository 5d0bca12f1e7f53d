/*
 * What Go's runtime has in memory of a thread, its goroutine and the labels of that,
 * right and otherwise: states of target.c. Layouts as in internal/bpf/src/go.bpf.h.
 */
#ifndef TARGET_GO_H
#define TARGET_GO_H

#define GO_SLOTS 8 /* of a bucket */
#define GO_BUCKETS 300
#define GO_TOP_HASH 77
#define GO_EMPTY 0
#define GO_MOVED 2 /* evacuatedX */

struct go_str {
	const void *buf;
	uint64_t len;
};
struct go_label {
	struct go_str key, value;
};
struct go_g {
	uint64_t other[2], m, labels;
};
struct go_m {
	uint64_t other[3], procid, curg;
};
struct go_slice {
	uint64_t list, len, cap;
};
struct go_map {
	uint64_t count;
	uint8_t flags, log_buckets;
	uint16_t noverflow;
	uint32_t hash0;
	uint64_t buckets, old_buckets, evacuated;
};
struct go_bucket {
	uint8_t tophash[GO_SLOTS];
	struct go_str keys[GO_SLOTS], values[GO_SLOTS];
	uint64_t overflow;
};

static __thread uint64_t go_g; /* runtime.tlsg */

/* The same with what is read just too far apart for one read, and as far as it may be, the other way round. */
static struct {
	uint64_t other, m, between[63], labels; /* 520 bytes in all but the first word */
} go_far_g;
static struct {
	uint64_t curg, between[62], procid; /* 512 bytes in all */
} go_far_m;

static struct go_g go_goroutine, go_g0;
static struct go_m go_m, go_other_m;
static struct go_slice go_set;
static struct go_label go_labels[1000];
static struct go_map go_map;
static uint64_t go_map_pointer;
static struct go_bucket go_buckets[GO_BUCKETS], go_old[GO_BUCKETS];

static struct go_label go_numbered(int i)
{
	static char keys[1000][16], values[1000][16];
	int key = snprintf(keys[i], sizeof(keys[i]), "k%d", i);
	int value = snprintf(values[i], sizeof(values[i]), "v%d", i);

	return (struct go_label){ { keys[i], key }, { values[i], value } };
}

static void go_put(struct go_bucket *b, int slot, struct go_label l)
{
	b->tophash[slot] = GO_TOP_HASH;
	b->keys[slot] = l.key;
	b->values[slot] = l.value;
	go_map.count++;
}

static void go_slice_of(int n)
{
	for (int i = 0; i < n; i++)
		go_labels[i] = go_numbered(i);
	go_set = (struct go_slice){ (uintptr_t)go_labels, n, n };
}

/* n labels in 2^log buckets, each full before what overflows from it, if that must be. */
static void go_map_of(int n, int log)
{
	struct go_bucket *last[GO_BUCKETS];
	int buckets = 1 << log, used = buckets;

	go_map.log_buckets = log;
	for (int i = 0; i < buckets; i++)
		last[i] = &go_buckets[i];
	for (int i = 0; i < n; i++) {
		int b = i % buckets, slot = i / buckets % GO_SLOTS;

		if (i >= buckets && !slot) {
			last[b]->overflow = (uintptr_t)&go_buckets[used];
			last[b] = &go_buckets[used++];
		}
		go_put(last[b], slot, go_numbered(i));
	}
}

/* Buckets without labels behind the first one, n with it; 0: without an end. */
static void go_chain(int n)
{
	go_map_of(1, 0);
	for (int i = 0; i < n - 1; i++)
		go_buckets[i].overflow = (uintptr_t)&go_buckets[i + 1];
	if (!n)
		go_buckets[1].overflow = go_buckets[0].overflow = (uintptr_t)&go_buckets[1];
}

/*
 * A map of five labels in the middle of growing from 2 to 4 buckets: bucket 0 has been
 * moved, bucket 1 and what overflows from it has not. Or to as many (same).
 */
static void go_growing(int same)
{
	struct go_bucket *overflow = &go_old[2];

	go_map.log_buckets = same ? 1 : 2;
	go_map.flags = same ? 8 : 0;
	go_map.old_buckets = (uintptr_t)go_old;
	for (int i = 0; i < GO_SLOTS; i++)
		go_old[0].tophash[i] = GO_MOVED + i % 3;
	go_old[0].keys[0] = go_old[0].values[0] = (struct go_str){ (void *)0x10000, 9 };
	go_put(&go_buckets[0], 0, go_numbered(0));
	go_put(&go_buckets[same ? 0 : 2], 1, go_numbered(1));
	go_put(&go_old[1], 3, go_numbered(2));
	go_put(&go_old[1], 7, go_numbered(3));
	go_old[1].overflow = (uintptr_t)overflow;
	go_put(overflow, 0, go_numbered(4));
	if (same) /* a third old bucket is none */
		overflow = &go_old[3], go_old[1].overflow = (uintptr_t)overflow, *overflow = go_old[2];
}

static void go_one(const void *key, uint64_t key_len, const void *value, uint64_t value_len)
{
	go_slice_of(1);
	go_labels[0] = (struct go_label){ { key, key_len }, { value, value_len } };
}

static int go_map_state(const char *state, uint64_t unmapped, uint64_t kernel)
{
	int n, log, used;

	if (sscanf(state, "%d-in-%d%n", &n, &log, &used) == 2 && !state[used])
		go_map_of(n, log);
	else if (!strcmp(state, "nil"))
		go_map_pointer = 0;
	else if (!strcmp(state, "growing"))
		go_growing(0);
	else if (!strcmp(state, "same-size"))
		go_growing(1);
	else if (sscanf(state, "chain-%d", &n) == 1)
		go_chain(n);
	else if (!strcmp(state, "miscounted"))
		go_map_of(3, 0), go_map.count = 4;
	else if (!strcmp(state, "no-buckets"))
		go_map_of(3, 0), go_map.buckets = 0;
	else if (!strcmp(state, "huge"))
		go_map_of(3, 0), go_map.log_buckets = 17;
	else if (!strcmp(state, "unmapped"))
		go_map_pointer = unmapped;
	else if (!strcmp(state, "unmapped-buckets"))
		go_map_of(3, 0), go_map.buckets = kernel;
	else if (!strcmp(state, "unmapped-old"))
		go_growing(0), go_map.old_buckets = unmapped;
	else if (!strcmp(state, "unmapped-overflow"))
		go_map_of(3, 0), go_buckets[0].overflow = unmapped;
	else
		return 0;
	return 1;
}

/* state is without the prefix "go-". */
static int go_fill(const char *state)
{
	static unsigned char bytes[4096];
	const uint64_t unmapped = 0x10000, kernel = 0xffff888000000000;
	int n, used;

	memset(bytes, 'x', sizeof(bytes));
	go_g = (uintptr_t)&go_goroutine;
	go_goroutine.m = go_g0.m = (uintptr_t)&go_m;
	go_m.procid = syscall(SYS_gettid);
	go_m.curg = (uintptr_t)&go_goroutine;
	go_goroutine.labels = (uintptr_t)&go_set;
	if (!strncmp(state, "map-", 4)) {
		for (int i = 0; i < GO_BUCKETS; i++) /* BPF sees no page that was never touched */
			*(volatile uint64_t *)&go_buckets[i].overflow = 0;
		go_goroutine.labels = (uintptr_t)&go_map_pointer;
		go_map_pointer = (uintptr_t)&go_map;
		go_map.buckets = (uintptr_t)go_buckets;
		return go_map_state(state + 4, unmapped, kernel);
	}
	go_slice_of(1);
	if (sscanf(state, "labels-%d%n", &n, &used) == 1 && !state[used])
		go_slice_of(n);
	else if (!strcmp(state, "no-goroutine"))
		go_g = 0;
	else if (!strcmp(state, "no-m"))
		go_goroutine.m = 0;
	else if (!strcmp(state, "other-thread"))
		go_m.procid++;
	else if (!strcmp(state, "thread-begins"))
		go_m.procid = 0;
	else if (!strcmp(state, "scheduler"))
		go_m.curg = 0;
	else if (!strcmp(state, "g0"))
		go_g = (uintptr_t)&go_g0;
	else if (!strcmp(state, "g0-left"))
		go_g = (uintptr_t)&go_g0, go_g0.m = (uintptr_t)&go_m, go_goroutine.m = 0;
	else if (!strcmp(state, "g0-other"))
		go_g = (uintptr_t)&go_g0, go_goroutine.m = (uintptr_t)&go_other_m;
	else if (!strcmp(state, "far")) {
		go_far_g.m = (uintptr_t)&go_far_m;
		go_far_g.labels = (uintptr_t)&go_set;
		go_far_m.procid = go_m.procid;
		go_far_m.curg = go_g = (uintptr_t)&go_far_g;
	} else if (!strcmp(state, "none"))
		go_goroutine.labels = 0;
	else if (!strcmp(state, "empty"))
		go_one(NULL, 0, NULL, 0);
	else if (!strcmp(state, "value-1024"))
		go_one("k", 1, bytes, 1024);
	else if (!strcmp(state, "value-2000"))
		go_one("k", 1, bytes, 2000);
	else if (!strcmp(state, "value-2-60"))
		go_one("k", 1, bytes, 1ULL << 60);
	else if (!strcmp(state, "key-300"))
		go_one(bytes, 300, "v", 1);
	else if (!strcmp(state, "section-full")) {
		go_slice_of(20);
		for (int i = 0; i < 20; i++)
			go_labels[i].value = (struct go_str){ bytes, 1000 };
	} else if (!strcmp(state, "null-list"))
		go_set.list = 0;
	else if (!strcmp(state, "unmapped-g"))
		go_g = unmapped;
	else if (!strcmp(state, "unmapped-m"))
		go_goroutine.m = kernel;
	else if (!strcmp(state, "unmapped-current"))
		go_m.curg = unmapped;
	else if (!strcmp(state, "unmapped-set"))
		go_goroutine.labels = unmapped;
	else if (!strcmp(state, "unmapped-list"))
		go_set.list = kernel;
	else if (!strcmp(state, "unmapped-key"))
		go_one((void *)unmapped, 4, "v", 1);
	else if (!strcmp(state, "kernel-value"))
		go_one("k", 1, (void *)kernel, 8);
	else if (strcmp(state, "register"))
		return 0;
	return 1;
}

#ifdef __aarch64__
/*
 * A program without C code: the goroutine is in a register, and nowhere else. It is
 * there before the line is written: whoever has read the line may look at once.
 */
static void go_burn_in_register(const char *line)
{
	uint64_t g = go_g, bytes = strlen(line);

	go_g = 0;
	/* Nothing may come between these and the instruction: a call may use the registers. */
	register uint64_t number asm("x8") = SYS_write;
	register uint64_t fd asm("x0") = STDOUT_FILENO;
	register const char *from asm("x1") = line;
	register uint64_t length asm("x2") = bytes;
	asm volatile("mov x28, %4\n\tsvc 0\n1:\n\tb 1b"
		     :
		     : "r"(number), "r"(fd), "r"(from), "r"(length), "r"(g)
		     : "x28", "memory");
}
#endif

#endif
