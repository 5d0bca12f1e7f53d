// SPDX-License-Identifier: Apache-2.0
/*
 * Processes that come and go, --rate a second, each started and ended in another way. All
 * have the label `life`, which equals the name of the thread that has it and begins with
 * the process's PID: it is set when the one before has gone, and the name before it.
 *
 * The program that starts them makes every PID that it can: where there is none, it waits.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "burn.h"
#include "labels.h"
#include "modes.h"
#include "options.h"
#include "run.h"

#define LIFE_CPU_NS 700000
#define LOOK_ROUNDS 20000
#define NAME_BYTES 16 /* TASK_COMM_LEN */
#define TURN_BYTES 16

extern char **environ;

static HOT uint64_t churn_work(uint64_t cpu_ns)
{
	uint64_t x = cpu_ns, end = thread_cpu_ns() + cpu_ns;

	while (thread_cpu_ns() < end)
		x = burn_rounds(LOOK_ROUNDS, x);
	return x;
}

/* One label set of the calling thread, from begin to end. */
static void live(char part)
{
	char name[NAME_BYTES];
	struct label label = { "life", name };
	struct label_set set = { .count = 1, .labels = &label };

	snprintf(name, sizeof(name), "%d%c%x", (int)getpid(), part, (unsigned)options.turn & 0xffff);
	prctl(PR_SET_NAME, name);
	labels_swap(&set, false);
	churn_work(LIFE_CPU_NS);
	labels_clear();
}

static void *live_as_thread(void *unused)
{
	live('t');
	return unused;
}

/* The leader ends first. */
static void leave_a_thread(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, live_as_thread, NULL) == 0) {
		live('l');
		pthread_exit(NULL);
	}
}

/* A child with a copy of the labels, and then with its own. */
static void leave_a_child(void)
{
	char name[NAME_BYTES];
	struct label label = { "life", name };
	struct label_set set = { .count = 1, .labels = &label };

	snprintf(name, sizeof(name), "%dp", (int)getpid());
	prctl(PR_SET_NAME, name);
	labels_swap(&set, false);
	if (fork() == 0) {
		labels_clear();
		live('c');
		_exit(0);
	}
	churn_work(LIFE_CPU_NS);
	labels_clear();
}

/* Another library takes the place of the one with the labels, and goes again. */
static void reload(void)
{
	static const char *const libraries[] = { "libcustomlabels_v1.so", "libcustomlabels_v0.so",
						 "libcustomlabels_v1_gd.so" };
	char path[PATH_MAX], dir[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", dir, sizeof(dir) - 1);

	if (n < 0)
		return;
	dir[n] = '\0';
	dirname(dir);
	for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++) {
		const struct publisher *(*find)(void), *own = publisher;
		void *library;

		if (snprintf(path, sizeof(path), "%s/%s", dir, libraries[i]) >= (int)sizeof(path))
			return;
		library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
		if (!library)
			continue; /* this copy of the program lies elsewhere */
		*(void **)&find = dlsym(library, "labels_publisher");
		if (find) {
			publisher = find();
			live('a' + (char)i);
			publisher = own;
		}
		dlclose(library);
	}
}

void mode_turn(void)
{
	char turn[TURN_BYTES];
	char *again[] = { "writer", "turn", "--last", "--turn", turn, NULL };

	snprintf(turn, sizeof(turn), "%d", options.turn);
	switch (options.last ? 0 : options.turn / 4 % 5) {
	case 0:
		live('x');
		break;
	case 1:
		leave_a_child();
		break;
	case 2:
		leave_a_thread();
		break;
	case 3:
		live('e');
		execve("/proc/self/exe", again, environ);
		break;
	case 4:
		reload();
		live('r');
		break;
	}
}

static const char *const variants[] = { "writer-v1-exe", "writer-v1-lib", "writer-v0-exe", "writer-v1-dlopen",
					"spin-plain" };

/* Copies a program to a descriptor. */
static int copy(const char *from, int to)
{
	int in = open(from, O_RDONLY | O_CLOEXEC);
	struct stat st;
	off_t at = 0;

	if (in < 0 || fstat(in, &st) != 0)
		return -1;
	while (at < st.st_size && sendfile(to, in, &at, (size_t)(st.st_size - at)) > 0)
		;
	close(in);
	return at == st.st_size ? 0 : -1;
}

static pid_t start_memfd(const char *path, char **args)
{
	int fd = memfd_create("churn", MFD_CLOEXEC);
	pid_t pid = -1;

	if (fd >= 0 && copy(path, fd) == 0 && (pid = fork()) == 0) {
		fexecve(fd, args, environ);
		_exit(127);
	}
	close(fd);
	return pid;
}

/* The file is gone before its process has begun. */
static pid_t start_deleted(const char *path, char **args)
{
	char name[] = "/tmp/churn-XXXXXX", self[64];
	int fd = mkstemp(name), in;
	pid_t pid = -1;

	if (fd < 0)
		return -1;
	unlink(name);
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	if (copy(path, fd) == 0 && fchmod(fd, 0700) == 0 && (in = open(self, O_RDONLY | O_CLOEXEC)) >= 0) {
		close(fd); /* a file that is open for writing is not executed */
		fd = in;
		snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
		if ((pid = vfork()) == 0) {
			execve(self, args, environ);
			_exit(127);
		}
	}
	close(fd);
	return pid;
}

static pid_t start(const char *dir, int turn)
{
	char path[PATH_MAX], number[TURN_BYTES];
	char *args[] = { "writer", "turn", "--turn", number, NULL };
	int way = turn / 16 % 8;					   /* most are started in the usual way */
	const char *variant = variants[way < 2 ? turn % 2 * 2 : turn % 5]; /* a copy has no libraries beside it */
	pid_t pid;

	snprintf(number, sizeof(number), "%d", turn);
	if (snprintf(path, sizeof(path), "%s/%s", dir, variant) >= (int)sizeof(path))
		return -1;
	switch (way) {
	case 0:
		return start_memfd(path, args);
	case 1:
		return start_deleted(path, args);
	case 2:
		pid = fork();
		if (pid == 0) {
			execve(path, args, environ);
			_exit(127);
		}
		return pid;
	}
	errno = posix_spawn(&pid, path, NULL, NULL, args, environ);
	return errno ? -1 : pid;
}

void mode_churn(void)
{
	char dir[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", dir, sizeof(dir) - 1);
	uint64_t begin = mono_ns();
	int turn = 0, waits = 0;

	if (n < 0) {
		perror("find the programs");
		exit(1);
	}
	dir[n] = '\0';
	dirname(dir);
	signal(SIGCHLD, SIG_IGN); /* nobody waits for them, nor for theirs */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	run_ready();
	while (!run_over()) {
		uint64_t due = begin + (uint64_t)turn * 1000000000 / (uint64_t)options.rate;

		if (mono_ns() < due) {
			usleep(500);
		} else if (start(dir, turn) >= 0) {
			turn++;
		} else {
			waits++;
			usleep(2000); /* no PID is free */
		}
	}
	fprintf(stderr, "churned %d, waited %d\n", turn, waits);
}
