// SPDX-License-Identifier: Apache-2.0
#include "publication_log.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"

static char *parts;
static size_t part_bytes;

static __thread struct publication_log_part *own;
static __thread struct publication_log_record *records;

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

void publication_log_open(const char *path, int threads)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	struct stat file;

	if (fd < 0 || fstat(fd, &file) != 0)
		fail(path);
	part_bytes = (size_t)file.st_size / (size_t)threads & ~(sizeof(*own) - 1);
	if (part_bytes < sizeof(*own) + 2 * sizeof(*records)) {
		fprintf(stderr, "%s: too small for a log\n", path);
		exit(1);
	}
	/* Populated: a page fault would make the time of a publication longer. */
	parts = mmap(NULL, (size_t)file.st_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
	if (parts == MAP_FAILED)
		fail("map the log of publications");
	close(fd);
}

void publication_log_begin(int part)
{
	own = (struct publication_log_part *)(parts + (size_t)part * part_bytes);
	records = (struct publication_log_record *)(own + 1);
	own->owner = (uint64_t)syscall(SYS_gettid);
	own->capacity = (part_bytes - sizeof(*own)) / sizeof(*records);
	memcpy(own->magic, PUBLICATION_LOG_MAGIC, sizeof(own->magic));
}

/* The reader is another process: a record is complete before it is counted. */
void publication_log_before(void)
{
	struct publication_log_record *record;
	uint64_t n;

	if (!own)
		return;
	n = own->newest + 1;
	record = &records[n % own->capacity];
	__atomic_store_n(&record->until_ns, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&record->from_ns, mono_ns(), __ATOMIC_RELAXED);
	__atomic_store_n(&own->newest, n, __ATOMIC_RELEASE);
}

void publication_log_after(void)
{
	if (own)
		__atomic_store_n(&records[(own->newest - 1) % own->capacity].until_ns, mono_ns(), __ATOMIC_RELEASE);
}
