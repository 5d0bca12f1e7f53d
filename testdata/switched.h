/* SPDX-License-Identifier: Apache-2.0 */
/*
 * On aarch64 the kernel knows the thread pointer of a fresh process only after its first
 * switch to another task. A sleep alone is no switch when it is over before it begins:
 * on a busy machine the timer can end first.
 */
#ifndef TESTDATA_SWITCHED_H
#define TESTDATA_SWITCHED_H

#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

#ifndef RUSAGE_THREAD
#define RUSAGE_THREAD 1 /* include/uapi/linux/resource.h */
#endif

/* A system call without the C library, which uses the thread pointer. */
static inline long raw_call(long number, long a, long b, long c)
{
#ifdef __x86_64__
	long result;

	asm volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
	return result;
#else
	register long x8 asm("x8") = number, x0 asm("x0") = a, x1 asm("x1") = b, x2 asm("x2") = c;

	asm volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
	return x0;
#endif
}

static inline long context_switches(void)
{
	struct rusage usage;

	raw_call(SYS_getrusage, RUSAGE_THREAD, (long)&usage, 0);
	return usage.ru_nvcsw + usage.ru_nivcsw;
}

static inline void sleep_until_switched(long microseconds)
{
	const struct timespec nap = { 0, 1000 * microseconds };
	long before = context_switches();

	while (context_switches() == before)
		raw_call(SYS_nanosleep, (long)&nap, 0, 0);
}

#endif
