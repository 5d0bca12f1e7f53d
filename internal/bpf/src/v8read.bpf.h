/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What the walk along frames of V8 reads in its heap: objects, and the Code that an instruction is in.
 */
#ifndef CUSTOM_LABELS_V8READ_H
#define CUSTOM_LABELS_V8READ_H

#include "seal.bpf.h"
#include "nodejs.bpf.h"

/* Code begins at multiples of this: kCodeAlignment, or a divisor of it. */
#if defined(__TARGET_ARCH_x86)
#define V8_CODE_ALIGNMENT 64
#else
#define V8_CODE_ALIGNMENT 32
#endif

#define MAX_V8_CODE_BYTES 131072 /* that a search for generated code goes through */
#define MAX_V8_SEARCH_READS (2 * MAX_V8_CODE_BYTES / V8_SEARCH_BYTES)
#define MAX_V8_STACK_READS (8 * MAX_V8_SEARCH_READS) /* of the searches of one stack */
#define V8_SEARCH_STEPS (V8_SEARCH_BYTES / V8_CODE_ALIGNMENT)
#define V8_KIND_MASK 15
#define V8_SCRIPT_SOURCE 8
#define V8_SCRIPT_ID 64
#define V8_STRING_LENGTH 12
#define V8_WRAPPED 8 /* SharedFunctionInfoWrapper.shared_info */
#define V8_CODE_BYTES 64
#define V8_STREAM_WORDS 16 /* bytes of an InstructionStream: its map, its Code */
#define V8_SHARED_BYTES 72
#define V8_FUNCTION_BYTES 40
#define V8_SCRIPT_BYTES (V8_SCRIPT_ID + 8)

_Static_assert((V8_OBJECT_BYTES & (V8_OBJECT_BYTES - 1)) == 0, "a power of 2");
_Static_assert(V8_SHARED_BYTES <= V8_OBJECT_BYTES && V8_CODE_BYTES <= V8_OBJECT_BYTES, "they fit");
_Static_assert((V8_KNOWN_CODES & (V8_KNOWN_CODES - 1)) == 0, "a power of 2");

static __always_inline __u64 v8_word(const struct v8_walk *v, __u64 offset)
{
	barrier_var(offset);
	return *(__u64 *)&v->object[offset & (V8_OBJECT_BYTES - 8)];
}

static __always_inline __u32 v8_half(const struct v8_walk *v, __u64 offset)
{
	barrier_var(offset);
	return *(__u32 *)&v->object[offset & (V8_OBJECT_BYTES - 4)];
}

/*
 * Whether what has a map is of a kind. A map that was looked at holds for later stacks of the process: those of all
 * kinds but JSFunctions are roots of V8's, which last as long as it does, and those of JSFunctions as long as their
 * context.
 */
static __noinline bool v8_is(struct v8_walk *v, __u64 map, __u32 kind, __u32 first, __u32 last)
{
	__u16 type;

	if (!v || !v8_is_object(map))
		return false;
	if (kind == V8_FUNCTION)
		kind += mix(0, map) >> 62;
	barrier_var(kind);
	if (kind >= V8_MAPS)
		return false;
	if (v->maps[kind] == map)
		return true;
	if (read_user(&type, map - V8_TAG + V8_MAP_INSTANCE_TYPE) || type < first || type > last)
		return false;
	v->maps[kind] = map;
	return true;
}

/* Reads the begin of the object at *object, a pointer, which becomes its address, into v->object. */
static __noinline bool v8_load(struct v8_walk *v, __u64 *object, const __u32 bytes)
{
	__u64 moved;

	if (!v || !object || bytes > V8_OBJECT_BYTES || !v8_is_object(*object))
		return false;
	*object -= V8_TAG;
	if (bpf_probe_read_user(v->object, bytes, (const void *)*object))
		return false;
	if (v8_moved(v8_word(v, 0), &moved)) {
		*object = moved;
		return !bpf_probe_read_user(v->object, bytes, (const void *)moved);
	}
	return true;
}

/* The same; false as well: it is of another kind. */
static __always_inline bool v8_load_kind(struct v8_walk *v, __u64 *object, const __u32 bytes, __u32 kind, __u16 type)
{
	return v8_load(v, object, bytes) && v8_is(v, v8_word(v, 0), kind, type, type);
}

/*
 * The function at hand: its SharedFunctionInfo, which is set last, and what is hashed of it. Go's heap.readShared does
 * the same.
 */
static __noinline bool v8_shared(struct v8_walk *v, __u64 shared)
{
	__u64 script, name, builtin, source;
	struct v8_function *f;
	__u32 literal;

	if (!v || !v8_load_kind(v, &shared, V8_SHARED_BYTES, V8_SHARED, v->of.shared_type))
		return false;
	f = &v->at;
	shared += V8_TAG;
	f->data = v8_word(v, v->of.shared_data);
	name = v8_word(v, v->of.shared_name);
	builtin = v8_word(v, v->of.shared_builtin);
	script = v8_word(v, v->of.shared_script);
	literal = v8_half(v, v->of.shared_literal);
	if (script != v->last_script) {
		__u64 at = script;

		v->last_script = 0;
		v->script_id = 0;
		if (v8_load_kind(v, &at, V8_SCRIPT_BYTES, V8_SCRIPT, v->of.script_type)) {
			v->script_id = v8_word(v, V8_SCRIPT_ID);
			source = v8_word(v, V8_SCRIPT_SOURCE);
			if (read_user(&v->source_length, source - V8_TAG + V8_STRING_LENGTH)) {
				v->script_id = 0;
				return false;
			}
		}
		v->last_script = script;
	}
	if (v->script_id) {
		f->hash = mix(shared, v->script_id);
		f->hash = mix(f->hash, literal);
		f->hash = mix(f->hash, v->source_length);
	} else {
		f->hash = mix(mix(shared, name), builtin);
	}
	f->shared = shared;
	return true;
}

static __always_inline bool v8_is_stream(struct v8_walk *v, __u64 map)
{
	return v8_is(v, map, V8_STREAM, v->of.stream_type, v->of.stream_type);
}

/* Whether a Code at an address holds v->pc; it is the last one that was found then. */
static __always_inline bool v8_holds(struct v8_walk *v, __u64 code)
{
	__u64 start;
	__u32 size;

	if (!v8_load_kind(v, &code, V8_CODE_BYTES, V8_CODE, v->of.code_type))
		return false;
	start = v8_word(v, v->of.code_start);
	size = v8_half(v, v->of.code_size);
	if (v->pc - start >= size)
		return false;
	v->in.code = code + V8_TAG;
	v->in.start = start;
	v->in.bytes = size;
	v->in.kind = v8_half(v, v->of.code_flags) & V8_KIND_MASK;
	v->deopt = v8_word(v, v->of.code_deopt);
	return true;
}

/*
 * bpf_loop callback: looks for the InstructionStream that begins last before v->pc, in a piece of one page. Its first
 * words are its map and its Code.
 */
static long v8_search(__u64 i, struct walk_context *ctx)
{
	struct scratch *s = bpf_map_lookup_elem(&scratches, &ctx->scratch);
	__u64 steps, bytes, map, code, at = 0;
	struct v8_walk *v;

	if (!s || !s->v8.search_left)
		return 1;
	v = &s->v8;
	v->search_left--;
	steps = (v->search_at & (MIN_PAGE_BYTES - 1)) / V8_CODE_ALIGNMENT;
	if (steps > V8_SEARCH_STEPS - 1)
		steps = V8_SEARCH_STEPS - 1;
	bytes = steps * V8_CODE_ALIGNMENT + V8_STREAM_WORDS;
	barrier_var(bytes);
	if (bytes > V8_SEARCH_BYTES)
		return 1;
	if (bpf_probe_read_user(v->search, bytes, (const void *)(v->search_at - steps * V8_CODE_ALIGNMENT)))
		return 1; /* before the first page */
	for (__u32 n = 0; n < V8_SEARCH_STEPS; n++) {
		at = steps * V8_CODE_ALIGNMENT;
		barrier_var(at);
		at &= V8_SEARCH_BYTES - V8_CODE_ALIGNMENT;
		map = *(__u64 *)&v->search[at];
		code = *(__u64 *)&v->search[at + 8];
		v->search_at -= V8_CODE_ALIGNMENT;
		if (v8_is_object(map) && v8_is_object(code) && map < USER_ADDRESS_END && code < USER_ADDRESS_END &&
		    (!v->stream_map || map == v->stream_map))
			goto found;
		if (!steps)
			break;
		steps--;
	}
	return v->search_at < v->search_end;
found:
	if (!v->stream_map && !v8_is_stream(v, map))
		return 0;
	v->stream_map = map;
	v->found = v8_holds(v, code);
	return 1;
}

/* Finds the Code that v->pc is in. */
static __always_inline bool v8_find_code(struct v8_walk *v, __u32 scratch)
{
	struct walk_context ctx = { .scratch = scratch };

	if (v->in.code && v->pc - v->in.start < v->in.bytes)
		return true;
	v->in.code = 0;
	v->found = 0;
	if (v->pc < MAX_V8_CODE_BYTES)
		return false;
	v->search_at = (v->pc & ~(__u64)(V8_CODE_ALIGNMENT - 1)) - v->of.stream_header;
	v->search_end = v->search_at - MAX_V8_CODE_BYTES;
	bpf_loop(MAX_V8_SEARCH_READS, v8_search, &ctx, 0);
	if (!v->found && !v->search_left)
		v->result = COUNTER_RUNTIME_CUT;
	return v->found;
}

/* The SharedFunctionInfo that the Code at hand, of an optimizing compiler, was made of; 0 if there is none. */
static __noinline __u64 v8_code_shared(struct v8_walk *v)
{
	__u64 list, shared, at;

	if (!v || v->in.kind <= v->of.baseline)
		return 0;
	list = v->deopt;
	if (!v8_load_kind(v, &list, 8, V8_LIST, v->of.list_type) || read_user(&shared, list + v->of.deopt_shared))
		return 0;
	if (!v->of.shared_wrapped)
		return shared;
	at = shared;
	return v8_load(v, &at, V8_WRAPPED + 8) ? v8_word(v, V8_WRAPPED) : 0;
}

/*
 * Whether what another stack had, maybe one of another process, is a Code here that holds v->pc, and has the
 * InstructionStream there that leads back to it: so a search would find it, too.
 */
static __always_inline bool v8_still(struct v8_walk *v, struct v8_code *known)
{
	__u64 stream[2], of;

	if (v8_holds(v, known->code) && !read_user(&stream, v->in.start - v->of.stream_header) &&
	    stream[1] == known->code && v8_is_stream(v, stream[0])) {
		/* The frame tells whose it is, too: where both agree, it needs not be read. */
		of = known->of == v->at.shared ? known->of : v8_code_shared(v);
		if (of != 0) {
			v->in.of = of;
			v->in.stack = v->stack;
			*known = v->in;
			return true;
		}
	}
	v->in.code = 0;
	known->bytes = 0;
	return false;
}

/*
 * Whether v->pc is in a Code that is known, which is at hand then. A global function: the verifier goes through it
 * once, whatever leads here.
 */
__noinline int v8_known_code(__u32 scratch)
{
	struct scratch *s = bpf_map_lookup_elem(&scratches, &scratch);
	struct v8_walk *v;

	if (!s)
		return false;
	v = &s->v8;
	for (__u32 i = 0; i < V8_KNOWN_CODES; i++) {
		struct v8_code *known = &v->codes[i];

		if (v->pc - known->start < known->bytes && (known->stack == v->stack || v8_still(v, known))) {
			v->in = *known;
			return true;
		}
	}
	return false;
}

/* Finds the Code that v->pc is in, and whose it is. */
static __always_inline bool v8_code_at(struct v8_walk *v, __u32 scratch)
{
	if (v8_known_code(scratch))
		return true;
	v->in.of = 0;
	/* Only the function tells of its code of the baseline compiler. */
	if (v->at.shared && v8_holds(v, v->at.data) && v->in.kind == v->of.baseline)
		v->in.of = v->at.shared;
	else if (v8_find_code(v, scratch))
		v->in.of = v8_code_shared(v);
	if (!v->in.of)
		return false;
	v->in.stack = v->stack;
	v->codes[v->codes_seen++ & (V8_KNOWN_CODES - 1)] = v->in;
	return true;
}

#endif
