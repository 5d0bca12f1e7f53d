// SPDX-License-Identifier: Apache-2.0
/* Functions that are called all the time. The innermost takes some 0.1 ms. */
static volatile unsigned long value;

#define CALLED(name, body)                                                                                             \
	__attribute__((noinline, noclone)) void name(void)                                                             \
	{                                                                                                              \
		body;                                                                                                  \
		value++;                                                                                               \
	}

CALLED(innermost, for (int i = 0; i < 100000; i++) value++)
CALLED(probed, innermost())
CALLED(between, probed())
CALLED(probed_too, between())
CALLED(outermost, probed_too())

int main(void)
{
	for (;;)
		outermost();
}
