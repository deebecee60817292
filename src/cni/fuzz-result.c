/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/fuzz-result.c - fuzzer: results, converted to every version and back
 *
 * A result that is formatted in a version is parsed as that version; formatting
 * it again gives the same text. A copy has the same text as its original.
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/str.h"
#include "cni/result.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_version(const struct hw_result *result, const char *version)
{
	AUTO(hw_result_free) struct hw_result *again = NULL;
	autofree char *first = NULL, *second = NULL;
	struct hw_err e;
	int r;

	if (hw_result_format(result, version, HW_JSON_PRETTY, &first, &e) < 0) {
		assert(str_equal(e.msg, "cannot convert: no valid IP addresses"));
		return;
	}
	r = result_parse_prev(first, strlen(first), version, &again, &e);
	assert(r == 0 && str_equal(again->version, version));
	r = hw_result_format(again, version, HW_JSON_PRETTY, &second, &e);
	assert(r == 0 && str_equal(first, second));
}

static void check_copy(const struct hw_result *result)
{
	AUTO(hw_result_free) struct hw_result *copy = hw_result_copy(result);
	autofree char *first = NULL, *second = NULL;
	struct hw_err e;
	int r;

	r = hw_result_format(result, "1.1.0", 0, &first, &e);
	assert(r == 0);
	r = hw_result_format(copy, "1.1.0", 0, &second, &e);
	assert(r == 0 && str_equal(first, second));
	assert(str_equal(copy->version, result->version));
}

static void fuzz_version(const char *text, size_t size, const char *assumed)
{
	AUTO(hw_result_free) struct hw_result *result = NULL;
	struct hw_err e = { 0 };

	if (hw_result_parse(text, size, assumed, &result, &e) < 0) {
		assert(e.code < 0 && e.msg[0]);
		return;
	}
	check_copy(result);
	for (const char *const *v = hw_versions(); *v; v++)
		check_version(result, *v);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const assumed[] = { "0.2.0", "0.4.0", "1.1.0" };

	for (size_t i = 0; i < ARRAY_SIZE(assumed); i++)
		fuzz_version((const char *)data, size, assumed[i]);
	return 0;
}
