/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a writer: start, ready, end. */
#ifndef WRITERS_RUN_H
#define WRITERS_RUN_H

#include <stdbool.h>

/* Dies with the parent, ends at SIGTERM, SIGINT or after so many seconds. */
void run_begin(double seconds);

/* Whether it is time to end. */
bool run_over(void);

/*
 * Every thread sleeps once before it publishes, for the kernel to know its thread
 * pointer (../switched.h).
 */
void run_sleep_once(void);

/* Prints "ready PID" once. */
void run_ready(void);

/*
 * Runs body in so many threads until they return. body calls run_published when
 * it has published for the first time; the last one makes the program ready. The
 * main thread calls tick (may be NULL) every second and once after the end.
 */
void run_threads(int count, void (*body)(int index), void (*tick)(void));
void run_published(void);

#endif
