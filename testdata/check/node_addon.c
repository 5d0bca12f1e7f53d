// SPDX-License-Identifier: Apache-2.0
/* An addon for Node.js with a variable as macros have it, which leads where that of another library does. */
#include <dlfcn.h>
#include <node_api.h>
#include <stdint.h>
#include <string.h>

#include "../writers/abi.h"
#include "../writers/tls.h"

#ifndef VISIBILITY
#define VISIBILITY EXPORTED
#endif
#ifdef NOT_THREAD_LOCAL
#define THREAD_LOCAL
#else
#define THREAD_LOCAL __thread
#endif
#ifndef PAD
#define PAD
#endif

/* As @datadog/pprof 5.20 has it. */
struct variable {
	const void *slot, *handle;
	uint32_t hash, field; /* field: where an object has its record */
	uintptr_t undefined;
};

VISIBILITY THREAD_LOCAL struct {
	struct variable data;
	PAD
} otel_thread_ctx_nodejs_v1;

/* follow(path): the variable of the library there is that of this addon, too. */
static napi_value follow(napi_env env, napi_callback_info info)
{
	const struct variable *other = NULL;
	size_t count = 1;
	napi_value path;
	char name[4096];
	void *library;

	if (napi_get_cb_info(env, info, &count, &path, NULL, NULL) != napi_ok ||
	    napi_get_value_string_utf8(env, path, name, sizeof(name), NULL) != napi_ok)
		return NULL;
	library = dlopen(name, RTLD_NOW | RTLD_NOLOAD);
	if (library)
		other = dlsym(library, "otel_thread_ctx_nodejs_v1");
	if (other)
		memcpy(&otel_thread_ctx_nodejs_v1.data, other, sizeof(*other));
	else
		napi_throw_error(env, NULL, "there is no such variable");
	return NULL;
}

/*
 * shorten(context): its record has one byte less, so that its last attribute is cut. A napi_value
 * is the address of a tagged pointer to the object.
 */
static napi_value shorten(napi_env env, napi_callback_info info)
{
	struct abi_context *record;
	size_t count = 1;
	napi_value context;
	uintptr_t object;

	if (napi_get_cb_info(env, info, &count, &context, NULL, NULL) != napi_ok)
		return NULL;
	object = *(const uintptr_t *)(const void *)context - 1;
	memcpy(&record, (const void *)(object + otel_thread_ctx_nodejs_v1.data.field), sizeof(record));
	record->attrs_size--;
	return NULL;
}

static napi_value start(napi_env env, napi_value exports)
{
	napi_value function;

	if (napi_create_function(env, "follow", NAPI_AUTO_LENGTH, follow, NULL, &function) == napi_ok)
		napi_set_named_property(env, exports, "follow", function);
	if (napi_create_function(env, "shorten", NAPI_AUTO_LENGTH, shorten, NULL, &function) == napi_ok)
		napi_set_named_property(env, exports, "shorten", function);
	return exports;
}

NAPI_MODULE(check, start)
