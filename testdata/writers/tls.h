/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WRITERS_TLS_H
#define WRITERS_TLS_H

#define EXPORTED __attribute__((visibility("default")))

/*
 * The profiler sees the thread stopped between any two instructions, never in
 * parallel: what has to hold is the order of the stores in the program.
 */
#define IN_ORDER() __atomic_signal_fence(__ATOMIC_SEQ_CST)
#define STORE(target, value) __atomic_store_n(&(target), (value), __ATOMIC_RELAXED)

/*
 * A block that does not fit the static surplus that glibc keeps for dlopen'ed
 * libraries (512 bytes by default), so that it becomes dynamic.
 */
#ifdef TLS_FILLER_BYTES
static __thread char tls_filler[TLS_FILLER_BYTES] __attribute__((used));
#endif

#endif
