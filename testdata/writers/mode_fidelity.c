// SPDX-License-Identifier: Apache-2.0
/*
 * Labels that prove themselves. For thread TID and its n-th set:
 *
 *   check = "TID:n:H"   H: FNV-1a (64 bit) of "TID:n", 16 hex digits
 *   pad   = L bytes     L = mix(n) % 201, byte i = 'a' + mix(n + i + 1) % 26,
 *                       mix being splitmix64's finalizer
 *
 * The thread context has the same two as attributes 0 and 1, and
 *
 *   trace id   bytes 0-3 TID, 4-11 n, 12-15 the low half of FNV-1a of bytes 0-11
 *   span id    FNV-1a of the 16 bytes of the trace id
 *
 * all big-endian. So a reader can tell a label of another thread, of another set
 * than its neighbour's, and bytes of memory that was freed. The log tells when the
 * n-th set was current.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "burn.h"
#include "labels.h"
#include "modes.h"
#include "options.h"
#include "publication_log.h"
#include "random.h"
#include "run.h"

#define MAX_PAD_BYTES 200
#define MIN_DWELL_NS 20000
#define MAX_DWELL_NS 200000
#define MAX_CHECK_BYTES 64

static uint64_t fnv1a(const void *data, size_t size)
{
	const unsigned char *p = data;
	uint64_t hash = 0xcbf29ce484222325u;

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ p[i]) * 0x100000001b3u;
	return hash;
}

static void big_endian(uint8_t *to, uint64_t value, size_t size)
{
	for (size_t i = 0; i < size; i++)
		to[i] = (uint8_t)(value >> (8 * (size - 1 - i)));
}

static void write_check(char *to, uint32_t tid, uint64_t n)
{
	int len = snprintf(to, MAX_CHECK_BYTES, "%" PRIu32 ":%" PRIu64, tid, n);

	snprintf(to + len, MAX_CHECK_BYTES - (size_t)len, ":%016" PRIx64, fnv1a(to, (size_t)len));
}

static void write_pad(char *to, uint64_t n)
{
	size_t len = random_mix(n) % (MAX_PAD_BYTES + 1);

	for (size_t i = 0; i < len; i++)
		to[i] = (char)('a' + random_mix(n + i + 1) % 26);
	to[len] = '\0';
}

static void write_ids(struct label_set *set, uint32_t tid, uint64_t n)
{
	big_endian(set->trace_id, tid, 4);
	big_endian(set->trace_id + 4, n, 8);
	big_endian(set->trace_id + 12, fnv1a(set->trace_id, 12), 4);
	big_endian(set->span_id, fnv1a(set->trace_id, 16), 8);
}

static void publish(uint32_t tid, uint64_t n)
{
	char check[MAX_CHECK_BYTES], pad[MAX_PAD_BYTES + 1];
	struct label labels[] = { { "check", check }, { "pad", pad } };
	struct label_set set = { .count = 2, .labels = labels };

	write_check(check, tid, n);
	write_pad(pad, n);
	write_ids(&set, tid, n);
	labels_swap(&set, options.in_place);
}

static HOT uint64_t work(uint64_t cpu_ns)
{
	return burn_until(cpu_ns, cpu_ns);
}

static void body(int index)
{
	uint32_t tid = (uint32_t)syscall(SYS_gettid);
	uint64_t state = mono_ns() + (uint64_t)index, n = 1;

	if (options.log)
		publication_log_begin(index);
	publish(tid, n);
	labels_print_variable();
	run_published();
	while (!run_over()) {
		work(thread_cpu_ns() + random_between(&state, MIN_DWELL_NS, MAX_DWELL_NS));
		publish(tid, ++n);
	}
	labels_clear();
}

void mode_fidelity(void)
{
	if (options.log)
		publication_log_open(options.log, options.threads);
	run_threads(options.threads, body, NULL);
}
