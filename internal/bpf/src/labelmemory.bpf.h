/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The target's memory that labels are read from. What was allocated one after the other mostly lies together, and a
 * read costs more than the bytes in it: so what follows is read with what is asked for, within its page, which can be
 * read if its first byte can. What does not lie so is read for itself.
 */
#ifndef CUSTOM_LABELS_LABELMEMORY_H
#define CUSTOM_LABELS_LABELMEMORY_H

#include "maps.bpf.h"
#include "tls.bpf.h"

/* A string of so many bytes is copied without a loop. */
#define SHORT_STRING_BYTES 40

_Static_assert(SHORT_STRING_BYTES % 8 == 0, "words");

/*
 * Forgets what was read for another sample or source: it may have changed since. Labels of a Go map are collected in
 * the memory of SET_WINDOW, which has to be empty then.
 */
static __always_inline void begin_label_memory(struct scratch *s)
{
	for (__u32 i = 0; i < LABEL_WINDOWS; i++)
		s->label_memory.window[i].bytes = 0;
}

/* Bytes from an address to the end of its page. */
static __always_inline __u64 left_in_page(__u64 addr)
{
	return MIN_PAGE_BYTES - (addr & (MIN_PAGE_BYTES - 1));
}

/* Has the window of keys or that of values begin at an address; true: it has so many bytes. */
__noinline int move_string_window(__u64 addr, __u32 which, __u32 wanted)
{
	struct scratch *s = this_scratch();
	__u64 bytes = left_in_page(addr);
	struct label_window *window;

	if (!s || which >= STRING_WINDOWS)
		return false;
	if (bytes > STRING_WINDOW_BYTES)
		bytes = STRING_WINDOW_BYTES;
	if (wanted > bytes)
		return false;
	window = &s->label_memory.window[which];
	window->bytes = 0;
	barrier_var(bytes);
	if (bytes > STRING_WINDOW_BYTES ||
	    bpf_probe_read_user(s->label_memory.strings[which], bytes, (const void *)addr))
		return false;
	window->start = addr;
	window->bytes = bytes;
	return true;
}

/* The same for the window of a set, which has at least the bytes that are wanted. */
__noinline int move_set_window(__u64 addr, __u32 wanted)
{
	struct scratch *s = this_scratch();
	__u64 bytes = left_in_page(addr);
	struct label_window *window;

	if (!s)
		return false;
	if (bytes > SET_WINDOW_BYTES)
		bytes = SET_WINDOW_BYTES;
	if (bytes < wanted)
		bytes = wanted;
	window = &s->label_memory.window[SET_WINDOW];
	window->bytes = 0;
	barrier_var(bytes);
	if (bytes > sizeof(s->label_memory.slots) ||
	    bpf_probe_read_user(s->label_memory.slots, bytes, (const void *)addr))
		return false;
	window->start = addr;
	window->bytes = bytes;
	return true;
}

/* Whether bytes of the target at an address are in a window; *at is where, from its start. */
static __always_inline bool in_window(const struct scratch *s, enum label_windows which, __u64 addr, __u64 bytes,
				      __u64 *at)
{
	const struct label_window *window = &s->label_memory.window[which];

	*at = addr - window->start;
	return *at < window->bytes && bytes <= window->bytes - *at;
}

/* Where bytes of the target at an address are in the window of a set, which has moved there if it has to; negative:
 * they cannot be read. */
__noinline int in_set_window(__u64 addr, __u32 bytes)
{
	struct scratch *s = this_scratch();
	__u64 at;

	if (!s)
		return -1;
	if (in_window(s, SET_WINDOW, addr, bytes, &at))
		return at;
	return move_set_window(addr, bytes) ? 0 : -1;
}

/* Copies a longer string. from: an offset into label_memory.strings. */
__noinline int copy_words(__u32 to, __u32 from, __u32 bytes)
{
	struct scratch *s = this_scratch();

	if (!s || to > SAMPLE_BODY_BYTES || from > LABEL_MEMORY_BYTES)
		return false;
	for (__u32 i = 0; i < MAX_LABEL_VALUE_BYTES && i < bytes; i += 8)
		*body_word(s, to + i) = *(__u64 *)((void *)s->label_memory.strings + from + i);
	return true;
}

/*
 * Copies a string of the target to scratch.body[to], and may put anything behind it there, up to a multiple of 8 or to
 * SHORT_STRING_BYTES. False: it cannot be read. which: the window of keys or that of values.
 */
static __always_inline bool copy_string(struct scratch *s, __u32 to, enum label_windows which, __u64 addr, __u64 bytes)
{
	__u64 at;

	if (!bytes)
		return true; /* wherever it is */
	addr = POINTED_AT(addr);
	if (in_window(s, SET_WINDOW, addr, bytes, &at)) {
		at += sizeof(s->label_memory.strings);
	} else {
		if (!in_window(s, which, addr, bytes, &at)) {
			if (!move_string_window(addr, which, bytes))
				goto alone;
			at = 0;
		}
		at += which * sizeof(s->label_memory.strings[0]);
	}
	if (unlikely(bytes > SHORT_STRING_BYTES))
		return copy_words(to, at, bytes);
	barrier_var(at);
	barrier_var(to);
	if (at > LABEL_MEMORY_BYTES || to > SAMPLE_BODY_BYTES)
		return false;
	for (__u32 i = 0; i < SHORT_STRING_BYTES; i += 8)
		*body_word(s, to + i) = *(__u64 *)((void *)s->label_memory.strings + at + i);
	return true;

alone:
	barrier_var(to);
	barrier_var(bytes);
	if (to > SAMPLE_BODY_BYTES || bytes > MAX_LABEL_VALUE_BYTES)
		return false;
	return !bpf_probe_read_user(s->body + to, bytes, (const void *)addr);
}

/*
 * Reads two words of a struct of the target's, by their offsets, to label_memory.words; with one read if they lie
 * close together. False: they cannot be read. It takes the memory of the window of keys, which is empty afterwards.
 */
__noinline int read_two(__u64 addr, __u32 first, __u32 second)
{
	__u64 low = first < second ? first : second, at_1 = first - low, at_2 = second - low;
	__u64 bytes = (at_1 > at_2 ? at_1 : at_2) + sizeof(__u64);
	struct scratch *s = this_scratch();
	__u64 *words;

	if (!s)
		return false;
	words = s->label_memory.words;
	s->label_memory.window[KEY_WINDOW].bytes = 0;
	if (bytes > STRING_WINDOW_BYTES)
		return !read_user(&words[0], addr + first) && !read_user(&words[1], addr + second);
	barrier_var(bytes);
	if (bytes > STRING_WINDOW_BYTES ||
	    bpf_probe_read_user(s->label_memory.strings[KEY_WINDOW], bytes, (const void *)POINTED_AT(addr + low)))
		return false;
	barrier_var(at_1);
	barrier_var(at_2);
	if (at_1 > STRING_WINDOW_BYTES || at_2 > STRING_WINDOW_BYTES)
		return false;
	words[0] = *(__u64 *)((void *)s->label_memory.strings + at_1);
	words[1] = *(__u64 *)((void *)s->label_memory.strings + at_2);
	return true;
}

#endif
