/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread-local variable that tests look for, in an executable or a library.
 *
 *   -DALIGN=N       its alignment
 *   -DPAD=N         bytes of thread-local data before it
 *   -DVISIBILITY=V  hidden or protected
 *   -DUNREFERENCED  defined only: nothing in this file reads its address
 *   -DSIBLING       unreferenced too, but a hidden variable is referenced
 *   -DNEIGHBOUR     likewise, but a variable that others can interpose (-DPAD)
 *
 * The TLS model comes from the compiler's options.
 */
#ifndef ALIGN
#define ALIGN 8
#endif
#ifndef VISIBILITY
#define VISIBILITY default
#endif
#define STRING_(x) #x
#define STRING(x) STRING_(x)

void *variable_address(void);

#ifdef PAD
__thread char variable_padding[PAD] = { 1 }; /* initialized, so that it is in the same section */
#endif

__attribute__((visibility(STRING(VISIBILITY)), aligned(ALIGN))) __thread void *custom_labels_current_set =
	&variable_address;

__attribute__((visibility("hidden"))) __thread long variable_sibling[3];

/* Not thread-local: a symbol of the wrong kind, as a lookup can meet one. */
const int custom_labels_abi_version = 1;

void *variable_address(void)
{
#if defined(SIBLING)
	return &variable_sibling[1];
#elif defined(NEIGHBOUR)
	return &variable_padding[1];
#elif defined(UNREFERENCED)
	return 0;
#else
	return &custom_labels_current_set;
#endif
}
