/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When each label set of a thread was current, by its number: 1, 2, ... A file of a
 * part for each thread, as large as whoever made it (a test, which reads it meanwhile)
 * has made it: a thread's newest sets are in its part, in the place of older ones.
 *
 * Both times are read outside of the stores that publish: a set was current at no time
 * but between them.
 */
#ifndef WRITERS_PUBLICATION_LOG_H
#define WRITERS_PUBLICATION_LOG_H

#include <stdint.h>

#define PUBLICATION_LOG_MAGIC "CLPUBLG1"

/* A part is this and, up to its end, records: set n has the one at n modulo capacity. */
struct publication_log_part {
	char magic[8];
	uint64_t owner; /* TID; in programs in Go the number of a goroutine */
	uint64_t capacity;
	uint64_t newest; /* the number of the set of which from_ns was logged last */
	uint64_t reserved[4];
};
_Static_assert(sizeof(struct publication_log_part) == 64, "publication_log_part");

struct publication_log_record {
	uint64_t from_ns;  /* CLOCK_MONOTONIC before the set was published */
	uint64_t until_ns; /* the same after it was replaced; 0: it has not been */
};
_Static_assert(sizeof(struct publication_log_record) == 16, "publication_log_record");

/* Maps a file for so many threads. */
void publication_log_open(const char *path, int threads);

/* The calling thread logs into a part, from its first set on. Without this it logs nothing. */
void publication_log_begin(int part);

/* Around the stores that replace the current set by the next one. */
void publication_log_before(void);
void publication_log_after(void);

#endif
