/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/test-user.c - users and groups from passwd and group of an image, also hostile ones
 */
#include "oci/user.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/os/file.h"
#include "base/str.h"
#include "oci/test.h"

#define ROOT "/tmp/test-user"

static const char passwd[] = "root:x:0:0:root:/root:/bin/sh\n"
			     "# comment\n"
			     "\n"
			     "short:x:5\n"
			     "bad:x:-1:1::/:\n"
			     "large:x:4294967295:1::/:\n"
			     "www:x:33:34:www:/var/www:/usr/sbin/nologin\n"
			     "www:x:99:99::/other:\n"
			     "twin:x:33:35::/twin:\n"
			     "odd:x:50:51::relative:\n"
			     "last:x:60:61::/last";
static const char group[] = "root:x:0:\n"
			    "adm:x:4:www,twin\n"
			    "bad:x:x:www\n"
			    "tape:x:26:root,ww\n"
			    "ssl:x:113:a,www\n"
			    "again:x:4:www\n"
			    "wheel:x:10:last";

static char *format(const struct user *u)
{
	AUTO(buf_done) struct buf b = { 0 };
	const uint32_t *groups = u->groups.v;

	buf_printf(&b, "%u:%u %s", u->uid, u->gid, u->home);
	for (size_t i = 0; i < u->groups.n; i++)
		buf_printf(&b, "%c%u", i ? ',' : ' ', groups[i]);
	return buf_take(&b);
}

static void the_request_precedes_the_image(void **state)
{
	static const uint32_t more[] = { 1234, 4 };
	static const struct {
		struct user_request request;
		const char *expected;
	} cases[] = {
		{ { 0 }, "0:0 /root 0,26" },
		{ { .image = "www" }, "33:34 /var/www 34,4,113" },
		{ { .image = "www:adm" }, "33:4 /var/www 4,113" },
		{ { .image = "www:77" }, "33:77 /var/www 77,4,113" },
		{ { .image = "33" }, "33:34 /var/www 34,4,113" },
		{ { .image = "33:0" }, "33:0 /var/www 0,4,113" },
		{ { .image = "1002" }, "1002:0 / 0" },
		{ { .image = "1002:1003" }, "1002:1003 / 1003" },
		{ { .image = ":adm" }, "0:4 /root 4,26" },
		{ { .image = "odd" }, "50:51 / 51" },
		{ { .image = "last" }, "60:61 /last 61,10" },
		{ { .has_uid = true, .uid = 33, .image = "1:2" }, "33:34 /var/www 34,4,113" },
		{ { .has_uid = true, .image = "1002:1003" }, "0:0 /root 0,26" },
		{ { .has_uid = true, .uid = 33, .has_gid = true, .gid = 9 },
		  "33:9 /var/www 9,4,113" },
		{ { .name = "twin", .image = "www" }, "33:35 /twin 35,4" },
		{ { .name = "twin", .has_gid = true, .gid = 9 }, "33:9 /twin 9,4" },
		{ { .name = "www", .groups = more, .n_groups = 2 },
		  "33:34 /var/www 34,1234,4,113" },
		{ { .name = "www", .groups = more, .n_groups = 2, .strict = true },
		  "33:34 /var/www 34,1234,4" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		AUTO(user_done) struct user u = { 0 };
		autofree char *text = NULL;
		struct hw_err e;

		assert_ok(user_resolve(passwd, group, &cases[i].request, &u, &e), &e);
		text = format(&u);
		assert_string_equal(text, cases[i].expected);
	}
}

static void an_unknown_name_is_an_error(void **state)
{
	static const struct {
		struct user_request request;
		const char *error;
	} cases[] = {
		{ { .name = "absent" }, "no user \"absent\" in /etc/passwd of the image" },
		{ { .name = "33" }, "no user \"33\" in /etc/passwd of the image" },
		{ { .name = "bad" }, "no user \"bad\" in /etc/passwd of the image" },
		{ { .name = "large" }, "no user \"large\" in /etc/passwd of the image" },
		{ { .image = "ww" }, "no user \"ww\" in /etc/passwd of the image" },
		{ { .image = "4294967295" }, "no user \"4294967295\" in /etc/passwd of the image" },
		{ { .image = "www:none" }, "no group \"none\" in /etc/group of the image" },
		{ { .image = "www:bad" }, "no group \"bad\" in /etc/group of the image" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct user u;
		struct hw_err e;

		assert_int_equal(user_resolve(passwd, group, &cases[i].request, &u, &e), -EINVAL);
		assert_string_equal(e.msg, cases[i].error);
	}
}

static void the_number_of_groups_is_limited(void **state)
{
	AUTO(buf_done) struct buf many = { 0 };
	AUTO(user_done) struct user u = { 0 };
	struct user_request request = { .image = "root" }, strict = request;
	struct hw_err e;

	(void)state;
	for (int i = 0; i <= USER_GROUPS_MAX; i++)
		buf_printf(&many, "g%d:x:%d:root\n", i, i);
	assert_int_equal(user_resolve(passwd, many.data, &request, &u, &e), -EINVAL);
	assert_string_equal(e.msg, "the user has more than 4096 groups");
	strict.strict = true;
	assert_ok(user_resolve(passwd, many.data, &strict, &u, &e), &e);
	assert_int_equal(u.groups.n, 1);
}

/* ---- files ----------------------------------------------------------------------------------- */

static int setup(void **state)
{
	(void)state;
	run_shell("rm -rf " ROOT " && mkdir -p " ROOT "/etc");
	return 0;
}

static void write_file(const char *path, const char *text)
{
	struct hw_err e;

	assert_ok(file_replace(AT_FDCWD, path, text, strlen(text), 0644, 0, &e), &e);
}

static int find(struct user *ret, struct hw_err *e)
{
	autoclose int root = open(ROOT, O_PATH | O_DIRECTORY | O_CLOEXEC);

	return user_find(root, &(struct user_request){ .image = "www" }, ret, e);
}

static void files_are_read_below_the_root_directory(void **state)
{
	AUTO(user_done) struct user u = { 0 }, linked = { 0 };
	autofree char *text = NULL, *again = NULL;
	struct hw_err e;

	(void)state;
	write_file(ROOT "/etc/passwd", passwd);
	write_file(ROOT "/etc/group", group);
	assert_ok(find(&u, &e), &e);
	text = format(&u);
	assert_string_equal(text, "33:34 /var/www 34,4,113");
	run_shell("cd " ROOT " && mkdir -p usr/etc && mv etc/passwd usr/etc/passwd && "
		  "ln -s /../../usr/etc/passwd etc/passwd");
	assert_ok(find(&linked, &e), &e);
	again = format(&linked);
	assert_string_equal(again, text);
}

/* The user www is on no host under this name with these numbers, so a passwd of the host is recognized. */
static void a_link_does_not_lead_out_of_the_root_directory(void **state)
{
	struct hw_err e;
	struct user u;

	(void)state;
	write_file("/tmp/test-user-outside", passwd);
	assert_int_equal(symlink("/tmp/test-user-outside", ROOT "/etc/passwd"), 0);
	assert_int_equal(find(&u, &e), -EINVAL);
	assert_string_equal(e.msg, "no user \"www\" in /etc/passwd of the image");
	assert_int_equal(unlink(ROOT "/etc/passwd"), 0);
	assert_int_equal(symlink("../../test-user-outside", ROOT "/etc/passwd"), 0);
	assert_int_equal(find(&u, &e), -EINVAL);
	assert_int_equal(unlink(ROOT "/etc/passwd"), 0);
	assert_int_equal(symlink("passwd", ROOT "/etc/passwd"), 0);
	assert_int_equal(find(&u, &e), -EINVAL);
	assert_string_equal(e.msg,
			    "open /etc/passwd of the image: Too many levels of symbolic links");
}

static void *rename_files(void *arg)
{
	const atomic_bool *stop = arg;

	while (!*stop)
		if (rename(ROOT "/a", ROOT "/b") < 0 || rename(ROOT "/b", ROOT "/a") < 0)
			return arg;
	return NULL;
}

/* A link with ".." may have to be followed again then, see openat2(2). */
static void a_link_is_followed_while_other_files_are_renamed(void **state)
{
	static atomic_bool stop; /* static: if an assertion fails, the thread continues */
	pthread_t thread;
	void *failed;

	(void)state;
	assert_int_equal(mkdir(ROOT "/usr", 0755), 0);
	write_file(ROOT "/usr/passwd", passwd);
	write_file(ROOT "/a", "");
	assert_int_equal(symlink("../etc/../etc/../usr/passwd", ROOT "/etc/passwd"), 0);
	assert_int_equal(pthread_create(&thread, NULL, rename_files, &stop), 0);
	for (size_t i = 0; i < 10000; i++) {
		AUTO(user_done) struct user u = { 0 };
		struct hw_err e;

		assert_ok(find(&u, &e), &e);
	}
	stop = true;
	assert_int_equal(pthread_join(thread, &failed), 0);
	assert_null(failed);
}

static void a_file_must_be_regular(void **state)
{
	static const char expected[] = "/etc/passwd of the image is not a regular file";
	struct hw_err e;
	struct user u;

	(void)state;
	assert_int_equal(mkfifo(ROOT "/etc/passwd", 0644), 0);
	assert_int_equal(find(&u, &e), -EINVAL);
	assert_string_equal(e.msg, expected);
	unlink(ROOT "/etc/passwd");
	assert_int_equal(mknod(ROOT "/etc/passwd", S_IFCHR | 0644, makedev(1, 5)), 0);
	assert_int_equal(find(&u, &e), -EINVAL);
	assert_string_equal(e.msg, expected);
	unlink(ROOT "/etc/passwd");
	assert_int_equal(mkdir(ROOT "/etc/passwd", 0755), 0);
	assert_int_equal(find(&u, &e), -EINVAL);
	assert_string_equal(e.msg, expected);
}

static void a_large_file_is_refused(void **state)
{
	struct hw_err e;
	struct user u;

	(void)state;
	write_file(ROOT "/etc/passwd", passwd);
	assert_int_equal(truncate(ROOT "/etc/passwd", (off_t)1 << 30), 0);
	assert_int_equal(find(&u, &e), -EINVAL);
	assert_string_equal(e.msg, "/etc/passwd of the image has more than 4194304 bytes");
	assert_int_equal(truncate(ROOT "/etc/passwd", 0), 0);
	write_file(ROOT "/etc/group", group);
	assert_int_equal(truncate(ROOT "/etc/group", (off_t)1 << 30), 0);
	assert_int_equal(find(&u, &e), -EINVAL);
	assert_string_equal(e.msg, "/etc/group of the image has more than 4194304 bytes");
}

static void without_the_files_numbers_work(void **state)
{
	autoclose int root = open(ROOT, O_PATH | O_DIRECTORY | O_CLOEXEC);
	AUTO(user_done) struct user u = { 0 };
	autofree char *text = NULL;
	struct hw_err e;

	(void)state;
	assert_ok(user_find(root, &(struct user_request){ .image = "5:6" }, &u, &e), &e);
	text = format(&u);
	assert_string_equal(text, "5:6 / 6");
}

#define TEST(sentence, f)                                                                          \
	{                                                                                          \
		"user: " sentence, f, setup, NULL, NULL                                            \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST("the request precedes the image", the_request_precedes_the_image),
		TEST("an unknown name is an error", an_unknown_name_is_an_error),
		TEST("the number of groups is limited", the_number_of_groups_is_limited),
		TEST("files are read below the root directory",
		     files_are_read_below_the_root_directory),
		TEST("a link does not lead out of the root directory",
		     a_link_does_not_lead_out_of_the_root_directory),
		TEST("a link is followed while other files are renamed",
		     a_link_is_followed_while_other_files_are_renamed),
		TEST("a file must be regular", a_file_must_be_regular),
		TEST("a large file is refused", a_large_file_is_refused),
		TEST("without the files, numbers work", without_the_files_numbers_work),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
