// SPDX-License-Identifier: Apache-2.0
/* The process context (OTEP 4719), which is published once and updated every time after. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "writer.h"

#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif

struct header {
	char signature[8];
	uint32_t version, payload_bytes;
	uint64_t published_at_ns;
	const void *payload;
};

/* Of less than 128 bytes, so that a length is one byte. */
struct message {
	uint8_t len, bytes[255];
};

static void put(struct message *to, int field, const void *bytes, size_t len)
{
	to->bytes[to->len++] = (uint8_t)(field << 3 | 2);
	to->bytes[to->len++] = (uint8_t)len;
	memcpy(to->bytes + to->len, bytes, len);
	to->len = (uint8_t)(to->len + len);
}

static void put_pair(struct message *to, int field, const char *key, int kind, const void *bytes, size_t len)
{
	struct message value = { 0 }, pair = { 0 };

	put(&value, kind, bytes, len);
	put(&pair, 1, key, strlen(key));
	put(&pair, 2, value.bytes, value.len);
	put(to, field, pair.bytes, pair.len);
}

static void put_text(struct message *to, int field, const char *key, const char *text)
{
	put_pair(to, field, key, 1, text, strlen(text));
}

static void put_name(struct message *names, const char *name)
{
	struct message value = { 0 };

	put(&value, 1, name, strlen(name));
	put(names, 1, value.bytes, value.len);
}

static const char *schema(void)
{
	if (breaks("schema"))
		return "tls_v9";
	return breaks("schema-released") ? "tlsdesc_v1_dev" : "tls_v1";
}

static struct message encode(int turn)
{
	struct message all = { 0 }, resource = { 0 }, names = { 0 };
	int swapped = breaks("key-map-append-only") && turn % 2;
	char instance[16];

	if (!breaks("service-name"))
		put_text(&resource, 1, "service.name", "shop");
	snprintf(instance, sizeof(instance), "%06d", turn);
	put_text(&resource, 1, "service.instance.id", instance);
	if (breaks("resource-keys"))
		put_text(&resource, 1, "service.instance.id", "again");
	if (breaks("coordination"))
		put_text(&resource, 1, "threadlocal.x", "y");
	put(&all, 1, resource.bytes, resource.len);
	put_text(&all, 2, "threadlocal.schema_version", schema());
	put_name(&names, swapped ? "route" : "tenant");
	put_name(&names, swapped || breaks("key-map") ? "tenant" : "route");
	put_pair(&all, 2, "threadlocal.attribute_key_map", 5, names.bytes, names.len);
	if (breaks("payload-fields"))
		put(&all, 7, "x", 1);
	if (breaks("payload-decodes"))
		memset(all.bytes, 0xff, all.len);
	return all;
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(breaks("clock") ? CLOCK_REALTIME : CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static struct header *map(void)
{
	int protection = PROT_READ | PROT_WRITE | (breaks("permissions") ? PROT_EXEC : 0);
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int fd = breaks("mapping-name") ? -1 : memfd_create("OTEL_CTX", MFD_CLOEXEC);
	void *p;

	if (fd >= 0 && ftruncate(fd, (off_t)page) != 0)
		exit(1);
	p = mmap(NULL, page, protection, MAP_PRIVATE | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);
	if (p == MAP_FAILED || (!breaks("dont-fork") && madvise(p, page, MADV_DONTFORK) != 0))
		exit(1);
	return p;
}

/* Not where readers are to find no name. That a kernel cannot name mappings does not matter. */
static void name(struct header *header)
{
	if (!breaks("mapping-named") && !breaks("mapping-name"))
		prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, header, sysconf(_SC_PAGESIZE), "OTEL_CTX");
}

void publish_context(void)
{
	static struct message payloads[2];
	static struct header *header;
	static int turn;
	struct message *payload;

	if (!header)
		header = map();
	payload = &payloads[turn % 2];
	if (!breaks("update") || turn == 0)
		header->published_at_ns = 0;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	*payload = encode(turn++);
	header->payload = breaks("payload-readable") ? unmapped() : payload->bytes;
	header->payload_bytes = breaks("payload-size") ? 1 << 20 : payload->len;
	header->version = breaks("version") ? 1 : 2;
	memcpy(header->signature, breaks("signature") ? "OTEL_CTY" : "OTEL_CTX", 8);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (!breaks("timestamp") && header->published_at_ns == 0)
		header->published_at_ns = now();
	name(header);
	if (breaks("single") && turn == 1) {
		static struct message second;
		struct header *other = map();

		second = *payload;
		*other = *header;
		other->payload = second.bytes;
		name(other);
	}
}
