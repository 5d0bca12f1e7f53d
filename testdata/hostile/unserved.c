// SPDX-License-Identifier: Apache-2.0
/*
 * A process whose process context lies in memory that nobody ever serves: whoever reads it
 * waits until the process ends. A page of a FUSE file does the same and needs no privilege;
 * userfaultfd does, and is given up once it is set up.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <grp.h>
#include <linux/userfaultfd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	PAGE_BYTES = 4096,
	NO_USERFAULTFD = 77
};

/* OTEP 4719, "Header". */
struct header {
	char signature[8];
	uint32_t version;
	uint32_t payload_bytes;
	uint64_t published_at_ns;
	const void *payload;
};

static void *unserved(void)
{
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	struct uffdio_api api = { .api = UFFD_API };
	void *page = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct uffdio_register all = {
		.range = { (uintptr_t)page, PAGE_BYTES },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};

	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) || page == MAP_FAILED || ioctl(fd, UFFDIO_REGISTER, &all)) {
		perror("userfaultfd");
		exit(NO_USERFAULTFD);
	}
	return page;
}

static void publish(const void *payload)
{
	int fd = memfd_create("OTEL_CTX", 0);
	struct header *header;

	if (fd < 0 || ftruncate(fd, PAGE_BYTES) ||
	    (header = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)) == MAP_FAILED) {
		perror("publish");
		exit(1);
	}
	header->version = 2;
	header->payload_bytes = 100;
	header->published_at_ns = 77;
	header->payload = payload;
	memcpy(header->signature, "OTEL_CTX", sizeof(header->signature));
}

int main(int argc, char **argv)
{
	unsigned user = argc > 1 ? (unsigned)atoi(argv[1]) : 65534;

	void *page = unserved();

	if (setgroups(0, NULL) || setresgid(user, user, user) || setresuid(user, user, user)) {
		perror("become the user");
		return 1;
	}
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_PDEATHSIG, 9);
	usleep(2000000); /* by now it counts as the user's */
	publish(page);
	puts("ready");
	fflush(stdout);
	for (volatile unsigned long turns = 0;; turns++)
		if (turns % 1000000 == 0)
			usleep(50000);
}
