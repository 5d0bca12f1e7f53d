/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What is read of HotSpot's code heaps and methods: the CodeBlob around an address, by the
 * segment map of its heap, and what a Method has that tells whether it is still the same.
 */
#ifndef CUSTOM_LABELS_HOTSPOTREAD_H
#define CUSTOM_LABELS_HOTSPOTREAD_H

#include "seal.bpf.h"

#ifndef OLDER_KERNELS

#define HOTSPOT_HOPS 64				     /* from a segment to the begin of its block: 16 KiB each */
#define HOTSPOT_FREE 0xff			     /* a segment that belongs to no block */
#define HOTSPOT_NMETHOD 0x00646f6874656d6eULL	     /* "nmethod" */
#define HOTSPOT_ADAPTER 0x204932432f433249ULL	     /* "I2C/C2I " */
#define HOTSPOT_NATIVE_NMETHOD 0x6e2065766974616eULL /* "native n" */
#define HOTSPOT_STUBS 0x74756f5262757453ULL	     /* "StubRout" */
#define HOTSPOT_CONTINUATION 0x61756e69746e6f63ULL   /* "continua", behind "StubRoutines (" */
#define HOTSPOT_STUBS_BYTES 14

static __always_inline __u64 blob_word(const struct hotspot_walk *h, __u64 offset)
{
	barrier_var(offset);
	return *(__u64 *)&h->blob_bytes[offset & 0x1ff];
}

static __always_inline __u32 blob_half(const struct hotspot_walk *h, __u64 offset)
{
	barrier_var(offset);
	return *(__u32 *)&h->blob_bytes[offset & 0x1ff];
}

static __always_inline __u16 const_short(const struct hotspot_walk *h, __u64 offset)
{
	barrier_var(offset);
	return *(__u16 *)&h->const_bytes[offset & (HOTSPOT_CONST_BYTES - 1)];
}

static __always_inline __u64 const_word(const struct hotspot_walk *h, __u64 offset)
{
	barrier_var(offset);
	return *(__u64 *)&h->const_bytes[offset & (HOTSPOT_CONST_BYTES - 1)];
}

/* The block that holds h->pc, 0 if there is none. */
static __always_inline __u64 hotspot_block(const struct hotspot_walk *h)
{
	__u64 start = 0, segments = 0, segment;
	__u32 shift = h->process.segment_shift & 31;

	for (int i = 0; i < MAX_HOTSPOT_HEAPS; i++) {
		const struct hotspot_heap *heap = &h->process.heaps[i];

		if (h->pc >= heap->start && h->pc < heap->limit) {
			start = heap->start;
			segments = heap->segments;
		}
	}
	if (!segments)
		return 0;
	segment = (h->pc - start) >> shift;
	for (int i = 0; i < HOTSPOT_HOPS; i++) {
		__u8 back;

		if (bpf_probe_read_user(&back, sizeof(back), (const void *)(segments + segment)))
			return 0;
		if (!back)
			return start + (segment << shift);
		if (back == HOTSPOT_FREE || back > segment)
			return 0;
		segment -= back;
	}
	return 0;
}

/*
 * Reads the begin of a CodeBlob. Behind one that is smaller may be what its code heap has not taken into use, which
 * begins with a page and cannot be read: there are zeros instead.
 */
static __always_inline bool read_blob_bytes(struct hotspot_walk *h, __u64 blob)
{
	__u64 left = MIN_PAGE_BYTES - (blob & (MIN_PAGE_BYTES - 1));

	if (!bpf_probe_read_user(h->blob_bytes, HOTSPOT_BLOB_BYTES, (const void *)blob))
		return true;
	/* What cannot be read is zeros now. */
	barrier_var(left);
	return left < HOTSPOT_BLOB_BYTES && !bpf_probe_read_user(h->blob_bytes, left, (const void *)blob) &&
	       blob_half(h, h->process.blob_size) <= left;
}

/* Reads the CodeBlob that holds h->pc; h->blob is 0 if there is none. */
__noinline int read_hotspot_blob(__u32 scratch)
{
	struct scratch *s = bpf_map_lookup_elem(&scratches, &scratch);
	struct hotspot_process *p;
	struct hotspot_walk *h;
	__u64 block, blob, name, letters, hash;

	if (!s)
		return 0;
	h = &s->hotspot;
	p = &h->process;
	if (h->blob && h->pc >= h->blob && h->pc < h->limit)
		return 0;
	h->blob = 0;
	block = hotspot_block(h);
	if (!block)
		return 0;
	blob = block + p->block_bytes;
	if (!read_blob_bytes(h, blob))
		return 0;
	h->limit = blob + blob_half(h, p->blob_size);
	if (h->pc < blob || h->pc >= h->limit)
		return 0;
	name = blob_word(h, p->blob_name);
	if (!name || name != h->name) {
		h->name = 0;
		if (bpf_probe_read_user(&letters, sizeof(letters), (const void *)name))
			return 0;
		h->nmethod = letters == HOTSPOT_NMETHOD || letters == HOTSPOT_NATIVE_NMETHOD;
		h->adapter = letters == HOTSPOT_ADAPTER;
		h->continuation = letters == HOTSPOT_STUBS && !read_user(&letters, name + HOTSPOT_STUBS_BYTES) &&
				  letters == HOTSPOT_CONTINUATION;
		h->name = name;
	}
	h->frame_bytes = (__u64)blob_half(h, p->blob_frame_size) * 8;
	hash = mix(blob, name);
	if (p->relative) {
		h->code = blob + blob_half(h, p->blob_code);
		h->complete = (__s16)blob_half(h, p->blob_frame_complete);
		h->entry = h->code + (__u16)blob_half(h, p->verified_entry);
		h->deopt = blob + blob_half(h, p->deopt_handler);
		h->deopt_mh = blob + blob_half(h, p->deopt_mh_handler);
	} else {
		h->code = blob_word(h, p->blob_code);
		h->complete = (__s32)blob_half(h, p->blob_frame_complete);
		h->entry = blob_word(h, p->verified_entry);
		h->deopt = blob_word(h, p->deopt_handler);
		h->deopt_mh = blob_word(h, p->deopt_mh_handler);
	}
	if (h->nmethod) {
		hash = mix(hash, blob_half(h, p->compile_id));
		hash = mix(hash, blob_word(h, p->method));
	} else {
		hash = mix(hash, blob_half(h, p->blob_size));
	}
	h->orig_pc = blob_half(h, p->orig_pc);
	h->cookie = hash >> 32;
	h->blob = blob;
	return 0;
}

/* Reads the Method at h->wanted; h->method is 0 if that makes no sense. */
__noinline int read_hotspot_method(__u32 scratch)
{
	struct scratch *s = bpf_map_lookup_elem(&scratches, &scratch);
	__u64 method, constant, constants, klass, symbol, word, hash;
	struct hotspot_process *p;
	struct hotspot_walk *h;

	if (!s)
		return 0;
	h = &s->hotspot;
	p = &h->process;
	method = h->wanted;
	if (method == h->method)
		return 0;
	h->method = 0;
	if (!method || method & 7 || read_user(&constant, method + p->const_method))
		return 0;
	if (bpf_probe_read_user(h->const_bytes, HOTSPOT_CONST_BYTES, (const void *)constant))
		return 0;
	constants = const_word(h, p->constants);
	if (read_user(&klass, constants + p->pool_holder) || read_user(&symbol, klass + p->klass_name) ||
	    read_user(&word, symbol))
		return 0;
	h->bytecodes = constant + p->const_bytes;
	h->code_size = const_short(h, p->code_size);
	hash = mix(method, constant);
	hash = mix(hash, constants);
	hash = mix(hash, h->code_size | (__u64)const_short(h, p->name_index) << 16 |
				 (__u64)const_short(h, p->signature_index) << 32 |
				 (__u64)const_short(h, p->idnum) << 48);
	hash = mix(hash, symbol);
	hash = mix(hash, word & ~0xffffULL); /* but for the number of references */
	h->method_cookie = hash >> 32;
	h->method = method;
	return 0;
}

#endif
#endif
