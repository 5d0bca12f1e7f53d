/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that take no longer than the call of them. */
#ifndef UNWIND_TINY_H
#define UNWIND_TINY_H

unsigned tiny_0(unsigned n);
unsigned tiny_1(unsigned n);
unsigned tiny_2(unsigned n);
unsigned tiny_3(unsigned n);

#endif
