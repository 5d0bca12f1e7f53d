/* SPDX-License-Identifier: Apache-2.0 */
/* A library for host.c: its FUNCTION, as long as any other's, uses CPU time. */
__attribute__((noinline)) static void FUNCTION(void)
{
	for (volatile int i = 0; i < 20000; i++)
		;
	__asm__ volatile("");
}

void go(void)
{
	FUNCTION();
	__asm__ volatile("");
}
