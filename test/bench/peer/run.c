// SPDX-License-Identifier: Apache-2.0
/*
 * Runs a program under conditions that it insists on and this process may lack:
 *
 * - RLIMIT_MEMLOCK can be raised, although BPF has not counted against it since Linux
 *   5.11: the kernel is told to answer each prlimit64 that would set a limit with
 *   success, and to do nothing.
 * - tracefs is mounted, in a mount namespace of its own.
 *
 *   run PROGRAM [ARGUMENT]...
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NUMBER offsetof(struct seccomp_data, nr)
/* prlimit64(pid, resource, new limit, old limit); the halves of a pointer */
#define NEW_LIMIT_A offsetof(struct seccomp_data, args[2])
#define NEW_LIMIT_B (NEW_LIMIT_A + 4)

int main(int argc, char **argv)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, NUMBER),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_prlimit64, 0, 4), /* another call: allow */
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, NEW_LIMIT_A),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 3), /* not null: answer */
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, NEW_LIMIT_B),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 0),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };

	if (argc < 2) {
		fprintf(stderr, "usage: %s PROGRAM [ARGUMENT]...\n", argv[0]);
		return 2;
	}
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    (mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, NULL) && errno != EBUSY /* it is there */)) {
		fprintf(stderr, "mount tracefs: %s\n", strerror(errno));
		return 1;
	}
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
		fprintf(stderr, "set a filter of system calls: %s\n", strerror(errno));
		return 1;
	}
	execvp(argv[1], argv + 1);
	fprintf(stderr, "%s: %s\n", argv[1], strerror(errno));
	return 127;
}
