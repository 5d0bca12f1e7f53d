// SPDX-License-Identifier: Apache-2.0
#include "process_context.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "memory.h"
#include "options.h"

#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif

#define MAX_KEYS 256
#define MAX_PAYLOAD 16384

/* OTEP 4719, "Header". */
struct header {
	char signature[8];
	uint32_t version;
	uint32_t payload_bytes;
	uint64_t published_at_ns;
	const uint8_t *payload;
};

_Static_assert(sizeof(struct header) == 32, "header");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct header *header;
static size_t known;
static char keys[MAX_KEYS][64];

/* A protobuf message that grows at its end. */
struct message {
	size_t len;
	uint8_t bytes[MAX_PAYLOAD];
};

static void put(struct message *m, const void *bytes, size_t len)
{
	if (len > sizeof(m->bytes) - m->len) {
		fputs("the process context is too small\n", stderr);
		exit(1);
	}
	memcpy(m->bytes + m->len, bytes, len);
	m->len += len;
}

static void put_varint(struct message *m, size_t n)
{
	do {
		uint8_t byte = (uint8_t)((n & 127) | (n > 127 ? 128 : 0));

		put(m, &byte, 1);
		n >>= 7;
	} while (n > 0);
}

/* A field of wire type 2. */
static void put_field(struct message *m, size_t number, const void *bytes, size_t len)
{
	put_varint(m, number << 3 | 2);
	put_varint(m, len);
	put(m, bytes, len);
}

/* common.v1.KeyValue with the encoded AnyValue. */
static void put_key_value(struct message *to, size_t number, const char *key, const struct message *value)
{
	struct message m = { 0 };

	put_field(&m, 1, key, strlen(key));
	put_field(&m, 2, value->bytes, value->len);
	put_field(to, number, m.bytes, m.len);
}

static void put_text(struct message *to, size_t number, const char *key, const char *text)
{
	struct message value = { 0 };

	put_field(&value, 1, text, strlen(text));
	put_key_value(to, number, key, &value);
}

static void encode(struct message *m)
{
	struct message resource = { 0 }, list = { 0 }, value = { 0 };

	put_text(&resource, 1, "service.name", options.service);
	put_field(m, 1, resource.bytes, resource.len);
	put_text(m, 2, "threadlocal.schema_version", "tls_v1");
	for (size_t i = 0; i < known; i++) {
		struct message text = { 0 };

		put_field(&text, 1, keys[i], strlen(keys[i]));
		put_field(&list, 1, text.bytes, text.len);
	}
	put_field(&value, 5, list.bytes, list.len); /* array_value */
	put_key_value(m, 2, "threadlocal.attribute_key_map", &value);
}

static struct header *map(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int fd = memfd_create("OTEL_CTX", MFD_CLOEXEC);
	void *p;

	if (fd < 0 || ftruncate(fd, (off_t)page) != 0)
		goto fail;
	p = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED || madvise(p, page, MADV_DONTFORK) != 0)
		goto fail;
	close(fd);
	return p;
fail:
	perror("process context");
	exit(1);
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void publish(void)
{
	static struct message current; /* rewritten in its place */
	struct message *next = must_malloc(sizeof(*next));

	memset(next, 0, sizeof(*next));
	encode(next);
	if (!header)
		header = map();
	__atomic_store_n(&header->published_at_ns, 0, __ATOMIC_SEQ_CST);
	current = *next;
	free(next);
	header->payload = current.bytes;
	header->payload_bytes = (uint32_t)current.len;
	header->version = 2;
	memcpy(header->signature, "OTEL_CTX", 8);
	__atomic_store_n(&header->published_at_ns, now(), __ATOMIC_SEQ_CST);
	/* Refused by kernels that name no mappings; a reader may watch the call. */
	prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, header, sysconf(_SC_PAGESIZE), "OTEL_CTX");
}

void process_context_publish(const struct label_set *set)
{
	if (options.no_process_context || set->count <= __atomic_load_n(&known, __ATOMIC_ACQUIRE))
		return;
	pthread_mutex_lock(&lock);
	if (set->count > known && set->count <= MAX_KEYS) {
		for (size_t i = known; i < set->count; i++)
			snprintf(keys[i], sizeof(keys[i]), "%s", set->labels[i].key);
		__atomic_store_n(&known, set->count, __ATOMIC_RELEASE);
		publish();
	}
	pthread_mutex_unlock(&lock);
}

void process_context_forget(void)
{
	header = NULL;
	known = 0;
}
