// SPDX-License-Identifier: Apache-2.0
#include "tiny.h"

unsigned tiny_0(unsigned n)
{
	return n + 1;
}

unsigned tiny_1(unsigned n)
{
	return n * 3;
}

unsigned tiny_2(unsigned n)
{
	return n ^ 5;
}

unsigned tiny_3(unsigned n)
{
	return n - 7;
}
