// SPDX-License-Identifier: Apache-2.0
/* Kinds for the thread context. Unless it says otherwise, the ids are 0x71 and 0x72 throughout. */
#include <string.h>

#include "abi.h"
#include "hostile.h"
#include "labels.h"
#include "tls.h"

static unsigned char memory[sizeof(struct abi_context) + ABI_CONTEXT_MAX_ATTRS + 8] __attribute__((aligned(8)));

static void publish_pointer(void *record)
{
	IN_ORDER();
	STORE(*(void **)publisher->variable(), record);
	IN_ORDER();
}

static struct abi_context *record_at(void *at)
{
	struct abi_context *record = at;

	publish_pointer(NULL);
	memset(record, 0, sizeof(*record));
	memset(record->trace_id, 0x71, sizeof(record->trace_id));
	memset(record->span_id, 0x72, sizeof(record->span_id));
	record->valid = 1;
	return record;
}

static void publish_valid(uint8_t valid)
{
	struct abi_context *record = record_at(memory);

	record->valid = valid;
	publish_pointer(record);
}

static void publish_attrs(const void *attrs, size_t size, size_t claimed)
{
	struct abi_context *record = record_at(memory);

	memcpy(record->attrs, attrs, size);
	record->attrs_size = (uint16_t)claimed;
	publish_pointer(record);
}

/* A record with 4 bytes of attributes before the end of the page, and a claim of more. */
static void publish_at_page_end(uint16_t claimed)
{
	struct abi_context *record = record_at(places.page_end - sizeof(*record) - 4);

	memcpy(record->attrs, "\x00\x02ok", 4);
	record->attrs_size = claimed;
	publish_pointer(record);
}

static void half_ids(int trace, int span)
{
	struct abi_context *record = record_at(memory);

	if (!trace)
		memset(record->trace_id, 0, sizeof(record->trace_id));
	if (!span)
		memset(record->span_id, 0, sizeof(record->span_id));
	memcpy(record->attrs, "\x00\x02ok", 4);
	record->attrs_size = 4;
	publish_pointer(record);
}

/* A real record as long as a record can be: 257 entries, and one byte that is none. */
static void size_65535(void)
{
	struct abi_context *record = record_at(memory);
	uint8_t *at = record->attrs;

	for (int i = 0; i < ABI_CONTEXT_MAX_ATTRS / 255; i++, at += 255) {
		at[0] = (uint8_t)i;
		at[1] = 253;
		memset(at + 2, 'a' + i % 26, 253);
	}
	record->attrs_size = ABI_CONTEXT_MAX_ATTRS;
	publish_pointer(record);
}

static void misaligned(void)
{
	publish_pointer(record_at(memory + 1));
}

static void valid_0(void)
{
	publish_valid(0);
}
static void valid_2(void)
{
	publish_valid(2);
}
static void valid_212(void)
{
	publish_valid(212);
}
static void page_end(void)
{
	publish_at_page_end(65535);
}
static void page_end_exact(void)
{
	publish_at_page_end(4);
}
static void record_page_end(void)
{
	publish_pointer(places.page_end - 8);
}
static void record_unmapped(void)
{
	publish_pointer(places.unmapped);
}
static void record_kernel(void)
{
	publish_pointer(places.kernel);
}
static void record_non_canonical(void)
{
	publish_pointer(places.non_canonical);
}
static void record_small_number(void)
{
	publish_pointer((void *)1);
}
static void trace_only(void)
{
	half_ids(1, 0);
}
static void span_only(void)
{
	half_ids(0, 1);
}
static void no_ids(void)
{
	half_ids(0, 0);
}
static void entry_cut(void)
{
	publish_attrs("\x00\x02ok\x01\x09xx", 8, 8);
}
static void entry_half(void)
{
	publish_attrs("\x00\x02ok\x01", 5, 5);
}
static void duplicate_index(void)
{
	publish_attrs("\x00\x03old\x00\x03new", 10, 10);
}
static void empty_value(void)
{
	publish_attrs("\x00\x00", 2, 2);
}
static void unknown_index(void)
{
	publish_attrs("\xff\x02ok", 4, 4);
}
static void not_utf8(void)
{
	publish_attrs("\x00\x02\xc3\x28", 4, 4);
}

const struct hostile_kind hostile_context_kinds[] = {
	{ "valid-0", valid_0 },
	{ "valid-2", valid_2 },
	{ "valid-212", valid_212 },
	{ "size-65535", size_65535 },
	{ "size-65535-page-end", page_end },
	{ "size-exact-page-end", page_end_exact },
	{ "record-page-end", record_page_end },
	{ "record-unmapped", record_unmapped },
	{ "record-kernel", record_kernel },
	{ "record-non-canonical", record_non_canonical },
	{ "record-small-number", record_small_number },
	{ "record-misaligned", misaligned },
	{ "trace-id-only", trace_only },
	{ "span-id-only", span_only },
	{ "no-ids", no_ids },
	{ "entry-cut", entry_cut },
	{ "entry-half", entry_half },
	{ "duplicate-index", duplicate_index },
	{ "empty-value", empty_value },
	{ "unknown-index", unknown_index },
	{ "not-utf8", not_utf8 },
	{ NULL, NULL },
};
