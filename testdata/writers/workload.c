// SPDX-License-Identifier: Apache-2.0
#include "workload.h"

#include "burn.h"

/* Works for a part, in percent, of what the request takes. */
#define WORK(name, seed)                                                                                               \
	static HOT uint64_t name(uint64_t ns, uint64_t percent)                                                        \
	{                                                                                                              \
		return burn_until(thread_cpu_ns() + ns * percent / 100, ns ^ (seed));                                  \
	}

WORK(parse_json, 0x11)
WORK(render_template, 0x12)
WORK(price_cart, 0x13)
WORK(compress_block, 0x21)
WORK(checksum_block, 0x22)
WORK(encode_frame, 0x23)
WORK(hash_password, 0x31)
WORK(verify_token, 0x32)
WORK(match_rules, 0x41)
WORK(sort_results, 0x42)

static HOT uint64_t shop_decode(uint64_t ns)
{
	return parse_json(ns, 40) + 1;
}

static HOT uint64_t shop_checkout(uint64_t ns)
{
	return price_cart(ns, 35) + render_template(ns, 25);
}

static HOT uint64_t shop_browse(uint64_t ns)
{
	return render_template(ns, 50) + price_cart(ns, 10);
}

static HOT uint64_t acme_serve(int route, uint64_t ns)
{
	return shop_decode(ns) + (route == 0 ? shop_checkout(ns) : shop_browse(ns));
}

static HOT uint64_t video_upload(uint64_t ns)
{
	return compress_block(ns, 65) + checksum_block(ns, 35);
}

static HOT uint64_t video_stream(uint64_t ns)
{
	return encode_frame(ns, 80) + checksum_block(ns, 20);
}

static HOT uint64_t globex_serve(int route, uint64_t ns)
{
	return (route == 0 ? video_upload(ns) : video_stream(ns)) + 1;
}

static HOT uint64_t sign_in(uint64_t ns)
{
	return hash_password(ns, 90) + verify_token(ns, 10);
}

static HOT uint64_t authorize(uint64_t ns)
{
	return verify_token(ns, 100) + 1;
}

static HOT uint64_t initech_serve(int route, uint64_t ns)
{
	return (route == 0 ? sign_in(ns) : authorize(ns)) + 1;
}

static HOT uint64_t run_query(uint64_t ns)
{
	return match_rules(ns, 70) + sort_results(ns, 30);
}

static HOT uint64_t umbrella_serve(int route, uint64_t ns)
{
	return run_query(ns) + (uint64_t)route;
}

const struct tenant tenants[TENANTS] = {
	{ "acme", 50, { "/checkout", "/browse" }, acme_serve },
	{ "globex", 30, { "/upload", "/stream" }, globex_serve },
	{ "initech", 15, { "/login", "/authorize" }, initech_serve },
	{ "umbrella", 5, { "/search" }, umbrella_serve },
};
