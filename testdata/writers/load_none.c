// SPDX-License-Identifier: Apache-2.0
/* A program without any label ABI: the same work, nothing published. */
#include "load.h"

static struct published *build(const struct label_set *set)
{
	(void)set;
	return NULL;
}

static void publish(struct published *next)
{
	(void)next;
}

static void *variable(void)
{
	return NULL;
}

const struct publisher *load_publisher(void)
{
	static const struct publisher none = {
		.abi = ABI_NONE,
		.name = "none",
		.build = build,
		.publish = publish,
		.discard = publish,
		.variable = variable,
	};

	return &none;
}
