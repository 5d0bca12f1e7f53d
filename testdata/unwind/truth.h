/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the calling thread's stack is, published as custom labels (ABI v1): "case"
 * names the case and "stack" describes the stack from its root. The words of the
 * description are parted by ';':
 *
 *   NAME      this function
 *   @LETTERS  the functions w_L for each letter L
 *   +NAME     perhaps this function; where it is not, neither are the + words behind it
 *   %LETTERS  the same for the functions w_L
 *   ?N        up to N functions of others, as of libraries
 *   ~N        likewise, at least one
 *
 * What comes before the first word is the C library's. "Of others" is what is not
 * called w_ something.
 */
#ifndef UNWIND_TRUTH_H
#define UNWIND_TRUTH_H

#include "abi.h"
#include "tls.h"

/* The profiler copies so much of a value. */
#define TRUTH_BYTES 1024

struct truth {
	struct abi_v1_set set;
	struct abi_label labels[2];
	char stack[TRUTH_BYTES];
};

extern EXPORTED __thread struct abi_v1_set *custom_labels_current_set;

/* The function that the calling thread's stack begins with. */
extern __thread const char *truth_root;

/* Describes a stack; format is that of printf and goes on from the root. */
__attribute__((format(printf, 3, 4))) void truth_describe(struct truth *truth, const char *name, const char *format,
							  ...);

/* Publishes it, in one store; NULL: nothing is known. */
static inline __attribute__((always_inline)) void truth_publish(struct truth *truth)
{
	IN_ORDER();
	STORE(custom_labels_current_set, truth ? &truth->set : NULL);
	IN_ORDER();
}

/* The same for programs in other languages. */
void truth_begin(const char *root);
void truth_publish_set(struct truth *truth);

#endif
