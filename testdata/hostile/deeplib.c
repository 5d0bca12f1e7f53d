/*
 * A library in which a thread stays in as many frames as it wants, until it is stopped.
 * FRAME bytes are on the stack of each. With ENDS the library's rows say that each frame
 * is the outermost one; its code is the same. With MAIN it is a program.
 */
#include <stdio.h>
#include <unistd.h>

#include "deep.h"

#ifndef FRAME
#define FRAME 16
#endif

#if defined(__x86_64__)
#define RETURN_ADDRESS "16"
#else
#define RETURN_ADDRESS "30"
#endif

unsigned long descend(int depth, volatile int *stop)
{
	volatile unsigned char frame[FRAME];
	unsigned long x = 0;

#ifdef ENDS
	__asm__ volatile(".cfi_undefined " RETURN_ADDRESS);
#endif
	frame[0] = 1;
	if (depth > 0)
		x = descend(depth - 1, stop);
	while (depth == 0 && !*stop)
		x++;
	return x + frame[0];
}

#ifdef MAIN
int main(void)
{
	volatile int stop = 0;

	alarm(600);
	puts("ready");
	fflush(stdout);
	return (int)descend(DEPTH, &stop);
}
#endif
