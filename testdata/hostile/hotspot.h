// SPDX-License-Identifier: Apache-2.0
/* What hotspot.c makes up: structs of a HotSpot, the tables that say where their fields are, a code heap. */
#ifndef HOSTILE_HOTSPOT_H
#define HOSTILE_HOTSPOT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HEAP_BYTES (8 << 20)
#define TABLES (4 << 20) /* in the heap: what its code says of itself */
#define TABLE_BYTES (1 << 20)
#define STACK_BYTES (1 << 20)
#define SHIFT 7	   /* log2 of the bytes of a segment */
#define BLOCK 16   /* of a heap block before its blob */
#define BLOBS 1024 /* of the modes that have many */
#define CODE 512   /* of a blob before its code */
#define FRAME 16
#define METHODS 512
#define UNMAPPED 0x10000
#define KERNEL 0xffffffff81000000
#define SEGMENT_MAX 254

struct symbol {
	uint16_t references, length;
	char body[124];
};

struct klass {
	struct symbol *name;
};

struct pool {
	struct klass *holder;
	uint32_t length, file;
};

struct pool_of_3 {
	struct pool head;
	struct symbol *entries[3];
};

struct const_method {
	struct pool *pool;
	uint32_t words, flags;
	uint16_t code_size, name, signature, idnum;
	unsigned char lines[104]; /* behind 0 bytecodes */
};

struct method {
	struct const_method *constant;
};

struct blob {
	uint32_t size, frame_size, frame_complete, compile_id, orig_pc, scopes_pcs, dependencies, metadata;
	char *code;
	const char *name;
	struct method *method;
	char *entry, *deopt, *deopt_mh, *scopes;
};

struct space {
	char *low, *high;
};

struct heap {
	struct space memory, segments;
	uint32_t shift;
};

struct array {
	uint32_t length;
	struct heap **heaps;
};

struct stubs {
	char *buffer;
	uint32_t limit, end;
};

struct field {
	const char *type, *name;
	uint64_t is_static, offset;
	void *address;
};

struct block {
	uint64_t length;
	uint8_t used;
};

struct number {
	const char *name;
	uint64_t value;
};

static int version = 17;
static struct heap heap, *heaps[4] = { &heap };
static struct array array = { 1, heaps }, *array_address = &array;
static struct stubs stubs, *stubs_address = &stubs;
static uint64_t call_stub_return = 1;

#define FIELD(type, name, of, field) { type, name, 0, offsetof(struct of, field), NULL }
#define STATIC(type, name, variable) { type, name, 1, 0, &(variable) }

static struct field fields[] = {
	FIELD("CodeBlob", "_name", blob, name),
	FIELD("CodeBlob", "_size", blob, size),
	FIELD("CodeBlob", "_frame_size", blob, frame_size),
	FIELD("CodeBlob", "_frame_complete_offset", blob, frame_complete),
	FIELD("CodeBlob", "_code_begin", blob, code),
	FIELD("CompiledMethod", "_method", blob, method),
	FIELD("CompiledMethod", "_scopes_data_begin", blob, scopes),
	FIELD("CompiledMethod", "_deopt_handler_begin", blob, deopt),
	FIELD("CompiledMethod", "_deopt_mh_handler_begin", blob, deopt_mh),
	FIELD("nmethod", "_compile_id", blob, compile_id),
	FIELD("nmethod", "_scopes_pcs_offset", blob, scopes_pcs),
	FIELD("nmethod", "_metadata_offset", blob, metadata),
	FIELD("nmethod", "_dependencies_offset", blob, dependencies),
	FIELD("nmethod", "_orig_pc_offset", blob, orig_pc),
	FIELD("nmethod", "_verified_entry_point", blob, entry),
	FIELD("Method", "_constMethod", method, constant),
	FIELD("ConstMethod", "_constants", const_method, pool),
	FIELD("ConstMethod", "_constMethod_size", const_method, words),
	FIELD("ConstMethod", "_flags", const_method, flags),
	FIELD("ConstMethod", "_code_size", const_method, code_size),
	FIELD("ConstMethod", "_name_index", const_method, name),
	FIELD("ConstMethod", "_signature_index", const_method, signature),
	FIELD("ConstMethod", "_method_idnum", const_method, idnum),
	FIELD("ConstantPool", "_pool_holder", pool, holder),
	FIELD("ConstantPool", "_length", pool, length),
	FIELD("ConstantPool", "_source_file_name_index", pool, file),
	FIELD("Klass", "_name", klass, name),
	FIELD("Symbol", "_length", symbol, length),
	FIELD("Symbol", "_body", symbol, body),
	FIELD("GrowableArrayBase", "_len", array, length),
	FIELD("GrowableArray<int>", "_data", array, heaps),
	FIELD("CodeHeap", "_memory", heap, memory),
	FIELD("CodeHeap", "_segmap", heap, segments),
	FIELD("CodeHeap", "_log2_segment_size", heap, shift),
	FIELD("VirtualSpace", "_low_boundary", space, low),
	FIELD("VirtualSpace", "_high_boundary", space, high),
	FIELD("HeapBlock::Header", "_used", block, used),
	FIELD("StubQueue", "_stub_buffer", stubs, buffer),
	FIELD("StubQueue", "_buffer_limit", stubs, limit),
	FIELD("StubQueue", "_queue_end", stubs, end),
	STATIC("Abstract_VM_Version", "_vm_major_version", version),
	STATIC("CodeCache", "_heaps", array_address),
	STATIC("AbstractInterpreter", "_code", stubs_address),
	STATIC("StubRoutines", "_call_stub_return_address", call_stub_return),
	{ 0 },
};
#define FIELDS (sizeof(fields) / sizeof(fields[0]) - 1)

static struct number types[] = {
	{ "nmethod", sizeof(struct blob) },
	{ "ConstMethod", offsetof(struct const_method, lines) },
	{ "ConstantPool", sizeof(struct pool) },
	{ "HeapBlock", BLOCK },
	{ 0 },
};
static struct number none[1];

struct field *gHotSpotVMStructs = fields;
uint64_t gHotSpotVMStructEntryArrayStride = sizeof(struct field), gHotSpotVMStructEntryTypeNameOffset = 0,
	 gHotSpotVMStructEntryFieldNameOffset = 8, gHotSpotVMStructEntryIsStaticOffset = 16,
	 gHotSpotVMStructEntryOffsetOffset = 24, gHotSpotVMStructEntryAddressOffset = 32;
struct number *gHotSpotVMTypes = types;
uint64_t gHotSpotVMTypeEntryArrayStride = sizeof(struct number), gHotSpotVMTypeEntryTypeNameOffset = 0,
	 gHotSpotVMTypeEntrySizeOffset = 8;
struct number *gHotSpotVMIntConstants = none;
uint64_t gHotSpotVMIntConstantEntryArrayStride = sizeof(struct number), gHotSpotVMIntConstantEntryNameOffset = 0,
	 gHotSpotVMIntConstantEntryValueOffset = 8;

static struct symbol class_name, file_name, names[2];
static struct klass klass = { &class_name };
static struct pool_of_3 pool;
static struct const_method constants[METHODS];
static struct method methods[METHODS];
static char *segments, *stack, *start, *sp, *fp;

static int is(const char *mode, const char *name)
{
	return strcmp(mode, name) == 0;
}

static void *map(size_t bytes, int protection)
{
	void *p = mmap(NULL, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		exit(1);
	return p;
}

static void put(void *at, uint64_t v)
{
	memcpy(at, &v, sizeof(v));
}

static void set_symbol(struct symbol *s, const char *text)
{
	s->references = 1;
	s->length = strnlen(text, sizeof(s->body));
	memcpy(s->body, text, s->length);
}

static struct blob *blob_at(unsigned block)
{
	return (struct blob *)(heap.memory.low + ((size_t)block << SHIFT) + BLOCK);
}

/* The frames lead through so many blobs, again and again: the one at the highest address is the innermost. */
static void fill_stack(unsigned first, unsigned blobs, unsigned step)
{
	unsigned n = 0;

	for (char *at = stack; at < stack + STACK_BYTES; at += FRAME, n++) {
		const struct blob *of = blob_at(first + (blobs - 1 - n % blobs) * step);

		put(at, (uint64_t)at + FRAME);
		put(at + 8, (uint64_t)of->code + 8);
	}
}

static struct blob *new_blob(unsigned block, uint32_t size)
{
	struct blob *b = blob_at(block);

	((struct block *)((char *)b - BLOCK))->used = 1;
	*b = (struct blob){
		.size = size,
		.frame_size = FRAME / 8,
		.compile_id = block + 1,
		.code = (char *)b + CODE,
		.name = "nmethod",
		.method = &methods[0],
		.scopes = (char *)b + 256,
		.scopes_pcs = 256,
		.dependencies = 256,
		.metadata = 256,
	};
#if defined(__x86_64__)
	memcpy(b->code, "\xeb\xfe", 2);
#else
	memcpy(b->code, "\x00\x00\x00\x14", 4);
#endif
	return b;
}

/* Tables that all blobs share, though each says that they are in its own code. */
static char *pcs, *scopes, *metadata;

static void set_tables(struct blob *b, uint32_t pc_bytes)
{
	b->metadata = metadata - (char *)b;
	b->scopes = scopes;
	b->scopes_pcs = pcs - (char *)b;
	b->dependencies = b->scopes_pcs + pc_bytes;
}

/* A number as scopes have it: 5 bytes. */
static unsigned char *put_number(unsigned char *at, uint32_t v)
{
	if (v < 192) {
		*at++ = v;
		return at;
	}
	for (unsigned i = 0; i < 4; i++) {
		unsigned char c = 192 + (v - 192) % 64;

		*at++ = c;
		v = (v - c) >> 6;
		if (v < 192) {
			*at++ = v;
			return at;
		}
	}
	*at++ = v;
	return at;
}

/* As many scopes and places as there can be, of many methods with long names and many lines. */
static void fill_tables(const char *mode)
{
	unsigned char *at = (unsigned char *)scopes + 1;
	uint32_t offset = 1, sender = 0;

	for (unsigned i = 0; i < METHODS; i++)
		put(metadata + 8 * i, (uint64_t)&methods[i]);
	for (uint32_t i = 0; i < TABLE_BYTES / 16; i++) {
		uint32_t pc = i + 1, decode = offset;

		if (is(mode, "scope-cycle"))
			sender = 1; /* itself */
		else if (is(mode, "scopes-elsewhere"))
			sender = 0xfffffff0;
		memcpy(pcs + 16 * i, &pc, sizeof(pc));
		memcpy(pcs + 16 * i + 4, &decode, sizeof(decode));
		if (is(mode, "pc-disorder"))
			memcpy(pcs + 16 * i, &(uint32_t){ TABLE_BYTES - i }, sizeof(pc));
		at = put_number(at, sender);
		at = put_number(at, 1 + i % METHODS);
		at = put_number(at, 1);
		offset = at - (unsigned char *)scopes;
	}
}

static void set_up(const char *file)
{
	struct blob *b;

	heap.memory.low = map(HEAP_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC);
	heap.memory.high = heap.memory.low + HEAP_BYTES;
	segments = map(HEAP_BYTES >> SHIFT, PROT_READ | PROT_WRITE);
	heap.segments.low = segments;
	heap.shift = SHIFT;
	stack = map(STACK_BYTES, PROT_READ | PROT_WRITE);
	pcs = heap.memory.low + TABLES + 2 * TABLE_BYTES;
	scopes = heap.memory.low + TABLES + TABLE_BYTES;
	metadata = scopes - 8 * METHODS;
	stubs = (struct stubs){ heap.memory.low + HEAP_BYTES - 4096, 4096, 4096 };
	memset(segments, SEGMENT_MAX, HEAP_BYTES >> SHIFT);
	for (unsigned i = 0; i < SEGMENT_MAX; i++)
		segments[i] = i;

	set_symbol(&class_name, "hostile");
	set_symbol(&file_name, file);
	set_symbol(&names[0], "hostile_a");
	set_symbol(&names[1], "hostile_b");
	pool = (struct pool_of_3){ { &klass, 3, 2 }, { NULL, &names[0], &file_name } };
	for (unsigned i = 0; i < METHODS; i++) {
		constants[i] = (struct const_method){
			.pool = &pool.head, .words = sizeof(struct const_method) / 8, .flags = 1, .name = 1, .idnum = i
		};
		constants[i].lines[0] = 7; /* bytecode 0 is on line 7 */
		methods[i].constant = &constants[i];
	}
	b = new_blob(0, HEAP_BYTES - BLOCK);
	fill_stack(0, 1, 1);
	start = b->code;
	sp = fp = stack;
}

#endif
