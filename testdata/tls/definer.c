/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A definition of one of the thread-local variables through which labels are
 * published.
 *
 *   -DABI=N           enum abi
 *   -DPART=P          exe, lib or dl: who asks for it (definer.h)
 *   -DNAME="..."      told to writer.c
 *   -DALIGN=N         alignment of the variable
 *   -DFIRST           it is at the start of the TLS block; else behind others
 *   -DHIDDEN          not exported
 *   -DSIBLING         no relocation against it, but against another one
 *   -DUNREFERENCED    no TLS relocation at all
 *   -DVERSIONED       two versions of it (link with definer.map)
 *   -DEXTERN          no definition: uses that of another file
 *
 * The TLS model comes from the compiler's options.
 */
#include <stddef.h>
#include "definer.h"

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define STRING_(x) #x
#define STRING(x) STRING_(x)

#if ABI == 0
#define SYMBOL custom_labels_thread_local_data
#define WORDS 2
#elif ABI == 1
#define SYMBOL custom_labels_current_set
#define WORDS 1
#else
#define SYMBOL otel_thread_ctx_v1
#define WORDS 1
#endif

struct variable {
	void *words[WORDS];
};

#ifdef EXTERN
extern __thread struct variable SYMBOL;
extern const int custom_labels_abi_version;
#else

/* The variable is zero in .tbss, behind .tdata, or zero in .tdata, before the rest of it. */
#ifdef FIRST
#define PLACE __attribute__((section(".tdata"), aligned(ALIGN)))
#else
#define PLACE __attribute__((aligned(ALIGN)))
static __thread char before[40] __attribute__((used)) = { 1 };
#endif

#if defined(VERSIONED)
#define REFERENCED JOIN(SYMBOL, _v2)
static __thread struct variable JOIN(SYMBOL, _v1) __attribute__((used));
PLACE __thread struct variable JOIN(SYMBOL, _v2);
__asm__(".symver " STRING(SYMBOL) "_v1, " STRING(SYMBOL) "@V1");
__asm__(".symver " STRING(SYMBOL) "_v2, " STRING(SYMBOL) "@@V2");
#elif defined(HIDDEN)
__attribute__((visibility("hidden"))) PLACE __thread struct variable SYMBOL;
#else
PLACE __thread struct variable SYMBOL;
#endif

/* At a distance from the variable that the compiler does not know. */
__attribute__((visibility("hidden"))) __thread long definer_sibling[3];

#if ABI != 2
extern const int custom_labels_abi_version;
const int custom_labels_abi_version = ABI;
#endif

#endif

#ifndef REFERENCED
#define REFERENCED SYMBOL
#endif

#ifdef SIBLING
long *definer_other(void);

long *definer_other(void)
{
	return &definer_sibling[1];
}
#endif

#if defined(SIBLING) || defined(UNREFERENCED)
#define VARIABLE NULL
#else
static void *variable(void)
{
	return &REFERENCED;
}
#define VARIABLE variable
#endif

const struct definer *JOIN(definer_, PART)(void)
{
	static const struct definer definer = {
		.name = NAME,
		.abi = ABI,
		.symbol = STRING(SYMBOL),
		.variable = VARIABLE,
	};

#if defined(EXTERN) && ABI != 2
	if (custom_labels_abi_version != ABI)
		return NULL;
#endif
	return &definer;
}
