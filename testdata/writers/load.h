/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WRITERS_LOAD_H
#define WRITERS_LOAD_H

#include "publish.h"

/*
 * The publisher of this program: linked into it, from a library that the dynamic
 * loader brought in at the start, or from one that is loaded by this call. The
 * call happens once, before any thread is made.
 */
const struct publisher *load_publisher(void);

#endif
