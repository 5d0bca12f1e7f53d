// SPDX-License-Identifier: Apache-2.0
/*
 * A FUSE file system that never answers others: fuse PROGRAM MOUNTPOINT USER COUNT [SECONDS]. It has
 * COUNT files with the content of PROGRAM, p0 and so on, and runs each of them as USER. Who
 * else opens one, or asks for its size, waits until this program ends. With SECONDS, after which
 * it ends, it answers others as well; only who asks whether a file is ready waits.
 *
 * Mounted as fusermount does for a user where /etc/fuse.conf has user_allow_other; without it,
 * the kernel refuses others, root too.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/fuse.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	MAX_FILES = 64,
	REQUEST_BYTES = 1 << 17,
	QUIET_MS = 1000,
	NO_FUSE = 77,
};

static unsigned user, files, seconds;
static pid_t programs[MAX_FILES];
static char *content;
static size_t content_bytes;
static char request[REQUEST_BYTES];

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void answer(int fd, uint64_t unique, int error, const void *body, size_t bytes)
{
	static char out[REQUEST_BYTES];
	struct fuse_out_header head = { .len = (uint32_t)(sizeof(head) + bytes), .error = error, .unique = unique };

	memcpy(out, &head, sizeof(head));
	if (bytes)
		memcpy(out + sizeof(head), body, bytes);
	if (write(fd, out, head.len) < 0 && errno != ENOENT)
		die("answer");
}

static struct fuse_attr attributes(uint64_t node)
{
	struct fuse_attr a = { .ino = node, .nlink = 1, .uid = user, .gid = user, .blksize = 4096 };

	if (node == FUSE_ROOT_ID) {
		a.mode = S_IFDIR | 0755;
	} else {
		a.mode = S_IFREG | 0755;
		a.size = content_bytes;
		a.blocks = (content_bytes + 511) / 512;
	}
	return a;
}

static void look_up(int fd, const struct fuse_in_header *head)
{
	const char *name = (const char *)(head + 1);
	struct fuse_entry_out entry = { 0 };
	unsigned i;

	if (sscanf(name, "p%u", &i) != 1 || i >= files) {
		answer(fd, head->unique, -ENOENT, NULL, 0);
		return;
	}
	entry.nodeid = FUSE_ROOT_ID + 1 + i;
	entry.entry_valid = 86400;
	entry.attr = attributes(entry.nodeid);
	answer(fd, head->unique, 0, &entry, sizeof(entry));
}

static void read_file(int fd, const struct fuse_in_header *head)
{
	const struct fuse_read_in *in = (const struct fuse_read_in *)(head + 1);
	size_t bytes = 0;

	if (in->offset < content_bytes) {
		bytes = content_bytes - in->offset;
		if (bytes > in->size)
			bytes = in->size;
	}
	answer(fd, head->unique, 0, content + in->offset, bytes);
}

/* The kernel's own requests have no process. */
static int ours(const struct fuse_in_header *head)
{
	for (unsigned i = 0; i < files; i++)
		if ((pid_t)head->pid == programs[i])
			return 1;
	return !head->pid || (pid_t)head->pid == getpid();
}

/* Answers one request, if it is a program's. */
static void serve(int fd)
{
	const struct fuse_in_header *head = (const struct fuse_in_header *)request;

	if (read(fd, request, sizeof(request)) < (ssize_t)sizeof(*head)) {
		if (errno == EINTR || errno == ENOENT)
			return;
		die("request");
	}
	if (head->opcode != FUSE_INIT && !seconds && !ours(head))
		return;
	if (head->opcode == FUSE_POLL)
		return;
	switch (head->opcode) {
	case FUSE_INIT: {
		const struct fuse_init_in *in = (const struct fuse_init_in *)(head + 1);
		struct fuse_init_out out = { .major = FUSE_KERNEL_VERSION,
					     .minor = in->minor < FUSE_KERNEL_MINOR_VERSION ? in->minor
											    : FUSE_KERNEL_MINOR_VERSION,
					     .max_readahead = in->max_readahead,
					     .max_write = 4096 };

		answer(fd, head->unique, 0, &out, sizeof(out));
		break;
	}
	case FUSE_GETATTR: {
		struct fuse_attr_out out = { .attr = attributes(head->nodeid) };

		answer(fd, head->unique, 0, &out, sizeof(out));
		break;
	}
	case FUSE_LOOKUP:
		look_up(fd, head);
		break;
	case FUSE_OPEN: {
		struct fuse_open_out out = { .open_flags = FOPEN_KEEP_CACHE };

		answer(fd, head->unique, 0, &out, sizeof(out));
		break;
	}
	case FUSE_STATFS: {
		struct fuse_statfs_out out = { .st = { .bsize = 4096, .namelen = 255 } };

		answer(fd, head->unique, 0, &out, sizeof(out));
		break;
	}
	case FUSE_READ:
		read_file(fd, head);
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break;
	case FUSE_FLUSH:
	case FUSE_RELEASE:
		answer(fd, head->unique, 0, NULL, 0);
		break;
	default:
		answer(fd, head->unique, -ENOSYS, NULL, 0);
	}
}

static void load(const char *path)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &st))
		die(path);
	content_bytes = (size_t)st.st_size;
	content = mmap(NULL, content_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
	if (content == MAP_FAILED)
		die(path);
	close(fd);
}

static void run(const char *mountpoint, unsigned i)
{
	char path[4096];

	if (setgroups(0, NULL) || setresgid(user, user, user) || setresuid(user, user, user))
		die("become the user");
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(path, sizeof(path), "%s/p%u", mountpoint, i);
	execl(path, path, "86400", NULL);
	die(path);
}

int main(int argc, char **argv)
{
	char options[128];
	struct pollfd poller = { .events = POLLIN };

	if (argc != 5 && argc != 6)
		return 2;
	user = (unsigned)atoi(argv[3]);
	files = (unsigned)atoi(argv[4]);
	seconds = argc == 6 ? (unsigned)atoi(argv[5]) : 0;
	alarm(seconds);
	if (files > MAX_FILES)
		return 2;
	load(argv[1]);
	poller.fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=%u,group_id=%u,allow_other", poller.fd, user,
		 user);
	if (poller.fd < 0 || mount("hostile", argv[2], "fuse.hostile", MS_NOSUID | MS_NODEV, options)) {
		perror("fuse");
		return NO_FUSE;
	}
	for (unsigned i = 0; i < files; i++) {
		programs[i] = fork();
		if (!programs[i])
			run(argv[2], i);
	}
	/* Until the programs run: they want nothing more then. */
	while (poll(&poller, 1, QUIET_MS) > 0)
		serve(poller.fd);
	printf("ready");
	for (unsigned i = 0; i < files; i++)
		printf(" %d", programs[i]);
	puts("");
	fflush(stdout);
	for (;;)
		serve(poller.fd);
}
