/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/spec/test.h - helpers for unit tests of OCI configurations
 */
#ifndef OCI_SPEC_TEST_H
#define OCI_SPEC_TEST_H

#include "base/json/value.h"
#include "base/str.h"
#include "oci/spec/spec.h"
#include "oci/test.h"

/* Lists and maps that need no cleanup: &STRINGS("a", "b"), &MAP(2, NAMES("k", "l"), NAMES("v", "w")) */
#define NAMES(...) ((char **)(const char *[]){ __VA_ARGS__ })
#define STRINGS(...)                                                                               \
	((const struct hw_strings){ NAMES(__VA_ARGS__),                                            \
				    sizeof((const char *[]){ __VA_ARGS__ }) / sizeof(char *) })
#define MAP(n, keys, values) ((const struct hw_map){ keys, values, n })

static inline char *encode_spec(const struct oci_spec *s)
{
	char *text = NULL;
	struct hw_err e;

	assert_ok(spec_encode(s, &text, &e), &e);
	return text;
}

/* Compares a part of the configuration, such as "linux.resources", with JSON text. Single quotes in
 * @expected stand for double quotes. NULL: the part must be absent. */
static inline void assert_spec(const struct oci_spec *s, const char *path, const char *expected)
{
	autofree char *text = encode_spec(s), *want = str_copy(expected), *got = NULL;
	AUTO(value_free) struct value *all = value_literal(text), *other = NULL;
	AUTO(hw_strings_free) struct hw_strings parts = { 0 };
	const struct value *v = all;

	strings_split(path, '.', &parts);
	for (size_t i = 0; v && i < parts.n; i++)
		v = value_get(v, parts.v[i]);
	if (!v || !expected) {
		if (v || expected)
			fail_msg("%s: %s", path, text);
		return;
	}
	for (char *c = want; *c; c++)
		if (*c == '\'')
			*c = '"';
	other = value_literal(want);
	got = value_format(v, 0);
	if (!value_equal(v, other))
		fail_msg("%s: got %s, want %s", path, got, want);
}

#endif
