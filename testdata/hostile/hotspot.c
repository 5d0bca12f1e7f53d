// SPDX-License-Identifier: Apache-2.0
/*
 * A program that says that it is HotSpot 17, and has in memory what its first argument says. Its
 * structs are its own; the tables that it exports say where their fields are. One thread runs in a
 * code heap that is made up, on a stack that is, too; another changes what a mode goes on to change.
 *
 *   hotspot MODE FILE    FILE is what its methods say that they are from
 *
 * With LIBRARY it is a library, with MAIN a program that has that do it.
 */
#ifdef MAIN

int run_hotspot(int argc, char **argv);

int main(int argc, char **argv)
{
	return run_hotspot(argc, argv);
}

#else

#define _GNU_SOURCE
#include <pthread.h>
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
	uint32_t limit;
};

struct field {
	const char *type, *name;
	uint64_t is_static, offset;
	void *address;
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
	FIELD("StubQueue", "_stub_buffer", stubs, buffer),
	FIELD("StubQueue", "_buffer_limit", stubs, limit),
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
	stubs = (struct stubs){ heap.memory.low + HEAP_BYTES - 4096, 4096 };
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

static void set_mode(const char *mode)
{
	struct blob *b = blob_at(0);
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	/* What the tables say. */
	if (is(mode, "tables-unmapped")) {
		gHotSpotVMStructs = (struct field *)UNMAPPED;
	} else if (is(mode, "tables-kernel")) {
		gHotSpotVMStructs = (struct field *)KERNEL;
	} else if (is(mode, "tables-endless")) {
		gHotSpotVMStructs = map(sizeof(struct field) << 16, PROT_READ | PROT_WRITE);
		for (unsigned i = 0; i < 1 << 16; i++)
			gHotSpotVMStructs[i] = fields[i % FIELDS];
	} else if (is(mode, "tables-cycle")) {
		gHotSpotVMStructEntryArrayStride = 0;
		gHotSpotVMStructEntryFieldNameOffset = gHotSpotVMStructEntryIsStaticOffset =
			gHotSpotVMStructEntryOffsetOffset = gHotSpotVMStructEntryAddressOffset =
				gHotSpotVMStructEntryTypeNameOffset = -8ULL;
		gHotSpotVMStructs = (struct field *)((char *)fields + 8);
	} else if (is(mode, "tables-stride")) {
		gHotSpotVMStructEntryArrayStride = 1ULL << 63;
	} else if (is(mode, "tables-fields")) {
		gHotSpotVMStructEntryAddressOffset = 1 << 20;
	} else if (is(mode, "tables-spread")) {
		char *spread = map(4096 * page, PROT_READ | PROT_WRITE);

		gHotSpotVMTypes = map(sizeof(struct number) * 4096, PROT_READ | PROT_WRITE);
		for (unsigned i = 0; i < 4095; i++) {
			gHotSpotVMTypes[i].name = spread + i * page;
			memcpy(spread + i * page, "T", 2);
		}
	} else if (is(mode, "names-endless")) {
		char *name = map(1 << 20, PROT_READ | PROT_WRITE);

		memset(name, 'A', 1 << 20);
		fields[3].name = name;
	} else if (is(mode, "names-unmapped")) {
		fields[3].name = (const char *)UNMAPPED;
	} else if (is(mode, "offset-large")) {
		fields[0].offset = 1ULL << 40;
	} else if (is(mode, "offset-outside")) {
		fields[0].offset = sizeof(struct blob);
	} else if (is(mode, "struct-large")) {
		types[0].value = 4096;
	} else if (is(mode, "version-unmapped")) {
		fields[FIELDS - 4].address = (void *)UNMAPPED;
	} else if (is(mode, "version-99")) {
		version = 99;
	}

	/* What the heaps are. */
	if (is(mode, "heaps-many")) {
		array.length = UINT32_MAX;
	} else if (is(mode, "heaps-unmapped")) {
		heaps[0] = (struct heap *)UNMAPPED;
	} else if (is(mode, "heaps-cycle")) {
		heaps[1] = heaps[2] = heaps[3] = &heap;
		array.length = 4;
	} else if (is(mode, "heaps-all")) {
		heap.memory.low = (char *)page;
		heap.memory.high = (char *)(1ULL << 47);
	} else if (is(mode, "heaps-shift")) {
		heap.shift = 63;
	} else if (is(mode, "heaps-reversed")) {
		heap.memory.high = heap.memory.low - page;
	} else if (is(mode, "heaps-files")) {
		/* This program and, in another heap, the C library: all their code is said to be Java's. */
		static struct heap library;

		segments = map(1 << 25, PROT_READ | PROT_WRITE);
		for (unsigned i = 0; i < 1 << 25; i++)
			segments[i] = i & 1;
		heap.memory.low = (char *)((uintptr_t)&set_mode & ~0xfffffULL);
		heap.memory.high = heap.memory.low + (4ULL << 30);
		heap.segments.low = segments;
		library = heap;
		library.memory.low = (char *)((uintptr_t)stdout & ~0xffffffULL);
		library.memory.high = library.memory.low + (1ULL << 30);
		heaps[1] = &library;
		array.length = 2;
		stubs = (struct stubs){ heap.memory.low, 64 };
	}

	/* What the code and the stack are. */
	if (is(mode, "segments-unmapped")) {
		heap.segments.low = (char *)UNMAPPED;
	} else if (is(mode, "segments-long")) {
		memset(segments, 1, HEAP_BYTES >> SHIFT);
		start = heap.memory.low + (100 << SHIFT);
		memcpy(start, b->code, 4);
	} else if (is(mode, "segments-below")) {
		memset(segments, 200, HEAP_BYTES >> SHIFT);
	} else if (is(mode, "blob-name")) {
		b->name = (const char *)UNMAPPED;
	} else if (is(mode, "blob-small")) {
		b->size = 64;
	} else if (is(mode, "blob-stub")) {
		b->name = "hostile_a\033[2J\n of a stub";
	} else if (is(mode, "blob-stub-long")) {
		b->name = "a stub whose name is longer than any that a JVM has and that is read of one";
	} else if (is(mode, "frame-large")) {
		b->frame_size = 0x7fffffff;
	} else if (is(mode, "frame-cycle")) {
		for (char *at = stack; at < stack + STACK_BYTES; at += FRAME)
			put(at, (uint64_t)stack);
	} else if (is(mode, "frame-kernel")) {
		fp = (char *)KERNEL;
		b->frame_size = 0;
	} else if (is(mode, "interpreted") || is(mode, "interpreted-cycle")) {
		start = stubs.buffer + 64;
		memcpy(start, b->code, 4);
		memset(stack, 0, STACK_BYTES);
		fp = stack + 8192;
		sp = fp - 80;
		for (char *at = fp; at < stack + STACK_BYTES - 256; at += 128) {
			put(at - 24, (uint64_t)&methods[0]);
			put(at - 8, (uint64_t)at + 16);
			put(at, (uint64_t)(is(mode, "interpreted") ? at + 128 : at));
			put(at + 8, (uint64_t)start + 8);
		}
	}

	/* What the methods are. */
	if (is(mode, "method-unmapped")) {
		b->method = (struct method *)UNMAPPED;
	} else if (is(mode, "method-constant")) {
		methods[0].constant = (struct const_method *)KERNEL;
	} else if (is(mode, "name-long")) {
		names[0].length = UINT16_MAX;
	} else if (is(mode, "name-control")) {
		memcpy(names[0].body, "\033[2J\n\0\r\177\xff", 9);
	} else if (is(mode, "name-index")) {
		constants[0].name = UINT16_MAX;
	} else if (is(mode, "pool-endless")) {
		pool.head.length = UINT32_MAX;
		constants[0].name = UINT16_MAX;
	} else if (is(mode, "lines-endless")) {
		constants[0].words = UINT32_MAX;
		memset(constants[0].lines, 0x08, sizeof(constants[0].lines));
	} else if (is(mode, "scope-cycle") || is(mode, "scopes-elsewhere") || is(mode, "pc-disorder")) {
		fill_tables(mode);
		set_tables(b, TABLE_BYTES);
	} else if (is(mode, "scopes-outside")) {
		b->scopes_pcs = UINT32_MAX;
	} else if (is(mode, "large")) {
		memset(segments, 0, HEAP_BYTES >> SHIFT);
		for (unsigned i = 0; i < BLOBS; i++) {
			memset(segments + 8 * i, 0, 8);
			for (unsigned k = 1; k < 8; k++)
				segments[8 * i + k] = k;
			set_tables(new_blob(8 * i, HEAP_BYTES - BLOCK - (8 << SHIFT) * i), TABLE_BYTES);
		}
		fill_tables(mode);
		fill_stack(0, BLOBS, 8);
		start = blob_at(8 * (BLOBS - 1))->code;
	}
}

/* What a mode goes on to change while it is read and sampled. */
static void change(const char *mode)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);

	for (unsigned round = 0;; round++) {
		if (is(mode, "tables-change")) {
			struct field *of = &fields[round % FIELDS];

			gHotSpotVMStructs = round & 1 ? fields : (struct field *)UNMAPPED;
			of->offset ^= 1ULL << round % 64;
			version = round & 2 ? 17 : 21;
			of->offset ^= 1ULL << round % 64;
		} else if (is(mode, "heaps-change")) {
			heap.memory.high = heap.memory.low + (round & 1 ? HEAP_BYTES : 0);
			heaps[0] = round & 2 ? &heap : (struct heap *)UNMAPPED;
			array.length = round % 6;
		} else if (is(mode, "code-change")) {
			blob_at(0)->compile_id = round;
			blob_at(0)->method = &methods[round % METHODS];
		} else if (is(mode, "name-change")) {
			constants[0].name = round & 1;
			pool.entries[1] = &names[round >> 1 & 1];
		} else if (is(mode, "method-freed")) {
			struct const_method *c = map(page, PROT_READ | PROT_WRITE);

			*c = constants[0];
			methods[0].constant = c;
			usleep(100);
			methods[0].constant = &constants[0];
			munmap(c, page);
		} else if (is(mode, "too-many")) {
			blob_at(0)->compile_id = round;
			usleep(1000);
		} else {
			pause();
		}
		if (round % 64 == 0)
			usleep(100);
	}
}

/* In the code heap, on the stack. */
static void *run(void *mode)
{
	if (is(mode, "heaps-files")) {
		for (volatile uint64_t i = 0;; i++)
			;
	}
#if defined(__x86_64__)
	asm volatile("mov %1, %%rsp\n mov %2, %%rbp\n xor %%r13, %%r13\n jmp *%0" : : "a"(start), "S"(sp), "D"(fp));
#else
	asm volatile("mov sp, %1\n mov x29, %2\n mov x30, xzr\n br %0" : : "r"(start), "r"(sp), "r"(fp) : "x30");
#endif
	return NULL;
}

#ifdef LIBRARY
int run_hotspot(int argc, char **argv)
#else
int main(int argc, char **argv)
#endif
{
	pthread_t thread;

	if (argc != 3)
		return 2;
	set_up(argv[2]);
	set_mode(argv[1]);
	if (pthread_create(&thread, NULL, run, argv[1]))
		return 1;
	printf("ready %d\n", getpid());
	fflush(stdout);
	change(argv[1]);
	return 0;
}

#endif
