/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layouts that a profiler reads: custom labels ABI v0 and v1, and the OTel
 * thread context record (OTEP 4947). Everything here is foreign-facing: field
 * order and sizes are the contract.
 */
#ifndef WRITERS_ABI_H
#define WRITERS_ABI_H

#include <stddef.h>
#include <stdint.h>

struct abi_string {
	size_t len;
	const unsigned char *buf; /* NULL: absent */
};

struct abi_label {
	struct abi_string key;
	struct abi_string value;
};

/* v0: the thread-local variable itself. */
struct abi_v0_data {
	struct abi_label *storage;
	size_t count;
};

/* v1: what the thread-local pointer points at. */
struct abi_v1_set {
	struct abi_label *storage;
	size_t count;
	size_t capacity;
};

#define ABI_CONTEXT_MAX_ATTRS 65535

/* Thread context: what the thread-local pointer points at. */
struct abi_context {
	uint8_t trace_id[16];
	uint8_t span_id[8];
	uint8_t valid; /* exactly 1: to be read */
	uint8_t trace_flags;
	uint16_t attrs_size;
	uint8_t attrs[]; /* {key index u8, length u8, bytes} ... */
} __attribute__((packed, aligned(2)));

_Static_assert(sizeof(struct abi_label) == 32, "abi_label");
_Static_assert(sizeof(struct abi_v0_data) == 16, "abi_v0_data");
_Static_assert(sizeof(struct abi_v1_set) == 24, "abi_v1_set");
_Static_assert(sizeof(struct abi_context) == 28, "abi_context");

#endif
