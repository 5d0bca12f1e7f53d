// SPDX-License-Identifier: Apache-2.0
/*
 * Requests of tenants, the tenants' shares of the CPU time being known. Labels:
 * tenant and route. A thread context has both in the trace id too, which is random
 * otherwise: byte 0 is the tenant's number from 1, byte 1 the route's from 1.
 */
#include <stdio.h>
#include <string.h>

#include "burn.h"
#include "labels.h"
#include "modes.h"
#include "options.h"
#include "random.h"
#include "run.h"
#include "truth.h"
#include "workload.h"

#define MIN_REQUEST_NS 1000000
#define MAX_REQUEST_NS 5000000

static char names[TENANTS][64]; /* with the prefix */

struct worker {
	uint64_t random;
	uint64_t used_ns[TENANTS];
	uint64_t total_ns;
};

/*
 * The tenant that is furthest behind its share, give or take one request: the
 * shares hold at all times, and the order has no period to fall into step with.
 */
static int pick_tenant(struct worker *w)
{
	int64_t most = INT64_MIN;
	int picked = 0;

	for (int t = 0; t < TENANTS; t++) {
		int64_t due = (int64_t)(w->total_ns / 100 * (uint64_t)tenants[t].percent) - (int64_t)w->used_ns[t];

		due += (int64_t)random_between(&w->random, 0, MAX_REQUEST_NS);
		if (due > most) {
			most = due;
			picked = t;
		}
	}
	return picked;
}

static int pick_route(struct worker *w, int tenant)
{
	int routes = 0;

	while (routes < MAX_ROUTES && tenants[tenant].routes[routes])
		routes++;
	return (int)random_between(&w->random, 0, (uint64_t)routes);
}

static void random_id(struct worker *w, uint8_t *id, size_t size)
{
	for (size_t i = 0; i < size; i += 8) {
		uint64_t bits = random_next(&w->random) | 1;

		memcpy(id + i, &bits, 8);
	}
}

static void publish(struct worker *w, int tenant, int route)
{
	struct label labels[] = { { "tenant", names[tenant] }, { "route", tenants[tenant].routes[route] } };
	struct label_set set = { .count = 2, .labels = labels, .trace_flags = 1 };

	random_id(w, set.trace_id, sizeof(set.trace_id));
	random_id(w, set.span_id, sizeof(set.span_id));
	set.trace_id[0] = (uint8_t)(tenant + 1);
	set.trace_id[1] = (uint8_t)(route + 1);
	labels_swap(&set, options.in_place);
}

static HOT uint64_t serve_request(int tenant, int route, uint64_t ns)
{
	return tenants[tenant].serve(route, ns) + 1;
}

/* From one publication to the next, all CPU time is the label set's. */
static void body(int index)
{
	struct worker w = { .random = mono_ns() + (uint64_t)index * 7919 };
	int tenant = pick_tenant(&w), route = pick_route(&w, tenant);
	uint64_t start;

	publish(&w, tenant, route);
	start = thread_cpu_ns();
	labels_print_variable();
	run_published();
	while (!run_over()) {
		int next_tenant, next_route;
		uint64_t end;

		serve_request(tenant, route, random_between(&w.random, MIN_REQUEST_NS, MAX_REQUEST_NS));
		next_tenant = pick_tenant(&w);
		next_route = pick_route(&w, next_tenant);
		publish(&w, next_tenant, next_route);
		end = thread_cpu_ns();
		truth_add(tenant, route, end - start);
		w.used_ns[tenant] += end - start;
		w.total_ns += end - start;
		tenant = next_tenant;
		route = next_route;
		start = end;
	}
	labels_clear();
}

static void write_truth(void)
{
	if (options.truth)
		truth_write(options.truth, publisher->name, options.prefix);
}

void mode_shares(void)
{
	for (int t = 0; t < TENANTS; t++)
		snprintf(names[t], sizeof(names[t]), "%s%s", options.prefix, tenants[t].name);
	run_threads(options.threads, body, write_truth);
}
