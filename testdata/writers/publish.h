/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One interface over the three label ABIs. A publisher lives where its
 * thread-local variable lives: in the executable or in a shared library.
 */
#ifndef WRITERS_PUBLISH_H
#define WRITERS_PUBLISH_H

#include <stddef.h>
#include <stdint.h>

struct label {
	const char *key;
	const char *value;
};

/*
 * What a thread wants to publish. The thread context has no key names in the
 * record: there label i becomes the attribute with key index i. v0 and v1 have
 * no place for the ids and leave them out.
 */
struct label_set {
	size_t count;
	const struct label *labels;
	uint8_t trace_id[16];
	uint8_t span_id[8];
	uint8_t trace_flags;
};

struct published; /* a set in the form of the ABI */

enum abi {
	ABI_NONE,
	ABI_V0,
	ABI_V1,
	ABI_CONTEXT,
};

struct publisher {
	enum abi abi;
	const char *name; /* none, v0, v1, ctx */
	/* Copies the set into fresh memory. Exits when there is none. */
	struct published *(*build)(const struct label_set *set);
	/* Makes the set current on the calling thread; NULL: no labels. */
	void (*publish)(struct published *next);
	/* Changes the current set in its place; NULL where the ABI has no way to do that. */
	void (*update)(struct published *current, const struct label_set *set);
	/* Overwrites a set that is not current with garbage and frees it. */
	void (*discard)(struct published *old);
	/* The address of the calling thread's variable. */
	void *(*variable)(void);
};

/* Defined by publish_*.c. */
const struct publisher *labels_publisher(void);

#endif
