// SPDX-License-Identifier: Apache-2.0
#include "switch_log.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"

static struct switch_log_header *header;
static struct switch_log_record *records;

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

void switch_log_create(const char *path, const char *const *names, int tenants, uint64_t capacity)
{
	size_t size = sizeof(*header) + capacity * sizeof(*records);
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd < 0)
		fail(path);
	if (ftruncate(fd, (off_t)size) != 0)
		fail("size the switch log");
	/* Populated: a page fault between publication and clock would be charged to the next tenant. */
	header = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
	if (header == MAP_FAILED)
		fail("map the switch log");
	close(fd);
	records = (struct switch_log_record *)(header + 1);
	header->record_bytes = sizeof(*records);
	header->tenants = (uint32_t)tenants;
	header->capacity = capacity;
	header->pid = (uint32_t)getpid();
	header->tid = (uint32_t)syscall(SYS_gettid);
	for (int i = 0; i < tenants; i++)
		strncpy(header->names[i], names[i], SWITCH_LOG_NAME_BYTES - 1);
	memcpy(header->magic, SWITCH_LOG_MAGIC, sizeof(header->magic));
}

uint64_t switch_log_add(uint32_t tenant)
{
	uint64_t cpu_ns = thread_cpu_ns(), now_ns = mono_ns(), n = header->count;

	records[n] = (struct switch_log_record){
		.mono_ns = now_ns,
		.thread_cpu_ns = cpu_ns,
		.tenant = tenant,
	};
	/* Other processes read this: a record is complete before it is counted. */
	__atomic_store_n(&header->count, n + 1, __ATOMIC_RELEASE);
	return cpu_ns;
}

bool switch_log_full(void)
{
	return header->count + 1 >= header->capacity;
}
