// SPDX-License-Identifier: Apache-2.0
/* Reaches the variable of a library that does not refer to it itself. */
#include "writer.h"

extern __thread void *otel_thread_ctx_v1;

void *variable(void)
{
	return &otel_thread_ctx_v1;
}
