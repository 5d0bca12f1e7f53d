// SPDX-License-Identifier: Apache-2.0
/* The symbols of a format (ABI: 0, 1, or 2 for the thread context), as macros have them. */
#include "../writers/abi.h"
#include "../writers/tls.h"
#include "writer.h"

#ifndef VERSION
#define VERSION ABI
#endif
#ifndef VERSION_TYPE
#define VERSION_TYPE uint32_t
#endif
#ifdef NOT_THREAD_LOCAL
#define THREAD_LOCAL
#else
#define THREAD_LOCAL __thread
#endif
#ifndef PAD
#define PAD
#endif

#if ABI == 0
EXPORTED const VERSION_TYPE custom_labels_abi_version = VERSION;
EXPORTED THREAD_LOCAL struct {
	struct abi_v0_data data;
	PAD
} custom_labels_thread_local_data;
#define VARIABLE custom_labels_thread_local_data
#elif ABI == 1
EXPORTED const VERSION_TYPE custom_labels_abi_version = VERSION;
EXPORTED THREAD_LOCAL struct {
	struct abi_v1_set *current;
	PAD
} custom_labels_current_set;
#define VARIABLE custom_labels_current_set
#else
EXPORTED THREAD_LOCAL struct {
	struct abi_context *current;
	PAD
} otel_thread_ctx_v1;
#define VARIABLE otel_thread_ctx_v1
#endif

#ifndef ELSEWHERE
EXPORTED void *variable(void)
{
	return &VARIABLE;
}
#endif
