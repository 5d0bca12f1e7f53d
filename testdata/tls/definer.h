/* SPDX-License-Identifier: Apache-2.0 */
/* Between writer.c and the files that define the thread-local variables of a cell. */
#ifndef TLS_DEFINER_H
#define TLS_DEFINER_H

enum abi {
	ABI_V0 = 0,
	ABI_V1 = 1,
	ABI_CTX = 2
};

/* One file, executable or library, with a variable in it. */
struct definer {
	const char *name;
	enum abi abi;
	const char *symbol;
	void *(*variable)(void); /* of the calling thread; NULL: to be had from dlsym only */
};

/* By the name of the part: in the executable, in a library linked to it, in dlopen'ed libraries. */
const struct definer *definer_exe(void) __attribute__((weak));
const struct definer *definer_lib(void) __attribute__((weak));
#define DLOPEN_SYMBOL "definer_dl"
const struct definer *definer_dl(void);

#endif
