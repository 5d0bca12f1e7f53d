// SPDX-License-Identifier: Apache-2.0
/* Publishes by the rules, but for the one that its argument names. */
#include "writer.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "../writers/abi.h"
#include "../writers/memory.h"
#include "../writers/tls.h"

#define SECONDS 30
#define DWELL_US 300
#define LONG_BYTES 2000

static const char *rule = "";
static void *(*address)(void);

bool breaks(const char *name)
{
	return strcmp(rule, name) == 0;
}

void *unmapped(void)
{
	static void *page;

	if (!page) {
		page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (page == MAP_FAILED)
			exit(1);
	}
	return page;
}

static struct abi_string text(const char *s)
{
	return (struct abi_string){ strlen(s), (const unsigned char *)s };
}

/* Two labels, of which the second is broken. */
static struct abi_label *labels(const char *tenant)
{
	static char filler[LONG_BYTES];
	struct abi_label *storage = must_malloc(2 * sizeof(*storage) + 1);

	memset(filler, 'a', sizeof(filler));
	if (breaks("set-alignment"))
		storage = (void *)((char *)storage + 1);
	storage[0] = (struct abi_label){ text("tenant"), text(tenant) };
	storage[1] = (struct abi_label){ text("route"), text("/browse") };
	if (breaks("keys-unique"))
		storage[1].key = storage[0].key;
	if (breaks("keys-readable"))
		storage[1].key.buf = unmapped();
	if (breaks("values-readable"))
		storage[1].value.buf = unmapped();
	if (breaks("values-present"))
		storage[1].value.buf = NULL;
	if (breaks("reader-limits"))
		storage[1].value = (struct abi_string){ sizeof(filler), (unsigned char *)filler };
	if (breaks("storage-readable"))
		return unmapped();
	return storage;
}

static struct abi_v1_set *label_set(const char *tenant)
{
	struct abi_v1_set *set = must_malloc(sizeof(*set));

	if (breaks("set-readable"))
		return unmapped();
	*set = (struct abi_v1_set){ labels(tenant), 2, 2 };
	return set;
}

static void put_attribute(struct abi_context *record, uint8_t index, const char *value)
{
	uint8_t *at = record->attrs + record->attrs_size, len = (uint8_t)strlen(value);

	at[0] = index;
	at[1] = len;
	memcpy(at + 2, value, len);
	record->attrs_size = (uint16_t)(record->attrs_size + 2 + len);
}

static struct abi_context *context(const char *tenant)
{
	char *memory = must_malloc(2048);
	struct abi_context *record = (void *)(memory + breaks("record-alignment"));

	memset(memory, 0, 2048);
	if (breaks("record-readable"))
		return unmapped();
	memset(record->trace_id, 1, sizeof(record->trace_id));
	memset(record->span_id, breaks("ids") ? 0 : 2, sizeof(record->span_id));
	record->trace_flags = 1;
	if (breaks("trace-flags")) {
		memset(record->trace_id, 0, sizeof(record->trace_id));
		memset(record->span_id, 0, sizeof(record->span_id));
	}
	put_attribute(record, 0, tenant);
	put_attribute(record, breaks("key-map-complete") ? 9 : 1, breaks("attributes-utf8") ? "\xc3(" : "/browse");
	if (breaks("attributes-complete"))
		record->attrs_size--;
	for (int i = 0; breaks("record-size") && i < 90; i++)
		put_attribute(record, 1, "/browse");
	record->valid = breaks("valid") ? 212 : !breaks("never-complete");
	return record;
}

#if ABI == 0
static void publish(int turn)
{
	static struct abi_label *sets[2];
	struct abi_v0_data *data = address();

	if (!sets[0]) {
		sets[0] = labels("acme");
		sets[1] = labels("globex");
	}
	STORE(data->count, 0);
	IN_ORDER();
	STORE(data->storage, sets[turn % 2]);
	IN_ORDER();
	STORE(data->count, 2);
}
#elif ABI == 1
static void publish(int turn)
{
	static struct abi_v1_set *sets[2];

	if (!sets[0]) {
		sets[0] = label_set("acme");
		sets[1] = label_set("globex");
	}
	IN_ORDER();
	STORE(*(struct abi_v1_set **)address(), sets[turn % 2]);
}
#else
static void publish(int turn)
{
	static struct abi_context *records[2];
	struct abi_context *next;

	if (!records[0]) {
		records[0] = context("acme");
		records[1] = context("globex");
	}
	next = records[turn % 2];
	if (breaks("one-way-of-update"))
		next->valid = turn % 4 > 1;
	IN_ORDER();
	STORE(*(struct abi_context **)address(), next);
}
#endif

static void *work(void *unused)
{
	(void)unused;
	for (int turn = 0;; turn++) {
		publish(turn);
		usleep(DWELL_US);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (argc > 1)
		rule = argv[1];
#ifdef LIBRARY
	void *library = dlopen(LIBRARY, RTLD_NOW);

	if (!library)
		return 1;
	*(void **)&address = dlsym(library, "variable");
#else
	address = variable;
#endif
	unmapped();
#if ABI == 2
	publish_context();
#endif
	if (pthread_create(&thread, NULL, work, NULL) != 0)
		return 1;
	usleep(20000);
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	for (int i = 0; i < SECONDS * 100; i++) {
		usleep(10000);
#if ABI == 2
		publish_context();
#endif
	}
	(void)label_set;
	(void)labels;
	(void)context;
	return 0;
}
