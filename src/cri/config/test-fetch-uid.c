/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/config/test-fetch-uid.c - the user ID of the process that talks to registries
 */
#include "cri/config/fetch-uid.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/os/file.h"
#include "base/os/remove-tree.h"
#include "base/str.h"

#define FIRST 61184
#define LAST  65519

static int make_root(void **state)
{
	char *root = str_printf("%.40s/uid.XXXXXX", str_or(getenv("TMPDIR"), "/tmp"));

	*state = root;
	return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
	struct hw_err e;
	int r = remove_tree(AT_FDCWD, *state, &e);

	free(*state);
	return r;
}

static void write_below(const char *root, const char *path, const char *text)
{
	autofree char *file = str_printf("%s/%s", root, path);
	autofree char *dir = str_ncopy(file, (size_t)(strrchr(file, '/') - file));
	struct hw_err e;

	assert_int_equal(file_mkdirs(AT_FDCWD, dir, 0755, &e), 0);
	assert_int_equal(file_replace(AT_FDCWD, file, text, strlen(text), 0644, 0, &e), 0);
}

static uint32_t find(const char *root)
{
	struct hw_err e;
	uint32_t uid = 0;

	if (fetch_uid_find(root, &uid, &e) < 0)
		fail_msg("%s", e.msg);
	return uid;
}

static void first_free(void **state)
{
	assert_int_equal(find(*state), FIRST);
	write_below(*state, "etc/passwd", "");
	write_below(*state, "etc/group", "\n::\n61184:61184:6118:61184\nx:61184\n");
	assert_int_equal(find(*state), FIRST);
	write_below(*state, "etc/passwd", "root:x:0:0:root:/root:/bin/sh\na:x:61184:0::/:\n");
	assert_int_equal(find(*state), FIRST + 1);
	/* the primary group of a user, and a group */
	write_below(*state, "etc/passwd", "a:x:61184:61185::/:\nb:x:611861:6118::/:\n");
	assert_int_equal(find(*state), FIRST + 2);
	write_below(*state, "etc/group", "g:x:61186:a,b\nlast:x:61187");
	assert_int_equal(find(*state), FIRST + 4);
	write_below(*state, "run/systemd/dynamic-uid/61188", "service\n");
	assert_int_equal(find(*state), FIRST + 5);
}

static void none_free(void **state)
{
	AUTO(buf_done) struct buf b = { 0 };
	uint32_t uid = 7;
	struct hw_err e;

	for (int id = FIRST; id < LAST; id++)
		buf_printf(&b, "u%d:x:%d:%d::/:\n", id, id, id);
	write_below(*state, "etc/passwd", b.data);
	assert_int_equal(find(*state), LAST);
	buf_printf(&b, "u:x:%d:1::/:\n", LAST);
	write_below(*state, "etc/passwd", b.data);
	assert_int_equal(fetch_uid_find(*state, &uid, &e), -EUSERS);
	assert_int_equal(uid, 7);
}

static void unreadable(void **state)
{
	static const char *const files[] = { "etc/passwd", "etc/group" };
	uint32_t uid = 0;
	struct hw_err e;

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		autofree char *path = str_printf("%s/%s", (char *)*state, files[i]);

		assert_int_equal(file_mkdirs(AT_FDCWD, path, 0755, &e), 0);
		assert_int_equal(fetch_uid_find(*state, &uid, &e), -EISDIR);
		assert_non_null(strstr(e.msg, files[i]));
		assert_int_equal(rmdir(path), 0);
	}
	assert_int_equal(find(*state), FIRST);
}

#define TEST(name, f)                                                                              \
	{                                                                                          \
		name, f, make_root, remove_root                                                    \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST("fetch-uid: an ID is free if no user or group has it", first_free),
		TEST("fetch-uid: if all IDs are taken, there is an error", none_free),
		TEST("fetch-uid: if a file cannot be read, no ID is taken for free", unreadable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
