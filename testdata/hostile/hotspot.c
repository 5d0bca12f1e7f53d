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
#include "hotspot.h"

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
		stubs = (struct stubs){ heap.memory.low, 64, 64 };
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
