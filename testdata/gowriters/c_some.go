// SPDX-License-Identifier: Apache-2.0

//go:build c

package main

/*
// Beside Go's, so that its place depends on the linker.
static __thread volatile int calls[20];

static int called(int i)
{
	return calls[i & 15] += i;
}
*/
import "C"

// callC makes this a program with C code, and with thread-local variables of it.
func callC() { C.called(3) }
