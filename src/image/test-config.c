/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/test-config.c - parsing of image configurations
 */
#include "image/config.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include "base/str.h"

#define A64	"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define DIFF_ID "\"sha256:" A64 "\""

static const char whole[] =
	"{\"created\":\"2024-01-02T03:04:05.6Z\",\"author\":\"me\",\"architecture\":\"arm64\","
	"\"variant\":\"v8\",\"os\":\"linux\",\"config\":{\"User\":\"1003:www\",\"ExposedPorts\":"
	"{\"80/tcp\":{},\"53/udp\":{}},\"Env\":[\"PATH=/bin\",\"A=b=c\"],\"Entrypoint\":[\"/run\"],"
	"\"Cmd\":[\"-x\",\"\"],\"Volumes\":{\"/data\":{}},\"WorkingDir\":\"/srv\",\"Labels\":"
	"{\"k\":\"v\"},\"StopSignal\":\"SIGQUIT\",\"OnBuild\":null,\"Hostname\":\"x\"},"
	"\"rootfs\":{\"type\":\"layers\",\"diff_ids\":[" DIFF_ID "]},\"history\":[{\"created\":"
	"\"2024-01-02T03:04:05Z\",\"created_by\":\"COPY\"},{\"created_by\":\"CMD\",\"empty_layer\":"
	"true}],\"container\":\"x\",\"docker_version\":\"20\"}";

static struct image_config *parse(const char *json)
{
	struct image_config *c = NULL;
	struct hw_err e;

	if (image_config_parse(json, strlen(json), &c, &e) < 0)
		fail_msg("%s", e.msg);
	return c;
}

static void test_all_fields(void **state)
{
	AUTO(image_config_free) struct image_config *c = parse(whole);
	const struct image_step *steps = c->history.v;
	char id[DIGEST_TEXT];

	(void)state;
	digest_of(whole, strlen(whole), id);
	assert_string_equal(c->id, id);
	assert_string_equal(c->created, "2024-01-02T03:04:05.6Z");
	assert_string_equal(c->platform.architecture, "arm64");
	assert_string_equal(c->platform.variant, "v8");
	assert_string_equal(c->env.v[1], "A=b=c");
	assert_string_equal(c->entrypoint.v[0], "/run");
	assert_int_equal(c->cmd.n, 2);
	assert_int_equal(c->volumes.n, 1);
	assert_string_equal(c->volumes.v[0], "/data");
	assert_int_equal(c->ports.n, 2);
	assert_string_equal(c->ports.v[1], "53/udp");
	assert_string_equal(c->working_dir, "/srv");
	assert_string_equal(c->labels.values[0], "v");
	assert_string_equal(c->stop_signal, "SIGQUIT");
	assert_string_equal(c->diff_ids.v[0], "sha256:" A64);
	assert_int_equal(c->history.n, 2);
	assert_true(steps[1].empty_layer);
}

static void test_absent_fields(void **state)
{
	AUTO(image_config_free) struct image_config *none = parse("{}");
	AUTO(image_config_free)
	struct image_config *nulls =
		parse("{\"config\":null,\"rootfs\":{\"diff_ids\":null},\"history\":null}");
	AUTO(image_config_free)
	struct image_config *inner = parse("{\"config\":{\"Env\":null,\"Volumes\":null,"
					   "\"ExposedPorts\":null,\"Labels\":null}}");
	int64_t uid;

	(void)state;
	assert_int_equal(none->diff_ids.n + nulls->diff_ids.n + inner->volumes.n, 0);
	assert_false(image_config_uid(none, &uid));
	assert_null(image_config_username(none));
}

static void test_users(void **state)
{
	static const struct {
		const char *user;
		int64_t uid; /* -1: not a number */
		const char *name;
	} v[] = {
		{ "", -1, NULL },
		{ "0", 0, NULL },
		{ "1002", 1002, NULL },
		{ "1003:www", 1003, NULL },
		{ "1003:5", 1003, NULL },
		{ "www-data", -1, "www-data" },
		{ "www-data:5", -1, "www-data" },
		{ ":5", -1, NULL },
		{ "-1", -1, "-1" },
		{ "1x", -1, "1x" },
		{ "4294967296", 4294967296, NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		autofree char *json = str_printf("{\"config\":{\"User\":\"%s\"}}", v[i].user);
		AUTO(image_config_free) struct image_config *c = parse(json);
		autofree char *name = image_config_username(c);
		int64_t uid = -1;

		assert_int_equal(image_config_uid(c, &uid), v[i].uid >= 0);
		assert_int_equal(uid, v[i].uid);
		if (v[i].name)
			assert_string_equal(name, v[i].name);
		else
			assert_null(name);
	}
}

static void test_rejected(void **state)
{
	static const char *const v[][2] = {
		{ "<html>", "image configuration: " },
		{ "[]", "image configuration: " },
		{ "{\"config\":[]}", "config" },
		{ "{\"config\":{\"Env\":\"A=b\"}}", "config.Env" },
		{ "{\"config\":{\"Volumes\":[\"/a\"]}}", "config.Volumes: expected an object" },
		{ "{\"config\":{\"ExposedPorts\":1}}", "config.ExposedPorts: expected an object" },
		{ "{\"rootfs\":{\"diff_ids\":[\"x\"]}}", "rootfs.diff_ids[0]: digest \"x\"" },
		{ "{\"rootfs\":{\"diff_ids\":[\"sha512:" A64 A64 "\"]}}",
		  "unsupported digest sha512" },
		{ "{\"history\":{}}", "history" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		struct image_config *c = NULL;
		struct hw_err e = { 0 };

		assert_true(image_config_parse(v[i][0], strlen(v[i][0]), &c, &e) < 0);
		if (!strstr(e.msg, v[i][1]))
			fail_msg("%s: %s", v[i][0], e.msg);
		assert_null(c);
	}
}

static void test_layer_count(void **state)
{
	AUTO(image_config_free) struct image_config *c = parse(whole);
	struct manifest one = { .layers.n = 1 }, two = { .layers.n = 2 };
	struct hw_err e;

	(void)state;
	assert_int_equal(image_config_check(c, &one, &e), 0);
	assert_int_equal(image_config_check(c, &two, &e), -EBADMSG);
	assert_string_equal(
		e.msg,
		"layer count mismatch: the image configuration lists 1 layers, the manifest 2");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "config: all fields are decoded, and the image ID is the digest of the document",
		  test_all_fields },
		{ "config: absent and null fields are empty", test_absent_fields },
		{ "config: the part of User before the colon is decoded as a number or a name",
		  test_users },
		{ "config: a malformed configuration is rejected with a reason", test_rejected },
		{ "config: a number of layers that differs from the manifest is rejected",
		  test_layer_count },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
