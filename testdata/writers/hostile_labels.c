// SPDX-License-Identifier: Apache-2.0
/* Kinds for v0 and v1. Where one label is bad, the label good=yes stands before and behind it. */
#include <string.h>

#include "abi.h"
#include "hostile.h"
#include "labels.h"
#include "memory.h"
#include "tls.h"

#define MANY_SLOTS 100000
#define MANY_LABELS 2000
#define LONG_BYTES 70000
#define HUGE_COUNT ((size_t)1 << 63)
#define HUGE_BYTES ((size_t)1 << 60)

/* v0 has the set in the variable, v1 a pointer to it. */
static void publish_raw(struct abi_label *storage, size_t count)
{
	static struct abi_v1_set set;

	if (publisher->abi == ABI_V0) {
		struct abi_v0_data *data = publisher->variable();

		STORE(data->count, 0);
		IN_ORDER();
		STORE(data->storage, storage);
		IN_ORDER();
		STORE(data->count, count);
	} else {
		struct abi_v1_set **current = publisher->variable();

		STORE(*current, NULL);
		IN_ORDER();
		set = (struct abi_v1_set){ .storage = storage, .count = count };
		IN_ORDER();
		STORE(*current, &set);
	}
	IN_ORDER();
}

/* The address of the set itself is bad: in v0 the next best thing is its storage. */
static void publish_pointer(void *set)
{
	if (publisher->abi == ABI_V0)
		publish_raw(set, 1);
	else
		STORE(*(void **)publisher->variable(), set);
}

static struct abi_string text(const char *s)
{
	return (struct abi_string){ .len = strlen(s), .buf = (const unsigned char *)s };
}

static struct abi_string bytes(const void *buf, size_t len)
{
	return (struct abi_string){ .len = len, .buf = buf };
}

static void publish_between(struct abi_string key, struct abi_string value)
{
	static struct abi_label storage[3];

	publish_raw(NULL, 0);
	storage[0] = (struct abi_label){ text("good"), text("yes") };
	storage[1] = (struct abi_label){ key, value };
	storage[2] = (struct abi_label){ text("also_good"), text("yes") };
	publish_raw(storage, 3);
}

/* Holes: keys without an address. Written one by one, so that the memory is there. */
static struct abi_label *holes(void)
{
	static struct abi_label *storage;

	if (!storage) {
		storage = must_malloc(MANY_SLOTS * sizeof(*storage));
		for (int i = 0; i < MANY_SLOTS; i++)
			storage[i] = (struct abi_label){ .key = { .len = 1 } };
	}
	return storage;
}

static void count_huge(void)
{
	struct abi_label *storage = holes();

	publish_raw(NULL, 0);
	storage[MANY_SLOTS - 1] = storage[1];
	storage[0] = (struct abi_label){ text("good"), text("yes") };
	publish_raw(storage, HUGE_COUNT);
}

static void many_slots(void)
{
	struct abi_label *storage = holes();

	publish_raw(NULL, 0);
	storage[0] = storage[1];
	storage[MANY_SLOTS - 1] = (struct abi_label){ text("last"), text("yes") };
	publish_raw(storage, MANY_SLOTS);
}

static void many_labels(void)
{
	static struct abi_label storage[MANY_LABELS];
	static char keys[MANY_LABELS][8];

	for (int i = 0; i < MANY_LABELS; i++) {
		snprintf(keys[i], sizeof(keys[i]), "k%d", i);
		storage[i] = (struct abi_label){ text(keys[i]), text("v") };
	}
	publish_raw(storage, MANY_LABELS);
}

/* The second label of two lies beyond the page. */
static void storage_page_end(void)
{
	struct abi_label *storage = (struct abi_label *)places.page_end - 1;

	*storage = (struct abi_label){ text("good"), text("yes") };
	publish_raw(storage, 2);
}

static void storage_misaligned(void)
{
	static unsigned char memory[3 * sizeof(struct abi_label)];
	struct abi_label label = { text("odd"), text("yes") };

	memcpy(memory + 3, &label, sizeof(label));
	publish_raw((struct abi_label *)(void *)(memory + 3), 1);
}

static void value_64k(void)
{
	static char value[LONG_BYTES];

	memset(value, 'v', sizeof(value));
	publish_between(text("long"), bytes(value, sizeof(value)));
}

static void key_64k(void)
{
	static char key[LONG_BYTES];

	memset(key, 'k', sizeof(key));
	publish_between(bytes(key, sizeof(key)), text("value"));
}

/* The bytes of the value end where the page ends; its length does not. */
static void value_page_end(void)
{
	memset(places.page_end - 4, 'e', 4);
	publish_between(text("key"), bytes(places.page_end - 4, 64));
}

static void storage_null(void)
{
	publish_raw(NULL, 3);
}
static void storage_unmapped(void)
{
	publish_raw((void *)places.unmapped, 3);
}
static void storage_kernel(void)
{
	publish_raw(places.kernel, 3);
}
static void storage_non_canonical(void)
{
	publish_raw(places.non_canonical, 3);
}
static void storage_garbage_count_0(void)
{
	publish_raw((void *)1, 0);
}
static void set_unmapped(void)
{
	publish_pointer(places.unmapped);
}
static void set_kernel(void)
{
	publish_pointer(places.kernel);
}
static void set_non_canonical(void)
{
	publish_pointer(places.non_canonical);
}
static void set_page_end(void)
{
	publish_pointer(places.page_end - 8);
}
static void set_small_number(void)
{
	publish_pointer((void *)1);
}
static void key_huge(void)
{
	publish_between(bytes("key", HUGE_BYTES), text("value"));
}
static void value_huge(void)
{
	publish_between(text("key"), bytes("value", HUGE_BYTES));
}
static void key_unmapped(void)
{
	publish_between(bytes(places.unmapped, 8), text("value"));
}
static void value_unmapped(void)
{
	publish_between(text("key"), bytes(places.unmapped, 8));
}
static void key_kernel(void)
{
	publish_between(bytes(places.kernel, 8), text("value"));
}
static void value_kernel(void)
{
	publish_between(text("key"), bytes(places.kernel, 8));
}
static void value_null(void)
{
	publish_between(text("key"), bytes(NULL, 0));
}
static void value_null_length(void)
{
	publish_between(text("key"), bytes(NULL, 8));
}
static void hole(void)
{
	publish_between(bytes(NULL, 8), bytes(places.unmapped, 8));
}
static void key_empty(void)
{
	publish_between(text(""), text("value"));
}
static void value_empty(void)
{
	publish_between(text("key"), text(""));
}
static void not_utf8(void)
{
	publish_between(bytes("k\xff\xfe", 3), bytes("v\xc3\x28\x80", 4));
}
static void nul_bytes(void)
{
	publish_between(bytes("k\0k", 3), bytes("v\0v", 3));
}
static void control_bytes(void)
{
	publish_between(text("key"), text("\x1b[31mred\r\n\x07"));
}
static void duplicate_key(void)
{
	publish_between(text("good"), text("second"));
}

const struct hostile_kind hostile_label_kinds[] = {
	{ "count-huge", count_huge },
	{ "many-slots", many_slots },
	{ "many-labels", many_labels },
	{ "storage-null", storage_null },
	{ "storage-unmapped", storage_unmapped },
	{ "storage-kernel", storage_kernel },
	{ "storage-non-canonical", storage_non_canonical },
	{ "storage-misaligned", storage_misaligned },
	{ "storage-page-end", storage_page_end },
	{ "storage-garbage-count-0", storage_garbage_count_0 },
	{ "set-unmapped", set_unmapped },
	{ "set-kernel", set_kernel },
	{ "set-non-canonical", set_non_canonical },
	{ "set-page-end", set_page_end },
	{ "set-small-number", set_small_number },
	{ "key-huge", key_huge },
	{ "key-64k", key_64k },
	{ "key-unmapped", key_unmapped },
	{ "key-kernel", key_kernel },
	{ "key-empty", key_empty },
	{ "value-huge", value_huge },
	{ "value-64k", value_64k },
	{ "value-unmapped", value_unmapped },
	{ "value-kernel", value_kernel },
	{ "value-page-end", value_page_end },
	{ "value-null", value_null },
	{ "value-null-length", value_null_length },
	{ "value-empty", value_empty },
	{ "hole", hole },
	{ "not-utf8", not_utf8 },
	{ "nul-bytes", nul_bytes },
	{ "control-bytes", control_bytes },
	{ "duplicate-key", duplicate_key },
	{ NULL, NULL },
};
