// SPDX-License-Identifier: Apache-2.0
#include "truth.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

EXPORTED const uint32_t custom_labels_abi_version = 1;
EXPORTED __thread struct abi_v1_set *custom_labels_current_set;
__thread const char *truth_root;

static struct abi_string string_of(const char *text)
{
	return (struct abi_string){ .len = strlen(text), .buf = (const unsigned char *)text };
}

void truth_describe(struct truth *truth, const char *name, const char *format, ...)
{
	int root = snprintf(truth->stack, TRUTH_BYTES, "%s;", truth_root);
	va_list args;
	int rest;

	va_start(args, format);
	rest = vsnprintf(truth->stack + root, (size_t)(TRUTH_BYTES - root), format, args);
	va_end(args);
	if (root + rest >= TRUTH_BYTES) {
		fprintf(stderr, "%s: the description is too long\n", name);
		exit(1);
	}
	truth->labels[0] = (struct abi_label){ string_of("case"), string_of(name) };
	truth->labels[1] = (struct abi_label){ string_of("stack"), string_of(truth->stack) };
	truth->set = (struct abi_v1_set){ .storage = truth->labels, .count = 2, .capacity = 2 };
}

void truth_begin(const char *root)
{
	truth_root = root;
}

void truth_publish_set(struct truth *truth)
{
	truth_publish(truth);
}
