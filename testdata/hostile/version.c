// SPDX-License-Identifier: Apache-2.0
/* A program with custom labels of a version that nobody knows. */
#include <stdint.h>
#include <stdio.h>

__thread void *custom_labels_current_set;
const uint32_t custom_labels_abi_version = 99;

int main(void)
{
	custom_labels_current_set = NULL;
	puts("ready");
	fflush(stdout);
	for (;;)
		__asm__ volatile("");
}
