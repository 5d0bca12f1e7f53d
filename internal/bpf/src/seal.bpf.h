/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What an element of a hash map says of its key is sealed. Once an element is replaced or deleted, its memory may be
 * another key's at once, while it is still looked at here, and the first key's again after that. So whatever is read
 * is copied, and counts only with the seal of the copy: then it was set for this key, and in one piece. seal.go makes
 * the same ones.
 */
#ifndef CUSTOM_LABELS_SEAL_H
#define CUSTOM_LABELS_SEAL_H

#include "maps.bpf.h"

/* Copies an element. Without the barrier the compiler might go on to read from where the copy came from. */
#define copy_element(to, from)                                                                                         \
	({                                                                                                             \
		__builtin_memcpy((to), (from), sizeof(*(to)));                                                         \
		asm volatile("" ::: "memory");                                                                         \
	})

/* What cookies and seals are made with. */
static __always_inline __u64 mix(__u64 hash, __u64 word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
	return hash ^ hash >> 32;
}

/* Goes on with the words of a struct. A seal begins with 0 and its key. */
static __always_inline __u64 seal(__u64 hash, const void *of, __u32 bytes)
{
	const __u64 *words = of;

#pragma unroll
	for (__u32 i = 0; i < bytes / sizeof(*words); i++)
		hash = mix(hash, words[i]);
	return hash;
}

/* The seal of a struct that ends with it. */
#define seal_of(element, key) seal(seal(0, key, sizeof(*(key))), element, offsetof(typeof(*(element)), seal))

static __always_inline __u64 sources_seal(__u64 key, const struct label_sources *sources)
{
	key = seal(key, sources, offsetof(struct label_sources, seal));
	for (__u32 i = 0; i < MAX_LABEL_SOURCES && i < sources->count; i++)
		key = seal(key, &sources->source[i], sizeof(sources->source[i]));
	return key;
}

static __always_inline __u64 runtime_seal(__u64 key, const struct runtime_process *runtime)
{
	key = mix(key, runtime->kind);
	switch (runtime->kind) {
	case RUNTIME_CPYTHON:
		return seal(key, &runtime->python, sizeof(runtime->python));
	case RUNTIME_HOTSPOT:
		return seal(key, &runtime->hotspot, sizeof(runtime->hotspot));
	case RUNTIME_V8:
		return seal(key, &runtime->v8, sizeof(runtime->v8));
	}
	return key;
}

/* Whether what was read of a process's runtime, a copy of the struct of its kind, is what was sealed for both. */
static __always_inline bool sealed_runtime(const struct process_id *id, __u64 sealed, __u32 kind, const void *of,
					   __u32 bytes)
{
	return sealed == seal(mix(seal(0, id, sizeof(*id)), kind), of, bytes);
}

/*
 * Whether the process that the record is of has the runtime of a kind: then to is a copy of the member of struct
 * runtime_process that tells of it.
 */
#define find_runtime(s, kind, member, to)                                                                              \
	({                                                                                                             \
		/* on the stack: Linux 6.1 takes a key from nowhere else here */                                       \
		struct process_id id_ = (s)->header.process;                                                           \
		struct runtime_process *known_ = bpf_map_lookup_elem(&runtimes, &id_);                                 \
		__u64 sealed_ = 0;                                                                                     \
                                                                                                                       \
		if (known_) {                                                                                          \
			sealed_ = known_->seal;                                                                        \
			copy_element(to, &known_->member);                                                             \
		}                                                                                                      \
		known_ &&sealed_runtime(&id_, sealed_, kind, to, sizeof(*(to)));                                       \
	})

#endif
