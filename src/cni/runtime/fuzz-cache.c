/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/runtime/fuzz-cache.c - fuzzer: cache files
 *
 * Parsing any text gives an entry, nothing or an error. The JSON members of an
 * entry are valid JSON objects.
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/json/value.h"
#include "base/str.h"
#include "cni/result.h"
#include "cni/runtime/cache.h"
#include "cni/runtime/conf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define NETWORK "{\"cniVersion\":\"0.4.0\",\"name\":\"podnet\",\"plugins\":[{\"type\":\"noop\"}]}"

static void check_object(const char *json)
{
	AUTO(value_free) struct value *v = NULL;
	struct hw_err e;
	int r;

	if (!json)
		return;
	r = value_parse(json, strlen(json), &v, &e);
	assert(r == 0 && value_kind(v) == VALUE_OBJECT);
}

static void fuzz_entry(const struct buf *text)
{
	AUTO(cache_entry_done) struct hw_cached entry = { 0 };
	struct hw_err e = { 0 };

	if (cache_entry_parse(text, "podnet", &entry, &e) < 0) {
		assert(e.code < 0 && e.msg[0]);
		return;
	}
	check_object(entry.capability_args);
	check_object(entry.result);
	assert(entry.config);
	for (size_t i = 0; i < entry.args.n; i++)
		assert(entry.args.keys[i] && entry.args.values[i]);
}

static void fuzz_result(const struct buf *text)
{
	const struct hw_attach at = { .container_id = "c1", .ifname = "eth0" };
	AUTO(hw_result_free) struct hw_result *result = NULL;
	AUTO(hw_conf_free) struct hw_conf *conf = NULL;
	struct hw_err e = { 0 };
	int r;

	r = hw_conf_parse(NETWORK, strlen(NETWORK), &conf, &e);
	assert(r == 0);
	r = cache_result_parse(text, conf, &at, &result, &e);
	assert((r > 0) == (result != NULL));
	assert(!result || str_equal(result->version, "0.4.0"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct buf text = { .data = (char *)data, .len = size };

	fuzz_entry(&text);
	fuzz_result(&text);
	return 0;
}
