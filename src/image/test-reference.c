/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/test-reference.c - parsing of image references
 *
 * The tables have a row for each rule of the grammar in reference.c, and for each way to break it.
 */
#include "image/reference.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include "base/buf.h"
#include "base/str.h"

#define F32 "ffffffffffffffffffffffffffffffff"
#define F64 F32 F32

static void assert_parses_as(const char *text, const char *want)
{
	AUTO(reference_done) struct reference ref = { 0 };
	struct hw_err e = { 0 };

	if (reference_parse(text, &ref, &e) < 0)
		fail_msg("%s: %s", text, e.msg);
	autofree char *got = reference_format(&ref);
	assert_string_equal(got, want);
}

static void assert_rejected(const char *text, const char *why)
{
	struct reference ref = { 0 };
	struct hw_err e = { 0 };

	if (reference_parse(text, &ref, &e) != -EINVAL)
		fail_msg("\"%s\" was accepted", text);
	if (!strstr(e.msg, why))
		fail_msg("\"%s\": want \"%s\" in the message, got \"%s\"", text, why, e.msg);
	assert_null(ref.domain);
}

static void test_names(void **state)
{
	static const char *const v[][2] = {
		{ "nginx", "docker.io/library/nginx:latest" },
		{ "nginx:1.27", "docker.io/library/nginx:1.27" },
		{ "library/nginx", "docker.io/library/nginx:latest" },
		{ "docker.io/nginx", "docker.io/library/nginx:latest" },
		{ "docker.io/library/nginx:x", "docker.io/library/nginx:x" },
		{ "index.docker.io/nginx", "docker.io/library/nginx:latest" },
		{ "index.docker.io/team/web:2", "docker.io/team/web:2" },
		{ "team/web", "docker.io/team/web:latest" },
		{ "team/group/web:v1", "docker.io/team/group/web:v1" },
		{ "registry.k8s.io/pause:3.9", "registry.k8s.io/pause:3.9" },
		{ "quay.io/one/two/three", "quay.io/one/two/three:latest" },
		{ "quay.io", "docker.io/library/quay.io:latest" },
		{ "quay.io:443", "docker.io/library/quay.io:443" },
		{ "my_host/web", "docker.io/my_host/web:latest" },
		{ "a_b.c-d:8443", "docker.io/library/a_b.c-d:8443" },
		{ "team/v1.2_x:8443", "docker.io/team/v1.2_x:8443" },
		{ "one-two/three_four/five__six/seven---eight.nine",
		  "docker.io/one-two/three_four/five__six/seven---eight.nine:latest" },
		{ "7", "docker.io/library/7:latest" },
		{ "web:V1", "docker.io/library/web:V1" },
		{ "web:_", "docker.io/library/web:_" },
		{ "web:_.-x", "docker.io/library/web:_.-x" },
		{ "web:1.2.3-rc_4", "docker.io/library/web:1.2.3-rc_4" },
		{ "reg.example/a.b.example/web:a.b.example",
		  "reg.example/a.b.example/web:a.b.example" },
		{ "xn--bcher-kva.example/web", "xn--bcher-kva.example/web:latest" },
		{ F32, "docker.io/library/" F32 ":latest" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(v); i++)
		assert_parses_as(v[i][0], v[i][1]);
}

static void test_hosts(void **state)
{
	static const char *const v[][2] = {
		{ "localhost/web", "localhost/web:latest" },
		{ "localhost/team/web:x", "localhost/team/web:x" },
		{ "localhost", "docker.io/library/localhost:latest" },
		{ "localhost:32000", "docker.io/library/localhost:32000" },
		{ "localhost:32000/web", "localhost:32000/web:latest" },
		{ "localhost:32000/library/nginx:1", "localhost:32000/library/nginx:1" },
		{ "node7:32000/web:x", "node7:32000/web:x" },
		{ "node-7:1/web", "node-7:1/web:latest" },
		{ "Node7/web:x", "Node7/web:x" },
		{ "LOCALHOST/web", "LOCALHOST/web:latest" },
		{ "r.e.g.example:65535/web", "r.e.g.example:65535/web:latest" },
		{ "10.0.0.7/web", "10.0.0.7/web:latest" },
		{ "10.0.0.7", "docker.io/library/10.0.0.7:latest" },
		{ "10.0.0.7:32000", "docker.io/library/10.0.0.7:32000" },
		{ "10.0.0.7:32000/web:9", "10.0.0.7:32000/web:9" },
		{ "[fd00::7]/web", "[fd00::7]/web:latest" },
		{ "[FD00:0:0:0:0:0:0:7]/web:x", "[FD00:0:0:0:0:0:0:7]/web:x" },
		{ "[fd00::7]:32000/web", "[fd00::7]:32000/web:latest" },
		{ "[::]:1/web:x", "[::]:1/web:x" },
		{ "[fd00::7]:32000/web@sha256:" F64, "[fd00::7]:32000/web@sha256:" F64 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(v); i++)
		assert_parses_as(v[i][0], v[i][1]);
}

static void test_digests(void **state)
{
	static const char *const v[][2] = {
		{ "nginx@sha256:" F64, "docker.io/library/nginx@sha256:" F64 },
		{ "nginx:1@sha256:" F64, "docker.io/library/nginx:1@sha256:" F64 },
		{ "node7:32000/web@sha256:" F64, "node7:32000/web@sha256:" F64 },
		{ "quay.io/web:x@sha256:" F64, "quay.io/web:x@sha256:" F64 },
		{ "team/web@sha512:" F64 F64, "docker.io/team/web@sha512:" F64 F64 },
		{ "team/web@sha384:" F64 F32, "docker.io/team/web@sha384:" F64 F32 },
	};
	AUTO(reference_done) struct reference ref = { 0 };
	struct hw_err e;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(v); i++)
		assert_parses_as(v[i][0], v[i][1]);
	assert_int_equal(reference_parse("nginx:1@sha256:" F64, &ref, &e), 0);
	assert_string_equal(ref.tag, "1");
	assert_string_equal(reference_version(&ref), "sha256:" F64);
}

static void test_rejected(void **state)
{
	static const char *const v[][2] = {
		{ "", "empty reference" },
		{ F64, "64 hex digits" },
		{ ":x", "invalid repository name \"library/\"" },
		{ "@sha256:" F64, "invalid repository name \"library/\"" },
		{ "/", "invalid repository name \"/\"" },
		{ "/web", "invalid repository name" },
		{ "web/", "invalid repository name" },
		{ "team//web", "invalid repository name" },
		{ "docker.io/", "invalid repository name \"library/\"" },
		{ "quay.io//web", "invalid repository name" },
		{ "https://quay.io/web", "invalid registry \"https:\"" },
		{ "Web", "must be lowercase" },
		{ "node7:1/Team/web", "must be lowercase" },
		{ "team/we$b/x", "invalid repository name" },
		{ " web", "invalid repository name" },
		{ "web ", "invalid repository name" },
		{ "web\n", "invalid repository name" },
		{ "w..b", "invalid repository name" },
		{ "w___b", "invalid repository name" },
		{ "w._b", "invalid repository name" },
		{ "web-", "invalid repository name" },
		{ "-web", "invalid repository name" },
		{ ".web", "invalid repository name" },
		{ "../web", "invalid registry \"..\"" },
		{ "team/../web", "invalid repository name" },
		{ "a-b.c_d/web", "invalid registry \"a-b.c_d\"" },
		{ "-a.example/web", "invalid registry" },
		{ "a-.example/web", "invalid registry" },
		{ ".example/web", "invalid registry" },
		{ "example./web", "invalid registry" },
		{ "node7:/web", "invalid registry" },
		{ "node7:x/web", "invalid registry" },
		{ "node7:1:2/web", "invalid registry" },
		{ "\xc3\xa9.example/web", "invalid registry" },
		{ "\xc3\xa9", "invalid repository name" },
		{ "[fd00::7]", "invalid repository name" },
		{ "[fd00::7]:32000", "invalid repository name" },
		{ "[fd00::7%25eth1]/web", "invalid registry" },
		{ "[fd00::7%eth1]:1/web", "invalid registry" },
		{ "[]:1/web", "invalid registry" },
		{ "[::7/web", "invalid registry" },
		{ "[::7]x/web", "invalid registry" },
		{ "web:", "invalid tag \"\"" },
		{ "web:x:y", "invalid tag \"x:y\"" },
		{ "web:-x", "invalid tag" },
		{ "web:.x", "invalid tag" },
		{ "web:x/y/z", "invalid registry" },
		{ "quay.io/web:x/y", "invalid tag" },
		{ "web:x y", "invalid tag" },
		{ "web@", "unknown algorithm" },
		{ "web@x", "unknown algorithm" },
		{ "web@sha256", "unknown algorithm" },
		{ "web@sha256:", "got 0 hex digits, want 64" },
		{ "web@sha256:" F32, "got 32 hex digits, want 64" },
		{ "web@sha256:" F64 "f", "got 65 hex digits, want 64" },
		{ "web@sha512:" F64, "got 64 hex digits, want 128" },
		{ "web@sha256:" F32 "ABCDEFABCDEFABCDEFABCDEFABCDEFAB", "lower case" },
		{ "web@sha3:" F64, "unknown algorithm" },
		{ "web@md5:" F32, "unknown algorithm" },
		{ "web@sha256:" F64 "@sha256:" F64, "lower case" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(v); i++)
		assert_rejected(v[i][0], v[i][1]);
}

/* "a/a/a...:x" with @n characters in its path */
static char *long_path(size_t n)
{
	AUTO(buf_done) struct buf b = { 0 };

	buf_puts(&b, "quay.io/");
	for (size_t i = 0; i < n; i++)
		buf_putc(&b, i % 2 ? '/' : 'a');
	buf_puts(&b, ":x");
	return buf_take(&b);
}

static char *long_tag(size_t n)
{
	AUTO(buf_done) struct buf b = { 0 };

	buf_puts(&b, "quay.io/a:");
	for (size_t i = 0; i < n; i++)
		buf_putc(&b, 't');
	return buf_take(&b);
}

static void test_lengths(void **state)
{
	autofree char *path = long_path(255), *longer_path = long_path(257);
	autofree char *tag = long_tag(128), *longer_tag = long_tag(129), *whole = long_tag(2000);

	(void)state;
	assert_parses_as(path, path);
	assert_rejected(longer_path, "longer than 255 characters");
	assert_parses_as(tag, tag);
	assert_rejected(longer_tag, "invalid tag");
	assert_rejected(whole, "longer than 1024 characters");
}

static void test_parts(void **state)
{
	AUTO(reference_done) struct reference hub = { 0 }, own = { 0 };
	struct hw_err e;

	(void)state;
	assert_int_equal(reference_parse("nginx", &hub, &e), 0);
	autofree char *name = reference_name(&hub);
	assert_string_equal(name, "docker.io/library/nginx");
	assert_string_equal(reference_host(&hub), "registry-1.docker.io");
	assert_string_equal(reference_version(&hub), "latest");
	assert_int_equal(reference_parse("localhost:5000/a/b:c", &own, &e), 0);
	assert_string_equal(reference_host(&own), "localhost:5000");
	assert_string_equal(own.path, "a/b");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "reference: a short name is completed with docker.io, library and latest",
		  test_names },
		{ "reference: localhost, host:port and IP addresses are recognized as hosts",
		  test_hosts },
		{ "reference: with a digest, no default tag is added, and a given tag is kept",
		  test_digests },
		{ "reference: a malformed reference is rejected with a reason", test_rejected },
		{ "reference: a path, tag or reference that is too long is rejected",
		  test_lengths },
		{ "reference: functions return the name, host and version of a reference",
		  test_parts },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
