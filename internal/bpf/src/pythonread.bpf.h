/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What is read of CPython's memory: frames, threads, and what a code object has that tells
 * whether it is still the same.
 */
#ifndef CUSTOM_LABELS_PYTHONREAD_H
#define CUSTOM_LABELS_PYTHONREAD_H

#include "seal.bpf.h"

#ifndef OLDER_KERNELS

#define PYTHON_STRING_STATE 16 /* offset from the length of a string; between them is its hash */
#define PYTHON_STRING_HEAD 24

static __always_inline __u64 python_frame_word(const struct python_walk *p, __u64 offset)
{
	__u64 at = p->frame_at;

	barrier_var(at);
	barrier_var(offset);
	return *(__u64 *)&p->window[(at & (PYTHON_WINDOW_BYTES - 8)) + (offset & 0x78)];
}

static __always_inline __u8 python_frame_byte(const struct python_walk *p, __u64 offset)
{
	__u64 at = p->frame_at;

	barrier_var(at);
	barrier_var(offset);
	return p->window[(at & (PYTHON_WINDOW_BYTES - 8)) + (offset & 0x7f)];
}

static __always_inline __u64 python_thread_word(const struct python_walk *p, __u64 offset)
{
	barrier_var(offset);
	return *(__u64 *)&p->thread_bytes[offset & (PYTHON_THREAD_BYTES - 8)];
}

static __always_inline __u64 python_code_word(const struct python_walk *p, __u64 offset)
{
	barrier_var(offset);
	return *(__u64 *)&p->code_bytes[offset & (PYTHON_CODE_BYTES - 8)];
}

/*
 * Where an object goes on behind its PyObject, whose last field is the type: PyVarObject.ob_size;
 * PyASCIIObject.length, which hash and state follow.
 */
static __always_inline __u64 python_header_bytes(const struct python_process *of)
{
	return of->object_type + 8;
}

/*
 * Has the window end with a frame: those of its callers mostly lie below. It begins with the page at the earliest: so
 * it can be read if the frame can.
 */
static __always_inline bool read_python_frame(struct python_walk *p, __u64 frame)
{
	__u64 at = frame - p->window_start, bytes;

	if (frame & 7)
		return false;
	if (at >= p->window_bytes || at + PYTHON_FRAME_BYTES > p->window_bytes) {
		at = frame & (MIN_PAGE_BYTES - 1);
		if (at > PYTHON_WINDOW_BYTES - PYTHON_FRAME_BYTES)
			at = PYTHON_WINDOW_BYTES - PYTHON_FRAME_BYTES;
		bytes = at + PYTHON_FRAME_BYTES;
		p->window_bytes = 0;
		barrier_var(bytes);
		if (bytes > PYTHON_WINDOW_BYTES || bpf_probe_read_user(p->window, bytes, (const void *)(frame - at)))
			return false;
		p->window_start = frame - at;
		p->window_bytes = bytes;
	}
	p->frame_at = at;
	return true;
}

/*
 * Whether the state of a string says that it is ASCII. Its bits are, from the lowest: 2 of
 * interned, which later versions have as 16; 3 of kind, which is not 0; compact; ASCII.
 */
static __always_inline bool python_ascii(__u32 state)
{
	return (state & 0xfffc ? state >> 6 : state >> 20) & 1;
}

/* The bytes of a character of a string with that state. */
static __always_inline __u32 python_char_bytes(__u32 state)
{
	return (state & 0xfffc ? state >> 2 : state >> 16) & 7;
}

/* Goes on with n bytes of text, at most PYTHON_NAME_BYTES. Mostly they have been read with the head of the string. */
static __always_inline bool python_hash(struct python_walk *p, __u64 *hash, __u64 text, __u64 n)
{
	__u64 at = text - p->string_start;

	barrier_var(n);
	if (n > PYTHON_NAME_BYTES)
		return false;
	if (at > PYTHON_STRING_BYTES || at + n > p->string_bytes) {
		at = PYTHON_STRING_BYTES;
		if (bpf_probe_read_user(&p->string[PYTHON_STRING_BYTES], n, (const void *)text))
			return false;
	}
	barrier_var(at);
	if (at > PYTHON_STRING_BYTES)
		return false;
	for (__u32 i = 0; i < PYTHON_NAME_BYTES; i += 8) {
		__u64 word = i < n ? *(__u64 *)&p->string[at + i] : 0;

		if (i < n && n < i + 8)
			word &= (1ULL << (n & 7) * 8) - 1;
		*hash = mix(*hash, word);
	}
	return true;
}

/* Reads a string: its head, and as much of what follows as fits, up to the end of the page. */
static __always_inline bool read_python_string(struct python_walk *p, __u64 addr)
{
	__u64 bytes = MIN_PAGE_BYTES - (addr & (MIN_PAGE_BYTES - 1));

	if (bytes < PYTHON_STRING_HEAD)
		bytes = PYTHON_STRING_HEAD; /* it lies across two */
	if (bytes > PYTHON_STRING_BYTES)
		bytes = PYTHON_STRING_BYTES;
	barrier_var(bytes);
	if (bytes > PYTHON_STRING_BYTES || bpf_probe_read_user(p->string, bytes, (const void *)addr))
		return false;
	p->string_start = addr;
	p->string_bytes = bytes;
	return true;
}

/* The code object at an address, and what tells it from another one there: last_code and last_cookie. */
static __always_inline bool read_python_code(struct python_walk *p, __u64 code)
{
	struct python_process *of = &p->of;
	__u64 bytes = of->code_bytes, name, hash, text, length, n;
	__u32 line, state;

	if (code == p->last_code)
		return code != 0;
	p->last_code = 0;
	barrier_var(bytes);
	if (bytes > PYTHON_CODE_BYTES || bpf_probe_read_user(p->code_bytes, bytes, (const void *)code))
		return false;
	if (python_code_word(p, of->object_type) != of->code_type)
		return false;
	name = python_code_word(p, of->code_qualname);
	if (!read_python_string(p, name + python_header_bytes(of)))
		return false;
	length = *(__u64 *)&p->string[0];
	state = *(__u32 *)&p->string[PYTHON_STRING_STATE];
	text = name + (python_ascii(state) ? of->text_offset : of->wide_offset);
	n = length * python_char_bytes(state);
	{
		__u64 offset = of->code_first_line;

		barrier_var(offset);
		line = *(__u32 *)&p->code_bytes[offset & (PYTHON_CODE_BYTES - 4)];
	}
	p->last_units = python_code_word(p, python_header_bytes(of));
	/* _Py_MakeShimCode(): the interpreter's own, between a class and its __init__ (3.12) */
	p->last_shim = !line && python_code_word(p, of->code_filename) == name;
	hash = mix(code, p->last_units);
	hash = mix(hash, line);
	hash = mix(hash, name);
	hash = mix(hash, python_code_word(p, of->code_filename));
	hash = mix(hash, python_code_word(p, of->code_linetable));
	hash = mix(hash, length);
	if (!python_hash(p, &hash, text, n < PYTHON_NAME_BYTES ? n : PYTHON_NAME_BYTES))
		return false;
	if (n > PYTHON_NAME_BYTES && !python_hash(p, &hash, text + n - PYTHON_NAME_BYTES, PYTHON_NAME_BYTES))
		return false;
	p->last_cookie = hash >> 32;
	p->last_code = code;
	return true;
}

#endif
#endif
