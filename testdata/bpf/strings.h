/*
 * Labels of many lengths, where a reader that reads more at once than one string comes to an end: states of target.c.
 * Byte j of string n is 'a' + (n + j) % 26; of label i the key is string 2 i and the value string 2 i + 1.
 */
#ifndef TARGET_STRINGS_H
#define TARGET_STRINGS_H

#define TOGETHER 8 /* of the lengths */
#define MAX_KEY 256

static const size_t lengths[] = { 1, 7, 8, 9, 39, 40, 41, 47, 63, 64, 65, 256, 511, 512, 513, 1024 };
#define LENGTHS ((int)(sizeof(lengths) / sizeof(lengths[0])))

/* Some pages, and one behind them that is not mapped. */
static char *pages(int n)
{
	size_t page = sysconf(_SC_PAGESIZE);
	char *p = mmap(NULL, (n + 1) * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	munmap(p + n * page, page);
	memset(p, '.', n * page);
	return p;
}

/* The last n bytes before a page that is not mapped. */
static void *end_of_memory(size_t n)
{
	return memset(pages(1) + sysconf(_SC_PAGESIZE) - n, 0, n);
}

/* n bytes, some of which are in one page, the others in the next. */
static void *across(size_t n)
{
	return memset(pages(2) + sysconf(_SC_PAGESIZE) - (n + 1) / 2, 0, n);
}

static char *fill_string(char *at, int n, size_t bytes)
{
	for (size_t j = 0; j < bytes; j++)
		at[j] = 'a' + (n + j) % 26;
	return at;
}

static size_t key_length(int i)
{
	return lengths[i] < MAX_KEY ? lengths[i] : MAX_KEY;
}

/* Has the variable and the set say where a set is. */
static void publish_at(struct set *at)
{
	*at = set;
	v1 = at;
}

/* Each string, the slots and the set in a place of its own kind. */
static void each_at(void *(*place)(size_t bytes))
{
	const size_t bytes = LENGTHS * sizeof(slots[0]);

	for (int i = 0; i < LENGTHS; i++)
		put(i, fill_string(place(key_length(i)), 2 * i, key_length(i)), key_length(i),
		    fill_string(place(lengths[i]), 2 * i + 1, lengths[i]), lengths[i]);
	set.storage = memcpy(place(bytes), slots, bytes);
	publish_at(place(sizeof(set)));
}

/* A set, its slots and the strings, one behind the other. */
static void all_together(void)
{
	char *at = pages(1) + 64;
	struct set *first = (struct set *)at;
	struct label *storage = (struct label *)(first + 1);

	at = (char *)(storage + TOGETHER);
	for (int i = 0; i < TOGETHER; i++) {
		char *key = fill_string(at, 2 * i, lengths[i]);
		char *value = fill_string(key + lengths[i], 2 * i + 1, lengths[i]);

		put(i, key, lengths[i], value, lengths[i]);
		at = value + lengths[i];
	}
	set.storage = memcpy(storage, slots, TOGETHER * sizeof(slots[0]));
	publish_at(first);
}

/* Keys one behind the other, and values elsewhere. */
static void each_kind_together(void)
{
	char *key = pages(1), *value = pages(1);

	for (int i = 0; i < LENGTHS; i++) {
		put(i, fill_string(key, 2 * i, key_length(i)), key_length(i), fill_string(value, 2 * i + 1, lengths[i]),
		    lengths[i]);
		key += key_length(i);
		value += lengths[i];
	}
}

static volatile char *changing; /* a value, in turn every letter; NULL: none */

static void value_changes(void)
{
	changing = pages(1);
	put(0, "k", 1, (char *)changing, 1);
}

static void change(unsigned long times)
{
	if (changing)
		*changing = 'a' + (times >> 20) % 26;
}

/* Slots of which a value is a part: the others are holes, whose lengths and values may be anything. */
static void value_in_slots(void)
{
	char *value = (char *)slots + 15400; /* where a hole has that its key is none */

	memset(slots, 0, sizeof(slots));
	put(0, "k", 1, value, 41);
	fill_string(value + 8, 0, 24);
	fill_string(value + 40, 24, 1);
	set.count = 512;
}

/* A map of Go's, of 20 labels, whose strings are in the page of a set of v1. */
static void map_behind_set(void)
{
	char *at = pages(1), *text = at + 512;

	put_many(1);
	set.storage = memcpy(at, slots, sizeof(slots[0]));
	go_fill("map-20-in-2");
	for (int i = 0; i < 20; i++) {
		struct go_bucket *b = &go_buckets[i % 4];
		struct go_str *strings[] = { &b->keys[i / 4], &b->values[i / 4] };

		for (int j = 0; j < 2; j++) {
			strings[j]->buf = memcpy(text, strings[j]->buf, strings[j]->len);
			text += strings[j]->len;
		}
	}
}

/* Ten labels, with each string in a page of its own. */
static void each_alone(void)
{
	put_many(10);
	for (int i = 0; i < 10; i++) {
		slots[i].key.buf = memcpy(pages(1), slots[i].key.buf, slots[i].key.len);
		slots[i].value.buf = memcpy(pages(1), slots[i].value.buf, slots[i].value.len);
	}
}

/* Slots that begin near their set, and end further away. */
static void slots_behind(void)
{
	struct set *first = (struct set *)(pages(1) + 64);

	put_many(40);
	set.storage = memcpy(first + 1, slots, 40 * sizeof(slots[0]));
	publish_at(first);
}

/* state is without the prefix "strings-". */
static int strings_fill(const char *state)
{
	if (!strcmp(state, "together"))
		all_together();
	else if (!strcmp(state, "by-kind"))
		each_kind_together();
	else if (!strcmp(state, "changing"))
		value_changes();
	else if (!strcmp(state, "map-behind"))
		map_behind_set();
	else if (!strcmp(state, "in-slots"))
		value_in_slots();
	else if (!strcmp(state, "alone"))
		each_alone();
	else if (!strcmp(state, "slots-behind"))
		slots_behind();
	else if (!strcmp(state, "at-end"))
		each_at(end_of_memory);
	else if (!strcmp(state, "across"))
		each_at(across);
	else
		return 0;
	return 1;
}

#endif
