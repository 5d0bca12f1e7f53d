// SPDX-License-Identifier: Apache-2.0
#include "storage.h"
#include "tls.h"

EXPORTED const uint32_t custom_labels_abi_version = 1;
EXPORTED __thread struct abi_v1_set *custom_labels_current_set;

struct published {
	struct abi_v1_set set;
};

static struct published *build(const struct label_set *set)
{
	struct published *built = must_malloc(sizeof(*built));

	built->set.storage = storage_build(set);
	built->set.count = set->count;
	built->set.capacity = set->count;
	return built;
}

/* One store: a stopped thread has the old set or the new one. */
static void publish(struct published *next)
{
	IN_ORDER();
	STORE(custom_labels_current_set, next ? &next->set : NULL);
	IN_ORDER();
}

static void discard(struct published *old)
{
	storage_discard(old->set.storage, old->set.count);
	free_overwritten(old, sizeof(*old));
}

static void *variable(void)
{
	return &custom_labels_current_set;
}

EXPORTED const struct publisher *labels_publisher(void)
{
	static const struct publisher v1 = {
		.abi = ABI_V1,
		.name = "v1",
		.build = build,
		.publish = publish,
		.discard = discard,
		.variable = variable,
	};

	return &v1;
}
