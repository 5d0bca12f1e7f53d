// SPDX-License-Identifier: Apache-2.0
/*
 * contexts N: so many processes, each with a process context of 58 attributes of 1,000 bytes
 * that no other one has.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	ATTRIBUTES = 58,
	VALUE_BYTES = 1000,
	PAGE_BYTES = 4096,
	ROOM = 64 << 10,
	KEY = 0x0a,
	VALUE = 0x12
};

/* OTEP 4719, "Header". */
struct header {
	char signature[8];
	uint32_t version;
	uint32_t payload_bytes;
	uint64_t published_at_ns;
	const void *payload;
};

/* A protobuf message that grows at its end. */
struct message {
	size_t len;
	uint8_t bytes[ROOM];
};

static void put(struct message *m, const void *bytes, size_t len)
{
	memcpy(m->bytes + m->len, bytes, len);
	m->len += len;
}

static void put_field(struct message *m, uint8_t tag, const void *bytes, size_t len)
{
	put(m, &tag, 1);
	for (size_t n = len;; n >>= 7) {
		uint8_t byte = (uint8_t)((n & 127) | (n > 127 ? 128 : 0));

		put(m, &byte, 1);
		if (n <= 127)
			break;
	}
	put(m, bytes, len);
}

static void publish(unsigned number)
{
	static struct message resource, payload;
	int fd = memfd_create("OTEL_CTX", 0);
	struct header *header;

	for (int i = 0; i < ATTRIBUTES; i++) {
		static struct message value, pair;
		char key[32], text[VALUE_BYTES];
		unsigned seed = number * 7919 + (unsigned)i * 131;

		for (size_t at = 0; at < sizeof(text); at++)
			text[at] = (char)('a' + rand_r(&seed) % 26);
		value.len = pair.len = 0;
		put_field(&value, KEY, text, sizeof(text)); /* AnyValue.string_value has the number of a key */
		put_field(&pair, KEY, key, (size_t)snprintf(key, sizeof(key), "k%03d.%u", i, number));
		put_field(&pair, VALUE, value.bytes, value.len);
		put_field(&resource, KEY, pair.bytes, pair.len);
	}
	put_field(&payload, KEY, resource.bytes, resource.len);
	if (fd < 0 || ftruncate(fd, PAGE_BYTES) ||
	    (header = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)) == MAP_FAILED) {
		perror("publish");
		exit(1);
	}
	header->version = 2;
	header->payload_bytes = (uint32_t)payload.len;
	header->published_at_ns = 77;
	header->payload = payload.bytes;
	memcpy(header->signature, "OTEL_CTX", sizeof(header->signature));
}

int main(int argc, char **argv)
{
	unsigned processes = argc > 1 ? (unsigned)atoi(argv[1]) : 1;

	for (unsigned i = 0; i < processes; i++) {
		if (fork())
			continue;
		prctl(PR_SET_PDEATHSIG, 9);
		publish(i);
		for (volatile unsigned long turns = 0;; turns++)
			if (turns % 100000 == 0)
				usleep(20000);
	}
	while (wait(NULL) > 0)
		;
	return 0;
}
