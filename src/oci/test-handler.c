/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/test-handler.c - runtime handlers
 *
 * How:   shell scripts in place of the programs, and the crun of this host.
 */
#include "oci/handler.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/os/file.h"
#include "base/str.h"

#define CRUN "/usr/bin/crun"

static void names_are_checked(void **state)
{
	static const char *const v[][2] = {
		{ "", "expected NAME=/PATH" },		{ "kata", "expected NAME=/PATH" },
		{ "kata=crun", "expected NAME=/PATH" }, { "=/bin/x", "1 to 63 characters" },
		{ "a b=/bin/x", "invalid character" },	{ "a/b=/bin/x", "invalid character" },
	};
	const char *program = NULL;
	autofree char *name = NULL;
	struct hw_err e;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		char *none = NULL;

		assert_int_equal(handler_parse(v[i][0], &none, &program, &e), -EINVAL);
		assert_non_null(strstr(e.msg, v[i][1]));
	}
	assert_int_equal(handler_parse("my-run.2_x=/opt/a=b", &name, &program, &e), 0);
	assert_string_equal(name, "my-run.2_x");
	assert_string_equal(program, "/opt/a=b");
}

static void write_script(const char *path, const char *text)
{
	struct hw_err e;

	if (file_replace(AT_FDCWD, path, text, strlen(text), 0755, 0, &e) < 0)
		fail_msg("%s", e.msg);
}

static void a_silent_program_has_a_message(void **state)
{
	AUTO(hw_strings_free) struct hw_strings given = { 0 };
	AUTO(handlers_done) struct oci_handlers h = { 0 };

	(void)state;
	strings_add(&given, "gone=/nonexistent/run");
	strings_add(&given, "bad=/bin/false");
	handlers_probe(NULL, &given, &h);
	assert_int_equal(h.n, 3);
	assert_string_equal(handlers_find(&h, NULL)->message, "crun not found");
	assert_non_null(strstr(handlers_find(&h, "gone")->message, "No such file"));
	assert_string_equal(handlers_find(&h, "bad")->message,
			    "/bin/false --version: exit status 1");
	assert_string_equal(handlers_find(&h, "bad")->version, "");
	assert_null(handlers_find(&h, "other"));
}

static void features_come_from_the_program_or_its_version(void **state)
{
	static const struct {
		const char *version, *features; /* NULL: the program has no such command */
		bool rro;
		enum oci_seccomp seccomp;
		enum oci_idmap idmap;
	} v[] = {
		{ "crun version 1.3.9", NULL, false, OCI_SECCOMP_FILTER, OCI_IDMAP_NONE },
		{ "crun version 1.4", NULL, true, OCI_SECCOMP_FILTER, OCI_IDMAP_NONE },
		{ "crun version 1.8.1", NULL, true, OCI_SECCOMP_FILTER, OCI_IDMAP_SAME },
		{ "crun version 1.8.6", "{\"mountOptions\":[\"rro\",\"idmap\"]}", true,
		  OCI_SECCOMP_FILTER, OCI_IDMAP_SAME },
		{ "crun version 1.29",
		  "{\"mountOptions\":[\"rro\",\"idmap\"],\"linux\":{\"mountExtensions\":{\"idmap\":"
		  "{\"enabled\":true}}}}",
		  true, OCI_SECCOMP_FILTER, OCI_IDMAP_ANY },
		{ "runc version 1.1.5", "{\"mountOptions\":[\"ro\",\"rro\"]}", true,
		  OCI_SECCOMP_PROFILE, OCI_IDMAP_NONE },
		{ "runc version 1.1.5",
		  "{\"linux\":{\"seccomp\":{\"enabled\":true}},\"mountOptions\":[]}", false,
		  OCI_SECCOMP_PROFILE, OCI_IDMAP_NONE },
		{ "runc version 1.1.5", "{\"linux\":{\"seccomp\":{\"enabled\":false}}}", false,
		  OCI_SECCOMP_NONE, OCI_IDMAP_NONE },
		{ "runsc version 1", NULL, false, OCI_SECCOMP_PROFILE, OCI_IDMAP_NONE },
		{ "other 1", "nonsense", false, OCI_SECCOMP_PROFILE, OCI_IDMAP_NONE },
	};
	struct hw_strings none = { 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		AUTO(handlers_done) struct oci_handlers h = { 0 };
		autofree char *features =
			v[i].features ? str_printf("echo '%s'", v[i].features) : str_copy("exit 1");
		autofree char *script = str_printf("#!/bin/sh\ncase $1 in\n--version) echo '%s'; "
						   "echo +SYSTEMD +SECCOMP;;\n*) %s;;\nesac\n",
						   v[i].version, features);

		write_script("/tmp/handler", script);
		handlers_probe("/tmp/handler", &none, &h);
		assert_null(h.v[0].message);
		assert_string_equal(h.v[0].version, v[i].version);
		assert_int_equal(h.v[0].rro, v[i].rro);
		assert_int_equal(h.v[0].seccomp, v[i].seccomp);
		assert_int_equal(h.v[0].idmap, v[i].idmap);
	}
}

static void a_crun_without_libseccomp_is_recognized(void **state)
{
	static const char *const versions[] = { "1.8.1", "UNKNOWN" }; /* without Git: UNKNOWN */
	struct hw_strings none = { 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
		AUTO(handlers_done) struct oci_handlers h = { 0 };
		autofree char *script = str_printf("#!/bin/sh\n"
						   "[ $1 = --version ] && echo crun version %s && "
						   "echo +SYSTEMD +YAJL\n",
						   versions[i]);

		write_script("/tmp/handler", script);
		handlers_probe("/tmp/handler", &none, &h);
		assert_null(h.v[0].message);
		assert_int_equal(h.v[0].seccomp, OCI_SECCOMP_NONE);
	}
}

static void the_real_program_has_all(void **state)
{
	AUTO(handlers_done) struct oci_handlers h = { 0 };
	struct hw_strings none = { 0 };

	(void)state;
	handlers_probe(CRUN, &none, &h);
	assert_null(h.v[0].message);
	assert_non_null(strstr(h.v[0].version, "crun"));
	assert_true(h.v[0].rro && h.v[0].seccomp == OCI_SECCOMP_FILTER &&
		    h.v[0].idmap >= OCI_IDMAP_SAME);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "handler: a handler is given as NAME=/PATH", names_are_checked },
		{ "handler: a program that does not answer is listed with the reason",
		  a_silent_program_has_a_message },
		{ "handler: features come from the program, or from the version of crun",
		  features_come_from_the_program_or_its_version },
		{ "handler: a crun that was built without libseccomp is recognized",
		  a_crun_without_libseccomp_is_recognized },
		{ "handler: crun of this host has the features that hawser uses",
		  the_real_program_has_all },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
