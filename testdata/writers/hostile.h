/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WRITERS_HOSTILE_H
#define WRITERS_HOSTILE_H

#include <stddef.h>
#include <stdint.h>

/* Addresses with a property each. */
struct places {
	unsigned char *page_end; /* just behind a mapped page; the next one is not accessible */
	unsigned char *unmapped; /* a page that is not mapped any more */
	void *kernel;		 /* an address of the kernel half */
	void *non_canonical;	 /* an address that no page can have */
};

extern struct places places;

struct hostile_kind {
	const char *name;
	void (*publish)(void);
};

extern const struct hostile_kind hostile_label_kinds[];	  /* v0 and v1; ends with a NULL name */
extern const struct hostile_kind hostile_context_kinds[]; /* thread context; likewise */

#endif
