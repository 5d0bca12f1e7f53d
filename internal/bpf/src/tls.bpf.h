/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* From the thread pointer to the address of a thread-local variable; the rules of package tlsresolve. */
#ifndef CUSTOM_LABELS_TLS_H
#define CUSTOM_LABELS_TLS_H

#include "arch.bpf.h"
#include "record.h"

#define read_user(dst, addr) bpf_probe_read_user(dst, sizeof(*(dst)), (const void *)POINTED_AT(addr))

/* glibc, sysdeps/generic/dl-dtv.h: union dtv { size_t counter; struct { void *val; void *to_free; }; } */
struct dtv_glibc {
	__u64 val;
	__u64 to_free;
};
#define DTV_GLIBC_UNALLOCATED ((__u64) - 1)

/*
 * address = dtv[module].val + offset, provided that
 * module <= dtv[-1].counter and generation <= dtv[0].counter.
 */
static __always_inline enum outcome dtv_glibc_block(__u64 tp, const struct label_source *src, __u64 *block)
{
	struct dtv_glibc head[2]; /* dtv[-1], dtv[0] */
	__u64 dtv;

	if (read_user(&dtv, tp + DTV_POINTER_OFFSET_GLIBC))
		return OUTCOME_FAULT;
	if (!dtv)
		return OUTCOME_NOT_ALLOCATED;
	if (read_user(&head, dtv - sizeof(struct dtv_glibc)))
		return OUTCOME_FAULT;
	if (src->module > head[0].val)
		return OUTCOME_NOT_ALLOCATED;
	if (src->generation > head[1].val)
		return OUTCOME_STALE_MODULE;
	if (read_user(block, dtv + src->module * sizeof(struct dtv_glibc)))
		return OUTCOME_FAULT;
	if (*block == DTV_GLIBC_UNALLOCATED)
		*block = 0;
	return OUTCOME_PRESENT;
}

/* musl, src/internal/pthread_impl.h: uintptr_t *dtv, dtv[0] = number of modules. */
static __always_inline enum outcome dtv_musl_block(__u64 tp, const struct label_source *src, __u64 *block)
{
	__u64 dtv, modules;

	if (read_user(&dtv, tp + DTV_POINTER_OFFSET_MUSL))
		return OUTCOME_FAULT;
	if (!dtv)
		return OUTCOME_NOT_ALLOCATED;
	if (read_user(&modules, dtv))
		return OUTCOME_FAULT;
	if (src->module > modules)
		return OUTCOME_NOT_ALLOCATED;
	if (read_user(block, dtv + src->module * sizeof(__u64)))
		return OUTCOME_FAULT;
	return OUTCOME_PRESENT;
}

/* OUTCOME_PRESENT and *addr, or the reason why this thread has no such variable. */
static __always_inline enum outcome tls_address(__u64 tp, const struct label_source *src, __u64 *addr)
{
	enum outcome out;
	__u64 block = 0;

	if (src->kind == TLS_KIND_STATIC) {
		*addr = tp + src->offset;
		return OUTCOME_PRESENT;
	}
	if (!src->module) /* dtv[0] is the generation, not a block */
		return OUTCOME_INVALID;
	if (src->kind == TLS_KIND_DTV_GLIBC)
		out = dtv_glibc_block(tp, src, &block);
	else if (src->kind == TLS_KIND_DTV_MUSL)
		out = dtv_musl_block(tp, src, &block);
	else
		out = OUTCOME_INVALID;
	if (out != OUTCOME_PRESENT)
		return out;
	if (!block)
		return OUTCOME_NOT_ALLOCATED;
	*addr = block + src->offset;
	return OUTCOME_PRESENT;
}

#endif
