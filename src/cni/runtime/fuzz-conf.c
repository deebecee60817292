/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/runtime/fuzz-conf.c - fuzzer: network configurations
 *
 * For each plugin of an accepted configuration, a request can be formatted. The
 * request is itself a valid plugin configuration with the network's name and
 * version.
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/str.h"
#include "cni/name.h"
#include "cni/runtime/conf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_requests(const struct hw_conf *conf)
{
	const struct hw_valid valid = { "c1", "eth0" };
	const struct conf_request request = {
		.prev_result = "{\"cniVersion\":\"1.0.0\"}",
		.capability_args = "{\"portMappings\":[],\"mac\":\"x\"}",
		.with_valid = true,
		.valid = &valid,
		.n_valid = 1,
	};

	assert(hw_conf_count(conf) > 0);
	for (size_t i = 0; i < hw_conf_count(conf); i++) {
		AUTO(hw_conf_free) struct hw_conf *again = NULL;
		autofree char *json = NULL;
		struct hw_err e;
		int r;

		r = conf_request(conf, i, &request, &json, &e);
		assert(r == 0);
		r = hw_conf_parse_plugin(json, strlen(json), &again, &e);
		assert(r == 0);
		assert(str_equal(hw_conf_name(again), hw_conf_name(conf)));
		assert(str_equal(hw_conf_version(again), hw_conf_version(conf)));
		assert(str_equal(hw_conf_type(again, 0), hw_conf_type(conf, i)));
	}
}

static void fuzz_list(const char *text, size_t size)
{
	AUTO(hw_conf_free) struct hw_conf *conf = NULL;
	struct hw_err e = { 0 };

	if (hw_conf_parse(text, size, &conf, &e) == 0)
		check_requests(conf);
	else
		assert(e.code < 0 && e.msg[0]);
}

static void fuzz_plugin(const char *text, size_t size)
{
	AUTO(hw_conf_free) struct hw_conf *conf = NULL, *list = NULL;
	struct hw_err e = { 0 };

	if (hw_conf_parse_plugin(text, size, &conf, &e) < 0) {
		assert(e.code < 0 && e.msg[0]);
		return;
	}
	check_requests(conf);
	if (hw_conf_to_list(conf, &list, &e) == 0)
		check_requests(list);
}

static void fuzz_names(const char *text)
{
	struct hw_err e;

	(void)name_check_network(text, &e);
	(void)name_check_container(text, &e);
	(void)name_check_ifname(text, &e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	autofree char *text = str_ncopy((const char *)data, size);

	fuzz_names(text);
	fuzz_list((const char *)data, size);
	fuzz_plugin((const char *)data, size);
	return 0;
}
