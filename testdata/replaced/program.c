// SPDX-License-Identifier: Apache-2.0
/*
 * Publishes custom labels (ABI v1): tenant=right. Beside the variable that says so is one of
 * the same form for tenant=wrong. Built with -DSWAP, the two change places, and nothing
 * else does: who reads one build where the other's variable is says wrong.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

struct text {
	size_t len;
	const char *buf;
};

struct label {
	struct text key, value;
};

struct set {
	struct label *storage;
	size_t count, capacity;
};

#define VARIABLE __attribute__((visibility("default"))) __thread struct set *volatile

#ifdef SWAP
VARIABLE other_set = NULL;
VARIABLE custom_labels_current_set = NULL;
#else
VARIABLE custom_labels_current_set = NULL;
VARIABLE other_set = NULL;
#endif
__attribute__((visibility("default"))) const uint32_t custom_labels_abi_version = 1;

static struct label right = { { 6, "tenant" }, { 5, "right" } };
static struct label wrong = { { 6, "tenant" }, { 5, "wrong" } };
static struct set current = { &right, 1, 1 }, other = { &wrong, 1, 1 };
static volatile uint64_t turns;

int main(int argc, char **argv)
{
	time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 1);

	custom_labels_current_set = &current;
	other_set = &other;
	while (time(NULL) < end)
		for (int i = 0; i < 1000000; i++)
			turns++;
	return 0;
}
