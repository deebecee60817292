/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/tar/test-path.c - paths of members
 */
#include "fetch/tar/path.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include "base/mem.h"

static void test_clean(void **state)
{
	static const char *const v[][2] = {
		{ "", "" },
		{ ".", "" },
		{ "/", "" },
		{ "./", "" },
		{ "//", "" },
		{ "a", "a" },
		{ "a/", "a" },
		{ "./a/./b//c/", "a/b/c" },
		{ "/a/b", "a/b" },
		{ "a/..", "" },
		{ "a/../b", "b" },
		{ "a/b/../../c", "c" },
		{ "...", "..." },
		{ "..a/b..", "..a/b.." },
		{ ".a", ".a" },
		{ "a/b/..", "a" },
		{ "a\nb/ ", "a\nb/ " },
	};
	char got[PATH_SIZE];
	struct hw_err e;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		assert_int_equal(path_clean(v[i][0], got, &e), 0);
		assert_string_equal(got, v[i][1]);
	}
}

static void test_escape(void **state)
{
	static const char *const v[] = { "..", "/..", "../a", "a/../..", "./../a", "a/b/../../.." };
	char got[PATH_SIZE];
	struct hw_err e;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		assert_int_equal(path_clean(v[i], got, &e), -EINVAL);
		assert_string_equal(e.msg, "path escapes the root");
	}
}

static void test_length(void **state)
{
	char raw[3 * PATH_SIZE], got[PATH_SIZE];
	struct hw_err e;

	(void)state;
	memset(raw, 'a', sizeof(raw));
	raw[PATH_SIZE - 2] = '\0';
	assert_int_equal(path_clean(raw, got, &e), 0);
	raw[PATH_SIZE - 2] = 'a';
	raw[PATH_SIZE - 1] = '\0';
	assert_int_equal(path_clean(raw, got, &e), -ENAMETOOLONG);
	memset(raw, '/', sizeof(raw));
	memcpy(raw + sizeof(raw) - 2, "a", 2);
	assert_int_equal(path_clean(raw, got, &e), 0);
	assert_string_equal(got, "a");
}

static void test_parts(void **state)
{
	char parent[PATH_SIZE];

	(void)state;
	assert_string_equal(path_name("a/b/c"), "c");
	assert_string_equal(path_name("a"), "a");
	assert_string_equal(path_name(""), "");
	path_parent("a/b/c", parent);
	assert_string_equal(parent, "a/b");
	path_parent("a", parent);
	assert_string_equal(parent, "");
	path_parent("", parent);
	assert_string_equal(parent, "");
}

static void test_kinds(void **state)
{
	static const struct {
		const char *path;
		enum path_kind kind;
	} v[] = {
		{ "", PATH_PLAIN },
		{ "a", PATH_PLAIN },
		{ ".wh.a", PATH_WHITEOUT },
		{ "a/.wh.b", PATH_WHITEOUT },
		{ "a/.wh..b", PATH_WHITEOUT },
		{ ".wh.a/b", PATH_PLAIN },
		{ "a/x.wh.b", PATH_PLAIN },
		{ ".wh..wh..opq", PATH_OPAQUE },
		{ "a/.wh..wh..opq", PATH_OPAQUE },
		{ "a/.wh..wh..opqx", PATH_AUFS },
		{ ".wh..wh.plnk/1", PATH_AUFS },
		{ "a/.wh..wh.orph/x", PATH_AUFS },
	};
	const char *name = NULL;
	struct hw_err e;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(v); i++)
		if (path_kind(v[i].path) != v[i].kind)
			fail_msg("%s", v[i].path);
	assert_int_equal(path_hidden("a/.wh.b", &name, &e), 0);
	assert_string_equal(name, "b");
	assert_int_equal(path_hidden(".wh.", &name, &e), -EINVAL);
	assert_int_equal(path_hidden(".wh..", &name, &e), -EINVAL);
	assert_int_equal(path_hidden("a/.wh...", &name, &e), -EINVAL);
	assert_int_equal(path_hidden(".wh....", &name, &e), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "path: a cleaned path is relative, without dots and empty components",
		  test_clean },
		{ "path: a path that escapes the root is rejected", test_escape },
		{ "path: the kernel's length limit applies to the cleaned path", test_length },
		{ "path: a path is split into its parent directory and its last component",
		  test_parts },
		{ "path: whiteouts are distinguished from plain members", test_kinds },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
