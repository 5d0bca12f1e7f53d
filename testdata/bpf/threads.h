/* Threads besides the first one: states of target.c. */
#ifndef TARGET_THREADS_H
#define TARGET_THREADS_H

#include <linux/futex.h>
#include <pthread.h>

#define ROBUST_FUTEXES 2000 /* the kernel looks at 2048 (ROBUST_LIST_LIMIT) */

/* A lock that its holder leaves to the kernel; the robust list of a thread leads through them. */
static struct robust_lock {
	struct robust_list next;
	uint32_t futex;
} robust_locks[ROBUST_FUTEXES];
static struct robust_list_head robust_head;

static pthread_t start_thread(void *(*run)(void *), void *argument)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, run, argument)) {
		perror("pthread_create");
		exit(1);
	}
	return thread;
}

static void *return_at_once(void *argument)
{
	return argument;
}

static void wait_for_thread(void *(*run)(void *), void *argument)
{
	start_thread(run, argument);
	for (;;)
		pause();
}

/*
 * Ends with many locks held, each of which the kernel gives up and wakes who waits for it, when
 * the thread has told that it ends: that takes most of its life.
 */
static void *end_with_locks(void *argument)
{
	uint32_t held = (uint32_t)syscall(SYS_gettid) | FUTEX_WAITERS;

	v1 = argument;
	robust_head.list.next = &robust_locks[0].next;
	robust_head.futex_offset = offsetof(struct robust_lock, futex) - offsetof(struct robust_lock, next);
	robust_head.list_op_pending = NULL;
	for (int i = 0; i < ROBUST_FUTEXES; i++) {
		robust_locks[i].next.next = i + 1 < ROBUST_FUTEXES ? &robust_locks[i + 1].next : &robust_head.list;
		robust_locks[i].futex = held;
	}
	syscall(SYS_set_robust_list, &robust_head, sizeof(robust_head));
	syscall(SYS_exit, 0);
	return NULL;
}

__attribute__((noreturn)) static void end_threads(void *argument)
{
	for (;;)
		pthread_join(start_thread(end_with_locks, argument), NULL);
}

#endif
