// SPDX-License-Identifier: Apache-2.0
#include "labels.h"

#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "options.h"
#include "process_context.h"
#include "publication_log.h"

const struct publisher *publisher;

static __thread struct published *current;

static void replace(struct published *next)
{
	struct published *old = current;

	publication_log_before();
	publisher->publish(next);
	publication_log_after();
	current = next;
	if (old)
		publisher->discard(old);
}

void labels_swap(const struct label_set *set, bool in_place)
{
	/* First: a name is known before an index refers to it. */
	if (publisher->abi == ABI_CONTEXT)
		process_context_publish(set);
	if (in_place && current && publisher->update) {
		publication_log_before();
		publisher->update(current, set);
		publication_log_after();
		return;
	}
	replace(publisher->build(set));
}

void labels_clear(void)
{
	replace(NULL);
}

void labels_print_variable(void)
{
	if (options.print_variables)
		printf("variable %ld %p\n", syscall(SYS_gettid), publisher->variable());
}
