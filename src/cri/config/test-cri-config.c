/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/config/test-cri-config.c - configuration files and flags of hawser-cri
 */
#include "cri/config/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/os/file.h"
#include "base/str.h"
#include "cri/config/flags.h"

static char *directory;

static int create_directory(void **state)
{
	(void)state;
	directory = str_printf("%s/test-cri-config-XXXXXX", str_or(getenv("TMPDIR"), "/tmp"));
	return mkdtemp(directory) ? 0 : -1;
}

static int remove_directory(void **state)
{
	(void)state;
	assert_int_equal(rmdir(directory), 0);
	free(directory);
	return 0;
}

static int load_flags(const char *path, const char *const *words, struct config **ret,
		      struct hw_err *e)
{
	AUTO(flags_done) struct flags flags = { 0 };
	char *argv[16] = { (char *)"hawser-cri" };
	int argc = 1, r;

	for (; words && words[argc - 1]; argc++)
		argv[argc] = (char *)words[argc - 1];
	r = flags_parse(argc, argv, &flags, e);
	if (r < 0)
		return r;
	return config_load(&(struct config_source){ path, false, flags.values }, ret, e);
}

/* @yaml: the content of the file; NULL if the file does not exist */
static int load(const char *yaml, const char *const *words, struct config **ret, struct hw_err *e)
{
	autofree char *path = str_printf("%s/h.yaml", directory);
	int r;

	if (yaml)
		assert_int_equal(file_replace(AT_FDCWD, path, yaml, strlen(yaml), 0600, 0, e), 0);
	r = load_flags(path, words, ret, e);
	file_remove(AT_FDCWD, path, &(struct hw_err){ 0 });
	return r;
}

static struct config *must_load(const char *yaml, const char *const *words)
{
	struct config *c = NULL;
	struct hw_err e;

	if (load(yaml, words, &c, &e) < 0)
		fail_msg("%s", e.msg);
	return c;
}

/* Compares the message, with the path of the file replaced by FILE. */
static void expect_error(const char *yaml, const char *const *words, const char *message)
{
	autofree char *path = str_printf("%s/h.yaml", directory);
	struct config *c = NULL;
	const char *at;
	struct hw_err e;

	assert_int_equal(load(yaml, words, &c, &e), -EINVAL);
	at = strstr(e.msg, path);
	if (at) {
		autofree char *text =
			str_printf("%.*sFILE%s", (int)(at - e.msg), e.msg, at + strlen(path));

		assert_string_equal(text, message);
	} else {
		assert_string_equal(e.msg, message);
	}
}

static void defaults(void **state)
{
	AUTO(shared_unref) struct config *c = must_load(NULL, NULL);
	AUTO(shared_unref) struct config *empty = must_load("# nothing yet\n", NULL);

	(void)state;
	assert_string_equal(c->listen, "unix:/run/hawser/cri.sock");
	assert_string_equal(c->file, "");
	assert_int_equal(c->long_calls, 512);
	assert_int_equal(c->registry_mirror.n, 0);
	assert_true(str_ends(empty->file, "/h.yaml"));
	assert_string_equal(empty->root, "/var/lib/hawser");
}

static void flags_override(void **state)
{
	static const char file[] = "root: /file\nlong-calls: 7\n"
				   "plain-http: [one.example, two.example]\nstate: /file\n";
	static const char *const words[] = {
		"--root",	"/flag",     "--long-calls=8", "--plain-http", "three.example",
		"--plain-http", "four:5000", "--log-level",    "debug",	       NULL,
	};
	AUTO(shared_unref) struct config *c = must_load(file, words);

	(void)state;
	assert_string_equal(c->root, "/flag");
	assert_string_equal(c->state, "/file");
	assert_int_equal(c->long_calls, 8);
	assert_int_equal(c->plain_http.n, 2);
	assert_string_equal(c->plain_http.v[1], "four:5000");
	assert_string_equal(c->log_level, "debug");
}

static void invalid_files(void **state)
{
	(void)state;
	expect_error("root: /a\ncolour: red\n", NULL, "FILE: line 2: colour: unknown key");
	expect_error("Root: /a\n", NULL, "FILE: line 1: Root: unknown key");
	expect_error("\nlong-calls: many\n", NULL,
		     "FILE: line 2: long-calls: expected a number, got a string");
	expect_error("long-calls: 0\n", NULL,
		     "FILE: line 1: long-calls: 0 is out of range 1..16384");
	expect_error("root: /a\nroot: /b\n", NULL, "FILE: line 2, column 1: duplicate key root");
	expect_error("- a\n", NULL, "FILE: line 1: expected a mapping of keys to values");
	expect_error("root: relative\n", NULL,
		     "FILE: line 1: root: relative: path must be absolute");
	expect_error("netns-dir: run/netns\n", NULL,
		     "FILE: line 1: netns-dir: run/netns: path must be absolute");
	expect_error("listen: /run/x\n", NULL, "FILE: line 1: listen: /run/x: expected unix:PATH");
	expect_error("registry-mirror:\n- docker.io=https://a\n- docker.io\n", NULL,
		     "FILE: line 3: registry-mirror[1]: docker.io: expected HOST=https://... or "
		     "HOST=http://...");
	expect_error("plain-http: [\"a b\"]\n", NULL,
		     "FILE: line 1: plain-http[0]: a b: invalid registry host");
	expect_error("metrics-address: 0.0.0.0:9100\n", NULL,
		     "FILE: line 1: metrics-address: 0.0.0.0:9100: not a loopback address");
	expect_error("metrics-address: nonsense\n", NULL,
		     "FILE: line 1: metrics-address: nonsense: expected unix:PATH or ADDRESS:PORT");
	expect_error("log-level: loud\n", NULL,
		     "FILE: line 1: log-level: loud: expected one of error, warn, info, debug");
	expect_error("cgroup-driver: no\n", NULL,
		     "FILE: line 1: cgroup-driver: no: expected one of auto, systemd, cgroupfs");
	expect_error("socket-owner: no-such-user\n", NULL,
		     "FILE: line 1: socket-owner: unknown user no-such-user");
	expect_error("cni-bin-dir: /a:b\n", NULL,
		     "FILE: line 1: cni-bin-dir: b: path must be absolute");
}

static void invalid_flags(void **state)
{
	(void)state;
	expect_error("root: /a\n", (const char *const[]){ "--root", "b", NULL },
		     "--root: b: path must be absolute");
	expect_error("", (const char *const[]){ "--long-calls", "many", NULL },
		     "--long-calls: expected a number, got many");
	expect_error("", (const char *const[]){ "--long-calls", "0", NULL },
		     "--long-calls: 0 is out of range 1..16384");
	expect_error("", (const char *const[]){ "--fetch-uid", "4294967295", NULL },
		     "--fetch-uid: 4294967295 is out of range 0..4294967294");
	expect_error("", (const char *const[]){ "--plain-http", "a b", NULL },
		     "--plain-http[0]: a b: invalid registry host");
	expect_error("", (const char *const[]){ "--root", NULL }, "--root: missing value");
	expect_error("", (const char *const[]){ "--colour=red", NULL },
		     "unknown flag --colour=red; see --help");
	expect_error("", (const char *const[]){ "word", NULL },
		     "unknown argument word; see --help");
}

static void missing_file(void **state)
{
	const struct config_source source = { "/nonexistent/h.yaml", true, NULL };
	struct config *c = NULL;
	struct hw_err e;

	(void)state;
	assert_int_equal(config_load(&source, &c, &e), -ENOENT);
	assert_string_equal(e.msg,
			    "configuration: open /nonexistent/h.yaml: No such file or directory");
}

static void print_and_load(void **state)
{
	static const char file[] = "root: \"/with \\\"quotes\\\" and \\u00e9\"\n"
				   "registry-mirror: [docker.io=http://m:5000]\nlong-calls: 9\n";
	AUTO(shared_unref) struct config *c = must_load(file, NULL);
	autofree char *text = config_format(c);
	AUTO(shared_unref) struct config *again = must_load(text, NULL);
	autofree char *second = config_format(again);

	(void)state;
	assert_string_equal(text, second);
	assert_string_equal(again->root, c->root);
	assert_non_null(strstr(text, "\n# default: 512\nlong-calls: 9\n"));
	assert_non_null(strstr(text, "\nregistry-mirror:\n- \"docker.io=http://m:5000\"\n"));
	for (const struct hw_field *f = config_fields; f->type != HW_END; f++) {
		autofree char *line = str_printf("\n%s:", f->name);

		assert_non_null(f->help);
		assert_non_null(strstr(text, line));
	}
}

static void append_name(void *ctx, const char *name)
{
	buf_printf(ctx, "%s ", name);
}

static void reload(void **state)
{
	AUTO(shared_unref) struct config *now = must_load("root: /a\nlog-level: warn\n", NULL);
	AUTO(shared_unref)
	struct config *next =
		must_load("root: /b\nmetrics-address: unix:/m\nlog-level: debug\n"
			  "plain-http: [h.example]\nfetch-uid: 4711\ngc-networks: [a, b]\n",
			  NULL);
	AUTO(buf_done) struct buf ignored = { 0 };
	AUTO(shared_unref) struct config *c = config_merge(now, next, append_name, &ignored);
	AUTO(buf_done) struct buf none = { 0 };
	AUTO(shared_unref) struct config *same = config_merge(now, now, append_name, &none);

	(void)state;
	assert_string_equal(ignored.data, "root metrics-address ");
	assert_string_equal(c->root, "/a");
	assert_string_equal(c->metrics_address, "");
	assert_string_equal(c->log_level, "debug");
	assert_int_equal(c->plain_http.n, 1);
	assert_int_equal(c->gc_networks.n, 2);
	assert_int_equal(c->uid, 4711);
	assert_int_equal(same->uid, now->uid);
	assert_in_range(now->uid, 61184, 65519);
	assert_int_equal(none.len, 0);
	assert_string_equal(same->log_level, "warn");
}

static void addresses(void **state)
{
	struct config_address a;
	struct hw_err e;

	(void)state;
	assert_int_equal(config_address("unix:/a", &a, &e), 0);
	assert_string_equal(a.path, "/a");
	assert_int_equal(config_address("unix:///a/b", &a, &e), 0);
	assert_string_equal(a.path, "/a/b");
	assert_int_equal(config_address("127.0.0.1:90", &a, &e), 0);
	assert_null(a.path);
	assert_int_equal(a.port, 90);
	assert_int_equal(config_address("[::1]:9100", &a, &e), 0);
	assert_int_equal(a.ip.bytes[15], 1);
	assert_int_equal(config_address("::1:9100", &a, &e), -EINVAL);
	assert_int_equal(config_address("unix:a", &a, &e), -EINVAL);
	assert_int_equal(config_address("[]:1", &a, &e), -EINVAL);
	assert_int_equal(config_address(":1", &a, &e), -EINVAL);
	assert_int_equal(config_address("]:1", &a, &e), -EINVAL);
}

static void owners(void **state)
{
	struct socket_owner o;
	struct hw_err e;

	(void)state;
	assert_int_equal(config_owner("", &o, &e), 0);
	assert_true(o.mode == 0600 && o.uid == (uid_t)-1 && o.gid == (gid_t)-1);
	assert_int_equal(config_owner("root", &o, &e), 0);
	assert_true(o.mode == 0600 && o.uid == 0);
	assert_int_equal(config_owner("12:34", &o, &e), 0);
	assert_true(o.mode == 0660 && o.uid == 12 && o.gid == 34);
	assert_int_equal(config_owner("root:no-such-group", &o, &e), -EINVAL);
	assert_string_equal(e.msg, "unknown group no-such-group");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "config: without a file or with an empty file, all values are defaults",
		  defaults },
		{ "config: flags override the file, and replace a list completely",
		  flags_override },
		{ "config: an error in the file names the line", invalid_files },
		{ "config: an error in a flag names the flag", invalid_flags },
		{ "config: a file given by --config must exist", missing_file },
		{ "config: the printed configuration contains every key and can be loaded",
		  print_and_load },
		{ "config: a reload changes reloadable keys and reports other changed keys",
		  reload },
		{ "config: socket paths and loopback addresses are accepted, others are rejected",
		  addresses },
		{ "config: a socket owner is accepted by name and by number", owners },
	};

	return cmocka_run_group_tests(tests, create_directory, remove_directory);
}
