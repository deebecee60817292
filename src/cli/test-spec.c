/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/test-spec.c - image configuration in the verbose ImageStatus of a runtime
 */
#include "cli/spec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include <errno.h>

#include "api/cri-v1.pb-c.h"

typedef Runtime__V1__ImageStatusResponse__InfoEntry info_entry;

/* Call spec_read() with info[@key] = @text. */
static int read_spec(const char *key, const char *text, struct spec *ret, struct hw_err *e)
{
	info_entry entry = RUNTIME__V1__IMAGE_STATUS_RESPONSE__INFO_ENTRY__INIT,
		   *all[] = { &entry };
	Runtime__V1__ImageStatusResponse status = RUNTIME__V1__IMAGE_STATUS_RESPONSE__INIT;

	entry.key = (char *)key;
	entry.value = (char *)text;
	status.info = all;
	status.n_info = 1;
	return spec_read(&status, ret, e);
}

static void test_all_fields(void **state)
{
	static const char text[] =
		"{\"chainID\":\"c\",\"imageSpec\":{\"created\":\"2020-01-02T03:04:05Z\","
		"\"architecture\":\"arm64\",\"variant\":\"v8\",\"os\":\"linux\",\"config\":{"
		"\"User\":\"7\",\"Env\":[\"A=b\"],\"Entrypoint\":[\"/e\"],\"Cmd\":[\"a\",\"b\"],"
		"\"Labels\":{\"k\":\"v\"},\"ExposedPorts\":{\"80/tcp\":{}},\"ArgsEscaped\":true},"
		"\"rootfs\":{\"type\":\"layers\",\"diff_ids\":[\"x\",\"y\"]},\"history\":["
		"{\"created_by\":\"one\"},{\"created_by\":\"two\",\"empty_layer\":true}]}}";
	AUTO(spec_done) struct spec spec = { 0 };
	const struct spec_step *steps;
	struct hw_err e;

	(void)state;
	assert_int_equal(read_spec("info", text, &spec, &e), 1);
	assert_string_equal(spec.variant, "v8");
	assert_string_equal(spec.config.user, "7");
	assert_int_equal(spec.config.cmd.n, 2);
	assert_string_equal(spec.config.labels.values[0], "v");
	assert_string_equal(spec.config.ports, "{\"80/tcp\":{}}");
	assert_string_equal(spec.rootfs.diff_ids.v[1], "y");
	assert_int_equal(spec.history.n, 2);
	steps = spec.history.v;
	assert_string_equal(steps[0].created_by, "one");
	assert_true(!steps[0].empty_layer && steps[1].empty_layer);
}

/* Go's JSON encoder writes empty values as null. */
static void test_nulls(void **state)
{
	AUTO(spec_done) struct spec spec = { 0 };
	struct hw_err e;

	(void)state;
	assert_int_equal(read_spec("info",
				   "{\"imageSpec\":{\"created\":null,\"config\":{\"Env\":null,"
				   "\"Labels\":null,\"Volumes\":null},\"history\":null}}",
				   &spec, &e),
			 1);
	assert_int_equal(spec.config.env.n, 0);
	assert_int_equal(spec.history.n, 0);
}

static void test_not_decoded(void **state)
{
	static const struct {
		const char *key, *text;
		int result;
	} cases[] = {
		{ "other", "{}", 0 },
		{ "info", "{}", 0 },
		{ "info", "[]", 0 },
		{ "info", "{", -EINVAL },
		{ "info", "{\"imageSpec\":[]}", -EINVAL },
		{ "info", "{\"imageSpec\":{\"config\":{\"Cmd\":\"sh\"}}}", -EINVAL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		AUTO(spec_done) struct spec spec = { 0 };
		struct hw_err e;

		assert_int_equal(read_spec(cases[i].key, cases[i].text, &spec, &e),
				 cases[i].result);
	}
}

static void test_ages(void **state)
{
	autofree char *none = spec_age(NULL), *bad = spec_age("soon");
	autofree char *future = spec_age("9999-01-01T00:00:00Z");

	(void)state;
	assert_string_equal(none, "");
	assert_string_equal(bad, "");
	assert_string_equal(future, "0s");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "spec: the image configuration that containerd and hawser-cri report is decoded",
		  test_all_fields },
		{ "spec: a null value is treated as absent", test_nulls },
		{ "spec: a missing configuration is not found, and a malformed one is an error",
		  test_not_decoded },
		{ "spec: the age of a malformed time is empty", test_ages },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
