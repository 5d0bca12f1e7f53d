// SPDX-License-Identifier: Apache-2.0
/*
 * One thread, one function that burns, and the label `tenant` that goes from
 * tenant to tenant. Each switch is in the log with the clocks taken right after
 * it was published: the CPU time between two records belongs to the first one's
 * tenant. What the clocks themselves take is the same at both ends of a dwell.
 *
 * A thread context has the tenant t (from 0) in its ids as well, because a reader
 * may not know the name of attribute 0:
 *
 *   trace id   byte i = (t + 1) << 4 | i
 *   span id    byte i = (t + 1) << 4 | i
 */
#include <string.h>

#include "burn.h"
#include "labels.h"
#include "modes.h"
#include "options.h"
#include "random.h"
#include "run.h"
#include "switch_log.h"

#define MAX_TENANTS 4

struct pattern {
	const char *name;
	int tenants;
	const char *names[MAX_TENANTS];
	int weights[MAX_TENANTS]; /* percent; 0: by turns */
	int fixed_ms[MAX_TENANTS];
};

static const struct pattern patterns[] = {
	{ "random", 4, { "t0", "t1", "t2", "t3" }, { 40, 30, 20, 10 }, { 0 } },
	{ "30,90", 2, { "A", "B" }, { 0 }, { 30, 90 } },
};

static const struct pattern *pattern;
static uint64_t random_state;

static int next_tenant(int tenant)
{
	int at = (int)random_between(&random_state, 0, 100);

	if (pattern->weights[0] == 0)
		return (tenant + 1) % pattern->tenants;
	for (tenant = 0; at >= pattern->weights[tenant]; tenant++)
		at -= pattern->weights[tenant];
	return tenant;
}

/* 0.5 to 1.5 times the mean, so that nothing beats with the sampling. */
static uint64_t dwell_ns(int tenant)
{
	uint64_t mean = (uint64_t)options.dwell_us * 1000;

	if (pattern->fixed_ms[tenant])
		return (uint64_t)pattern->fixed_ms[tenant] * 1000000;
	return random_between(&random_state, mean / 2, mean + mean / 2);
}

static uint64_t shortest_dwell_ns(void)
{
	return pattern->fixed_ms[0] ? (uint64_t)pattern->fixed_ms[0] * 1000000 : (uint64_t)options.dwell_us * 500;
}

static void publish(int tenant)
{
	struct label label = { "tenant", pattern->names[tenant] };
	struct label_set set = { .count = 1, .labels = &label, .trace_flags = 1 };

	for (int i = 0; i < 16; i++)
		set.trace_id[i] = (uint8_t)((tenant + 1) << 4 | i);
	memcpy(set.span_id, set.trace_id, sizeof(set.span_id));
	labels_swap(&set, options.in_place);
}

static HOT uint64_t burn(uint64_t cpu_ns)
{
	return burn_until(cpu_ns, cpu_ns);
}

void mode_switch(void)
{
	uint64_t cpu_ns;
	int tenant = 0;

	for (pattern = patterns; strcmp(pattern->name, options.pattern) != 0; pattern++)
		;
	random_state = mono_ns();
	switch_log_create(options.log, pattern->names, pattern->tenants,
			  (uint64_t)(options.seconds * 1e9) / shortest_dwell_ns() + 16);
	publish(tenant);
	cpu_ns = switch_log_add((uint32_t)tenant);
	labels_print_variable();
	run_ready();
	while (!run_over() && !switch_log_full()) {
		burn(cpu_ns + dwell_ns(tenant));
		tenant = next_tenant(tenant);
		publish(tenant);
		cpu_ns = switch_log_add((uint32_t)tenant);
	}
	labels_clear();
	switch_log_add(SWITCH_LOG_NO_TENANT);
}
