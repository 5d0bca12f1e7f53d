// SPDX-License-Identifier: Apache-2.0
#include "storage.h"
#include "tls.h"

EXPORTED const uint32_t custom_labels_abi_version = 0;
EXPORTED __thread struct abi_v0_data custom_labels_thread_local_data;

struct published {
	struct abi_label *storage;
	size_t count;
};

static struct published *build(const struct label_set *set)
{
	struct published *built = must_malloc(sizeof(*built));

	built->storage = storage_build(set);
	built->count = set->count;
	return built;
}

/*
 * Two words cannot change at once. With the count at 0 the storage may be
 * anything, so a thread stopped in here has the old set, no labels, or the new
 * set; it never has one set's storage with the other's count.
 */
static void publish(struct published *next)
{
	struct abi_v0_data *data = &custom_labels_thread_local_data;

	IN_ORDER();
	STORE(data->count, 0);
	IN_ORDER();
	STORE(data->storage, next ? next->storage : NULL);
	IN_ORDER();
	STORE(data->count, next ? next->count : 0);
	IN_ORDER();
}

static void discard(struct published *old)
{
	storage_discard(old->storage, old->count);
	free_overwritten(old, sizeof(*old));
}

static void *variable(void)
{
	return &custom_labels_thread_local_data;
}

EXPORTED const struct publisher *labels_publisher(void)
{
	static const struct publisher v0 = {
		.abi = ABI_V0,
		.name = "v0",
		.build = build,
		.publish = publish,
		.discard = discard,
		.variable = variable,
	};

	return &v0;
}
