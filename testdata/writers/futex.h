/* SPDX-License-Identifier: Apache-2.0 */
/*
 * System calls that block, each in a frame of its own: whoever follows frame pointers
 * skips one frame in code that has none, and must not skip the caller.
 */
#ifndef WRITERS_FUTEX_H
#define WRITERS_FUTEX_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "burn.h"

/* include/uapi/linux/futex.h, with FUTEX_PRIVATE_FLAG; not every C library comes with the kernel's headers */
#define FUTEX_WAIT_PRIVATE 128
#define FUTEX_WAKE_PRIVATE 129

static HOT long futex_wait(uint32_t *word, uint32_t value)
{
	return syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static inline void futex_wake(uint32_t *word, int waiters)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, waiters, NULL, NULL, 0);
}

/* A lock: 0 free, 1 held, 2 held and waited for. */
static inline void futex_lock(uint32_t *word)
{
	uint32_t expected = 0;

	if (__atomic_compare_exchange_n(word, &expected, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return;
	while (__atomic_exchange_n(word, 2, __ATOMIC_ACQUIRE) != 0)
		futex_wait(word, 2);
}

static inline void futex_unlock(uint32_t *word)
{
	if (__atomic_exchange_n(word, 0, __ATOMIC_RELEASE) == 2)
		futex_wake(word, 1);
}

#endif
