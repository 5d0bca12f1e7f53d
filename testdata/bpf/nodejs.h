/*
 * What a Node.js writer (schema nodejs_v1_dev) and V8 have in memory, right and
 * otherwise: states of target.c. Layouts as in internal/bpf/src/nodejs.bpf.h.
 */
#ifndef TARGET_NODEJS_H
#define TARGET_NODEJS_H

#define V8_FIELD 0x20
#define V8_MAP_TYPE 2112
#define V8_BUCKETS 64
#define V8_CAPACITY (2 * V8_BUCKETS)
#define V8_HASH 0x123405 /* bucket 5 */

#define OBJECT(p) ((uint64_t)(uintptr_t)(p) + 1)
#define INTEGER(n) ((uint64_t)(n) << 32)

struct node_variable {
	uint64_t slot, handle;
	uint32_t hash, field;
	uint64_t undefined;
};
struct node_entry {
	uint64_t key, value, next;
};
struct node_table {
	uint64_t map, length, elements, deleted, buckets;
	uint64_t bucket[V8_BUCKETS];
	struct node_entry entry[V8_CAPACITY + 1]; /* the last one is behind the table */
};

static __thread struct node_variable node;

static uint64_t node_map[4], node_undefined[4];
static uint64_t node_odd[5] = { -1ULL, -1ULL, -1ULL, -1ULL, -1ULL }; /* what would be read behind it is tagged */
static uint64_t node_context[4];				     /* map, properties, elements, table */
static uint64_t node_value[6];					     /* map, properties, elements, cppgc slot, record */
static uint64_t node_key[2];
static uint64_t node_slot, node_handle;
static struct node_table node_table;

/* A chain of n entries in the right bucket, of which the last has the key. */
static void node_chain(int n)
{
	node_table.elements = INTEGER(n);
	node_table.bucket[V8_HASH % V8_BUCKETS] = INTEGER(0);
	for (int i = 0; i < n; i++) {
		node_table.entry[i].key = i == n - 1 ? OBJECT(node_key) : OBJECT(node_undefined);
		node_table.entry[i].value = OBJECT(node_value);
		node_table.entry[i].next = i == n - 1 ? INTEGER(-1ULL) : INTEGER(i + 1);
	}
}

static void node_fill(void *record)
{
	node_map[0] = OBJECT(node_map);
	((uint16_t *)node_map)[6] = V8_MAP_TYPE;
	node_undefined[0] = node_key[0] = OBJECT(node_map);
	node_context[0] = OBJECT(node_map);
	node_context[3] = OBJECT(&node_table);
	node_table.map = OBJECT(node_map);
	node_table.length = INTEGER(3 + V8_BUCKETS + 3 * V8_CAPACITY);
	node_table.buckets = INTEGER(V8_BUCKETS);
	for (int i = 0; i < V8_BUCKETS; i++)
		node_table.bucket[i] = INTEGER(-1ULL);
	node_chain(3);
	node_table.entry[V8_CAPACITY] = (struct node_entry){ OBJECT(node_key), OBJECT(node_value), INTEGER(-1ULL) };
	node_value[0] = OBJECT(node_map);
	node_value[4] = (uintptr_t)record;
	node_slot = OBJECT(node_context);
	node_handle = OBJECT(node_key);
	node.slot = (uintptr_t)&node_slot;
	node.handle = (uintptr_t)&node_handle;
	node.hash = V8_HASH;
	node.field = V8_FIELD;
	node.undefined = OBJECT(node_undefined);
}

/* Moves an object as V8's collector does, some times: of the old one, nothing else is right. */
static void node_move(void *object, size_t bytes, int times)
{
	for (; times > 0; times--) {
		void *to = malloc(bytes);

		memcpy(to, object, bytes);
		memset(object, 0xee, bytes);
		*(uint64_t *)object = (uintptr_t)to;
		object = to;
	}
}

/* Changes one word of what is right; state is without the prefix "node-". */
static int node_spoil(const char *state)
{
	const uint64_t unmapped = 0x10001, kernel = 0xffff888000000001;
	uint64_t *entry = &node_table.entry[2].key;
	const struct {
		const char *state;
		uint64_t *at, word;
	} words[] = {
		{ "right", &node.slot, node.slot },
		{ "no-slot", &node.slot, 0 },
		{ "no-handle", &node.handle, 0 },
		{ "no-context", &node_slot, OBJECT(node_undefined) },
		{ "absent", &node_handle, OBJECT(node_map) },
		{ "other-bucket", &node_table.bucket[V8_HASH % V8_BUCKETS], INTEGER(-1ULL) },
		{ "cleared", entry + 1, OBJECT(node_undefined) },
		{ "moved-nowhere", node_context, 0 },
		{ "moved-odd", node_context, (uintptr_t)node_odd + 4 },
		{ "moved-unmapped", node_context, 0x10000 },
		{ "integer-context", &node_slot, 0 },
		{ "weak-context", &node_slot, OBJECT(node_context) | 2 },
		{ "integer-key", &node_handle, INTEGER(1) },
		{ "integer-table", &node_context[3], INTEGER(1) },
		{ "integer-value", entry + 1, INTEGER(1) },
		{ "not-a-map", &node_map[1], 0 },
		{ "length", &node_table.length, INTEGER(3 + V8_BUCKETS) },
		{ "length-object", &node_table.length, node_table.length | 1 },
		{ "obsolete-table", &node_table.elements, OBJECT(&node_table) },
		{ "deleted-object", &node_table.deleted, OBJECT(&node_table) },
		{ "buckets-huge", &node_table.buckets, INTEGER(1U << 31) },
		{ "index-huge", entry - 1, INTEGER(V8_CAPACITY) },
		{ "index-negative", entry - 1, INTEGER(-2ULL) },
		{ "index-odd", entry - 1, INTEGER(2) | 1 },
		{ "index-object", entry - 1, OBJECT(node_map) },
		{ "cycle", entry - 1, INTEGER(0) },
		{ "tagged-record", &node_value[4], OBJECT(&node_table) },
		{ "null-record", &node_value[4], 0 },
		{ "unmapped-slot", &node.slot, unmapped },
		{ "unmapped-handle", &node.handle, kernel },
		{ "unmapped-context", &node_slot, unmapped },
		{ "unmapped-type", node_context, unmapped },
		{ "unmapped-table", &node_context[3], kernel },
		{ "unmapped-value", entry + 1, unmapped },
		{ "unmapped-record", &node_value[4], unmapped - 1 },
		{ "kernel-record", &node_value[4], kernel - 1 },
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (!strcmp(state, words[i].state)) {
			*words[i].at = words[i].word;
			return 1;
		}
	if (!strncmp(state, "moved-", 6)) {
		int times = strncmp(state, "moved-twice", 11) ? 1 : 2;
		const char *what = strrchr(state, '-') + 1;

		if (!strcmp(what, "context"))
			node_move(node_context, sizeof(node_context), times);
		else if (!strcmp(what, "table"))
			node_move(&node_table, sizeof(node_table), times);
		else if (!strcmp(what, "value"))
			node_move(node_value, sizeof(node_value), times);
		else
			return 0;
	} else if (!strcmp(state, "field-other"))
		node.field = 0x18;
	else if (!strcmp(state, "field-untold"))
		node.field = 0;
	else if (!strcmp(state, "buckets-3")) { /* as long as such a table would be */
		node_table.buckets = INTEGER(3);
		node_table.length = INTEGER(3 + 3 + 3 * 6);
	} else if (!strcmp(state, "chain-64"))
		node_chain(64);
	else if (!strcmp(state, "chain-65"))
		node_chain(65);
	else if (!strcmp(state, "chain-64-absent")) {
		node_chain(64);
		node_handle = OBJECT(node_map);
	} else if (!strcmp(state, "empty")) {
		node_table.buckets = 0;
		node_table.length = INTEGER(3);
	} else
		return 0;
	return 1;
}

#endif
