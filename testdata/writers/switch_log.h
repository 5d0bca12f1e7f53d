/* SPDX-License-Identifier: Apache-2.0 */
/* The log of mode switch: a header and records in a file that readers may map while it grows. */
#ifndef WRITERS_SWITCH_LOG_H
#define WRITERS_SWITCH_LOG_H

#include <stdbool.h>
#include <stdint.h>

#define SWITCH_LOG_MAGIC "CLSWLOG1"
#define SWITCH_LOG_MAX_TENANTS 8
#define SWITCH_LOG_NAME_BYTES 8
#define SWITCH_LOG_NO_TENANT 0xffffffffu /* the thread has no labels from here on */

struct switch_log_header {
	char magic[8];
	uint32_t record_bytes;
	uint32_t tenants;
	uint64_t capacity; /* records that the file has room for */
	uint64_t count;	   /* records that are complete */
	uint32_t pid;
	uint32_t tid;
	char names[SWITCH_LOG_MAX_TENANTS][SWITCH_LOG_NAME_BYTES]; /* NUL-padded */
	uint64_t reserved[3];
};
_Static_assert(sizeof(struct switch_log_header) == 128, "switch_log_header");

struct switch_log_record {
	uint64_t mono_ns;	/* CLOCK_MONOTONIC */
	uint64_t thread_cpu_ns; /* CLOCK_THREAD_CPUTIME_ID */
	uint32_t tenant;
	uint32_t pad;
};
_Static_assert(sizeof(struct switch_log_record) == 24, "switch_log_record");

void switch_log_create(const char *path, const char *const *names, int tenants, uint64_t capacity);

/* Logs that tenant was published just now; returns the thread's CPU time. */
uint64_t switch_log_add(uint32_t tenant);

/* Only the record that ends the log still fits. */
bool switch_log_full(void);

#endif
