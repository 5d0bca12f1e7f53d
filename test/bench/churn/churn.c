// SPDX-License-Identifier: Apache-2.0
/*
 * Processes that come and go. The name of each begins with "churn-", before and after it
 * executes something: by that samples of them are told from those of other processes.
 *
 *   pace PROGRAM PER_SECOND SECONDS       executes a program so often
 *   boxes DIR PER_SECOND SECONDS LIFE     the same of spin in containers of one image: each
 *                                         has its own PIDs and mounts, among them an overlay
 *                                         of DIR/image, which has this program as /churn-box;
 *                                         DIR/room is an empty directory
 *   spin LIFE                             runs for so long, at a stack that is known
 *   PROGRAM ARGUMENT...                   executes DIR/churn-NAME instead of .../NAME, DIR
 *                                         being where this program is: for go build -toolexec
 *
 * pace and boxes wait for all that they have started, and print how many these were. They
 * fail when one of them fails.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS 1000000000ULL
#define GOLDEN_RATIO 0.6180339887498949 /* its multiples are evenly spread between whole numbers */

static void check(int failed, const char *what)
{
	if (!failed)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * SECOND_NS + ts.tv_nsec;
}

static void sleep_until(uint64_t ns)
{
	struct timespec ts = { .tv_sec = ns / SECOND_NS, .tv_nsec = ns % SECOND_NS };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
		;
}

/* Waits for those that have ended, or for all; returns how many there were. */
static long reap(int options)
{
	long n = 0;
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, options)) > 0) {
		if (status) {
			fprintf(stderr, "process %d ended with status %#x\n", pid, status);
			exit(1);
		}
		n++;
	}
	return n;
}

/*
 * Each starts at another point of its part of a second: samples that are taken at a steady pace, too, would meet all
 * of them or none. What is late starts at once; what would start after the end does not.
 */
static long keep_pace(double per_second, double seconds, void (*start)(long i, void *arg), void *arg)
{
	uint64_t begin = now_ns(), end = begin + seconds * SECOND_NS;
	long started = 0, ended = 0;

	for (;; started++) {
		double within = started * GOLDEN_RATIO;
		uint64_t due = begin + (started + within - (long)within) * (SECOND_NS / per_second);

		if (due >= end || now_ns() >= end)
			break;
		sleep_until(due);
		start(started, arg);
		ended += reap(WNOHANG);
	}
	ended += reap(0);
	if (ended != started) {
		fprintf(stderr, "%ld were started, %ld have ended\n", started, ended);
		exit(1);
	}
	return started;
}

/* A child that executes a program has the stack of its maker until then. */
static void start_program(long i, void *arg)
{
	pid_t pid = vfork();

	(void)i;
	if (pid == 0) {
		execl(arg, arg, NULL);
		_exit(127);
	}
	check(pid < 0, "vfork");
}

struct boxes {
	const char *dir, *life;
};

/* Runs in namespaces of its own, and takes its mounts along when it ends. */
static void run_box(long i, const struct boxes *boxes)
{
	char options[4 * PATH_MAX], path[4][PATH_MAX];
	const char *part[] = { "", "/upper", "/work", "/root" };

	for (int p = 0; p < 4; p++) {
		snprintf(path[p], sizeof(path[p]), "%s/room/%ld%s", boxes->dir, i, part[p]);
		check(mkdir(path[p], 0755), path[p]);
	}
	snprintf(options, sizeof(options), "lowerdir=%s/image,upperdir=%s,workdir=%s", boxes->dir, path[1], path[2]);
	check(mount("overlay", path[3], "overlay", 0, options), "mount an overlay");
	check(chroot(path[3]) || chdir("/"), "enter the overlay");
	execl("/churn-box", "churn-box", "spin", boxes->life, NULL);
	check(1, "/churn-box");
}

static void start_box(long i, void *arg)
{
	pid_t pid = syscall(SYS_clone, CLONE_NEWPID | CLONE_NEWNS | SIGCHLD, 0, 0, 0, 0);

	check(pid < 0, "clone");
	if (pid == 0)
		run_box(i, arg);
}

/* What overlays hold is in memory, and gone with this process. */
static void make_room(const char *dir)
{
	char room[PATH_MAX];

	snprintf(room, sizeof(room), "%s/room", dir);
	check(unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), "unshare mounts");
	check(mount("tmpfs", room, "tmpfs", 0, NULL), "mount a tmpfs");
}

#define CALL(name, callee)                                                                                             \
	__attribute__((noinline)) static unsigned long name(uint64_t end)                                              \
	{                                                                                                              \
		return callee(end) + 1;                                                                                \
	}

__attribute__((noinline)) static unsigned long spin_leaf(uint64_t end)
{
	unsigned long n = 0;

	while (now_ns() < end)
		for (volatile int i = 0; i < 100000; i++)
			n++;
	return n;
}
CALL(spin_6, spin_leaf)
CALL(spin_5, spin_6)
CALL(spin_4, spin_5)
CALL(spin_3, spin_4)
CALL(spin_2, spin_3)
CALL(spin_1, spin_2)

static int run_tool(char **args)
{
	char path[PATH_MAX], *name = strrchr(args[0], '/');
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - NAME_MAX - 16);

	check(n < 0, "/proc/self/exe");
	path[n] = 0;
	snprintf(strrchr(path, '/'), NAME_MAX, "/churn-%s", name ? name + 1 : args[0]);
	execv(path, args);
	check(1, path);
	return 1;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "pace") && argc == 5) {
		printf("%ld\n", keep_pace(atof(argv[3]), atof(argv[4]), start_program, argv[2]));
	} else if (!strcmp(what, "boxes") && argc == 6) {
		struct boxes boxes = { argv[2], argv[5] };

		make_room(boxes.dir);
		printf("%ld\n", keep_pace(atof(argv[3]), atof(argv[4]), start_box, &boxes));
	} else if (!strcmp(what, "spin") && argc == 3) {
		return spin_1(now_ns() + atof(argv[2]) * SECOND_NS) == 0;
	} else if (argc > 1) {
		return run_tool(argv + 1);
	} else {
		return 2;
	}
	return 0;
}
