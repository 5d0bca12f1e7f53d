/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* From a frame to its caller, by the rule of its row. */
#ifndef CUSTOM_LABELS_RULE_H
#define CUSTOM_LABELS_RULE_H

#include "arch.bpf.h"
#include "regs.bpf.h"
#include "scratch.bpf.h"
#include "window.bpf.h"

/* How far below the CFA a rule of RA_INTERRUPTED has the link register. */
#define INTERRUPTED_LR 16

/* What follows returns OUTCOME_NONE when there is a caller, which is then in w. */

/*
 * The caller of a frame that the kernel made for a signal is what the signal interrupted, all
 * registers known. Neither has called anything; so in the record their addresses are one more,
 * like return addresses.
 */
static __noinline enum outcome by_signal_frame(struct scratch *s, struct stack_walk *w)
{
	struct signal_regs *r = &s->signal;

	if (bpf_probe_read_user(r, sizeof(*r), (const void *)(w->sp + SIGNAL_REGS_OFFSET)))
		return OUTCOME_FAULT;
	w->ip = r->ip;
	w->sp = r->sp;
	w->fp = SIGNAL_FP(r);
	w->lr = SIGNAL_LR(r);
	SIGNAL_COPY_REGS(s->regs, r);
	w->regs_copied = 1;
	if (!w->exact && w->frames > 1 && w->at >= 8 && w->at <= SAMPLE_BODY_BYTES) {
		__u32 at = w->at - 8;

		barrier_var(at);
		if (at <= SAMPLE_BODY_BYTES - 8)
			*body_word(s, at) += 1;
	}
	w->exact = w->regs_known = w->fp_known = w->sp_known = 1;
	return w->ip && w->ip < USER_ADDRESS_END ? OUTCOME_NONE : OUTCOME_INVALID;
}

static __always_inline enum outcome to_caller(struct stack_walk *w, __u64 return_address, __u64 sp, bool sp_known)
{
	return_address = strip_return_address(return_address);
	if (!return_address)
		return w->by_guess ? OUTCOME_NO_ROWS : OUTCOME_PRESENT;
	if (return_address >= USER_ADDRESS_END)
		return OUTCOME_INVALID;
	w->ip = return_address;
	w->sp = sp;
	w->sp_known = sp_known;
	w->exact = w->regs_known = 0;
	return OUTCOME_NONE;
}

/* The canonical frame address. */
static __always_inline enum outcome frame_address(struct scratch *s, struct stack_walk *w,
						  const struct unwind_rule *rule, __u64 *cfa)
{
	__s64 offset = rule->cfa_offset;

	if (likely(rule->cfa == CFA_SP)) {
		*cfa = w->sp + offset;
		return OUTCOME_NONE;
	}
	switch (rule->cfa) {
	case CFA_PLT:
		*cfa = w->sp + offset + ((w->ip & 15) >= rule->arg ? 8 : 0);
		return OUTCOME_NONE;
	case CFA_FP:
		*cfa = w->fp + offset;
		return w->fp_known ? OUTCOME_NONE : OUTCOME_NO_ROWS;
	case CFA_REG:
		copy_regs(s);
		*cfa = s->regs[rule->arg & (NUM_REGS - 1)] + offset;
		return w->regs_known && CFA_REGS ? OUTCOME_NONE : OUTCOME_NO_ROWS;
	case CFA_DEREF_SP:
	case CFA_DEREF_FP:
		if (rule->cfa == CFA_DEREF_FP && !w->fp_known)
			return OUTCOME_NO_ROWS;
		offset += rule->cfa == CFA_DEREF_FP ? w->fp : w->sp;
		if (bpf_probe_read_user(cfa, sizeof(*cfa), (const void *)offset))
			return OUTCOME_FAULT;
		*cfa += rule->arg;
		return OUTCOME_NONE;
	}
	return OUTCOME_INVALID;
}

static __always_inline enum outcome by_rule(struct scratch *s, struct stack_walk *w, const struct unwind_rule *rule)
{
	struct frame_link link = { .fp = w->fp, .return_address = LINK_REGISTER ? w->lr : 0 };
	const bool in_register = LINK_REGISTER && rule->ra & RA_REGISTER;
	__u64 cfa = 0;
	enum outcome out;

	if (unlikely(rule->cfa == CFA_END))
		return OUTCOME_PRESENT;
	if (unlikely(rule->cfa == CFA_SIGNAL))
		return by_signal_frame(s, w);
	out = frame_address(s, w, rule, &cfa);
	if (unlikely(out != OUTCOME_NONE))
		return out;
	/* Stacks grow down: a caller's frame lies above. Only a leaf need not have pushed anything. */
	if (unlikely(cfa < w->sp || (cfa == w->sp && !w->regs_known)))
		return OUTCOME_INVALID;
	if (in_register && !w->regs_known)
		return OUTCOME_INVALID;
	/* The frame pointer first: it lies below the return address. */
	if (rule->fp == FP_OFFSET && !stack_word(w, cfa + rule->fp_offset, &link.fp))
		return OUTCOME_FAULT;
	/* At its last instructions the function already has its caller's frame pointer back. */
	if (unlikely(rule->fp == FP_FRAME) && w->fp_known && w->fp >= w->sp && w->fp < cfa &&
	    !stack_word(w, w->fp + rule->fp_offset, &link.fp))
		return OUTCOME_FAULT;
	if (!in_register && !stack_word(w, cfa + rule->ra_offset, &link.return_address))
		return OUTCOME_FAULT;
	w->fp = link.fp;
	if (rule->fp == FP_OFFSET)
		w->fp_known = 1;
	else if (unlikely(rule->fp == FP_UNDEFINED))
		w->fp_known = 0;
	out = to_caller(w, link.return_address, cfa, true);
	if (unlikely(rule->ra & RA_INTERRUPTED)) {
		w->exact = 1;
		if (LINK_REGISTER) {
			if (bpf_probe_read_user(&w->lr, sizeof(w->lr), (const void *)(cfa - INTERRUPTED_LR)))
				return OUTCOME_FAULT;
			w->regs_known = 1;
		}
	}
	return out;
}

static __always_inline bool needs_sp(const struct unwind_rule *rule)
{
	return rule->cfa == CFA_SP || rule->cfa == CFA_PLT || rule->cfa == CFA_DEREF_SP || rule->cfa == CFA_SIGNAL;
}

#endif
