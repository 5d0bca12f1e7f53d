// SPDX-License-Identifier: Apache-2.0
/*
 * All code of the program is copied to memory without a file, in its own place, as programs do to have
 * it on huge pages: before main, or, with MOVE_LATER, when move_code is called.
 */
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int move(struct dl_phdr_info *info, size_t size, void *unused)
{
	uintptr_t page = getpagesize();

	(void)size;
	(void)unused;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		uintptr_t start = (info->dlpi_addr + segment->p_vaddr) & -page;
		size_t length = (info->dlpi_addr + segment->p_vaddr + segment->p_memsz + page - 1 - start) & -page;
		char *copy;

		if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X))
			continue;
		copy = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (copy == MAP_FAILED)
			return -1;
		memcpy(copy, (void *)start, length);
		__builtin___clear_cache(copy, copy + length);
		if (mprotect(copy, length, PROT_READ | PROT_EXEC) ||
		    mremap(copy, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)start) == MAP_FAILED)
			return -1;
	}
	return 1; /* the first one is the program */
}

#ifndef MOVE_LATER
__attribute__((constructor))
#endif
void move_code(void)
{
	if (dl_iterate_phdr(move, NULL) != 1) {
		perror("move code");
		exit(1);
	}
}
