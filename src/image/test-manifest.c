/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/test-manifest.c - parsing of manifests and indexes
 */
#include "image/manifest.h"

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

#define A64	"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define OCI	"application/vnd.oci.image."
#define DOCKER	"application/vnd.docker."
#define D(type) "{\"mediaType\":\"" type "\",\"digest\":\"sha256:" A64 "\",\"size\":7}"
#define CONFIG	"\"config\":" D(OCI "config.v1+json")
#define LAYER	D(OCI "layer.v1.tar+gzip")
#define IMAGE	"{\"schemaVersion\":2," CONFIG ",\"layers\":[" LAYER "]}"
#define ENTRY(os, arch, more)                                                                      \
	"{\"mediaType\":\"" OCI "manifest.v1+json\",\"digest\":\"sha256:" A64 "\",\"size\":7,"     \
	"\"platform\":{\"os\":\"" os "\",\"architecture\":\"" arch "\"" more "}}"
#define INDEX(entries) "{\"schemaVersion\":2,\"manifests\":[" entries "]}"

static struct manifest *parse(const char *json, const char *type)
{
	struct manifest *m = NULL;
	struct hw_err e;

	if (manifest_parse(json, strlen(json), type, &m, &e) < 0)
		fail_msg("%s", e.msg);
	return m;
}

static void test_images(void **state)
{
	AUTO(manifest_free) struct manifest *oci = parse(IMAGE, OCI "manifest.v1+json");
	AUTO(manifest_free)
	struct manifest *docker = parse(
		"{\"schemaVersion\":2,\"mediaType\":\"" DOCKER "distribution.manifest.v2+json\","
		"\"config\":" D(DOCKER "container.image.v1+json") ",\"layers\":[" D(
			DOCKER
			"image.rootfs.diff.tar.gzip") "," D(DOCKER "image.rootfs.diff.tar") "]}",
		NULL);
	enum layer_format format;
	struct hw_err e;

	(void)state;
	assert_int_equal(oci->kind, MANIFEST_IMAGE);
	assert_string_equal(oci->config.digest, "sha256:" A64);
	assert_int_equal(oci->layers.n, 1);
	assert_int_equal(manifest_layer(oci, 0)->size, 7);
	assert_int_equal(manifest_check_image(oci, &e), 0);
	assert_int_equal(docker->kind, MANIFEST_IMAGE);
	assert_int_equal(manifest_check_image(docker, &e), 0);
	assert_int_equal(manifest_layer_format(manifest_layer(docker, 0), &format, &e), 0);
	assert_int_equal(format, LAYER_GZIP);
	assert_int_equal(manifest_layer_format(manifest_layer(docker, 1), &format, &e), 0);
	assert_int_equal(format, LAYER_TAR);
}

static void test_content_types(void **state)
{
	static const char *const v[] = {
		OCI "manifest.v1+json; charset=utf-8",
		DOCKER "distribution.manifest.v2+json",
		"application/json",
		"text/plain",
		"",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		AUTO(manifest_free) struct manifest *m = parse(IMAGE, v[i]);

		assert_int_equal(m->kind, MANIFEST_IMAGE);
	}
	assert_int_equal(manifest_kind_of("Application/vnd.OCI.image.index.v1+json"),
			 MANIFEST_INDEX);
	assert_int_equal(manifest_kind_of(OCI "index.v1+jsonx"), MANIFEST_NONE);
	assert_int_equal(manifest_kind_of(NULL), MANIFEST_NONE);
}

static void test_rejected(void **state)
{
	static const struct {
		const char *json, *type;
		int code;
		const char *why;
	} v[] = {
		{ "", NULL, -EBADMSG, "manifest: " },
		{ "<html>", NULL, -EBADMSG, "manifest: " },
		{ "[]", NULL, -EBADMSG, "manifest: " },
		{ "{}", NULL, -EOPNOTSUPP, "schemaVersion 0" },
		{ "{\"schemaVersion\":3}", NULL, -EOPNOTSUPP, "schemaVersion 3" },
		{ "{\"schemaVersion\":1,\"fsLayers\":[]}", NULL, -EOPNOTSUPP,
		  "schema 1 is not supported" },
		{ IMAGE, DOCKER "distribution.manifest.v1+prettyjws", -EOPNOTSUPP,
		  "schema 1 is not supported" },
		{ "not JSON", DOCKER "distribution.manifest.v1+json", -EOPNOTSUPP,
		  "schema 1 is not supported" },
		{ "{\"schemaVersion\":2}", NULL, -EBADMSG, "neither" },
		{ "{\"schemaVersion\":2," CONFIG "}", NULL, -EBADMSG, "neither" },
		{ "{\"schemaVersion\":2," CONFIG ",\"layers\":[],\"manifests\":[]}", NULL, -EBADMSG,
		  "both manifests and layers" },
		{ IMAGE, OCI "index.v1+json", -EBADMSG,
		  "does not match its Content-Type " OCI "index" },
		{ INDEX(""), OCI "manifest.v1+json", -EBADMSG,
		  "does not match its Content-Type " OCI "manifest" },
		{ "{\"schemaVersion\":2,\"mediaType\":\"" OCI "index.v1+json\"," CONFIG
		  ",\"layers\":[]}",
		  NULL, -EBADMSG, "does not match its media type " OCI "index" },
		{ "{\"schemaVersion\":2,\"mediaType\":\"x/y\"," CONFIG ",\"layers\":[]}", NULL,
		  -EOPNOTSUPP, "unsupported media type \"x/y\"" },
		{ "{\"schemaVersion\":2," CONFIG ",\"layers\":[{\"digest\":\"sha256:a\","
		  "\"size\":1}]}",
		  NULL, -EBADMSG, "layers[0]: digest" },
		{ "{\"schemaVersion\":2," CONFIG ",\"layers\":[" LAYER ",{\"digest\":\"../../etc\","
		  "\"size\":1}]}",
		  NULL, -EBADMSG, "layers[1]: digest" },
		{ "{\"schemaVersion\":2," CONFIG ",\"layers\":[{\"digest\":\"sha256:" A64
		  "\",\"size\":-1}]}",
		  NULL, -EBADMSG, "size" },
		{ "{\"schemaVersion\":2," CONFIG ",\"layers\":[{\"size\":1}]}", NULL, -EBADMSG,
		  "digest" },
		{ "{\"schemaVersion\":2,\"config\":{\"digest\":\"x\",\"size\":1},\"layers\":[]}",
		  NULL, -EBADMSG, "config: digest" },
		{ INDEX("{\"digest\":\"md5:00\",\"size\":1}"), NULL, -EBADMSG, "manifests[0]" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		struct manifest *m = NULL;
		struct hw_err e = { 0 };
		int r = manifest_parse(v[i].json, strlen(v[i].json), v[i].type, &m, &e);

		if (r != v[i].code || !strstr(e.msg, v[i].why))
			fail_msg("%s: %d, %s", v[i].json, r, e.msg);
		assert_null(m);
	}
}

static void test_limits(void **state)
{
	AUTO(buf_done) struct buf many = { 0 }, large = { 0 };
	struct manifest *m = NULL;
	struct hw_err e;

	(void)state;
	buf_puts(&many, "{\"schemaVersion\":2," CONFIG ",\"layers\":[" LAYER);
	for (int i = 0; i < MANIFEST_ENTRIES_MAX; i++)
		buf_puts(&many, "," LAYER);
	buf_puts(&many, "]}");
	assert_int_equal(manifest_parse(many.data, many.len, NULL, &m, &e), -EFBIG);
	memset(buf_reserve(&large, MANIFEST_SIZE_MAX + 1), ' ', MANIFEST_SIZE_MAX + 1);
	buf_commit(&large, MANIFEST_SIZE_MAX + 1);
	assert_int_equal(manifest_parse(large.data, large.len, NULL, &m, &e), -EFBIG);
	assert_non_null(strstr(e.msg, "size is 4194305 bytes, want at most 4194304"));
}

/* Return: the position of the chosen entry; -1 and an error in @e if no entry matches */
static int choose(const char *json, const char *architecture, const char *variant, struct hw_err *e)
{
	AUTO(manifest_free) struct manifest *m = parse(json, NULL);
	const struct platform wanted = { (char *)"linux", (char *)architecture, (char *)variant };
	const struct descriptor *chosen = NULL;

	assert_int_equal(m->kind, MANIFEST_INDEX);
	if (manifest_choose(m, &wanted, &chosen, e) < 0)
		return -1;
	return (int)(chosen - (const struct descriptor *)m->manifests.v);
}

static void test_choices(void **state)
{
	static const char several[] = INDEX(
		ENTRY("linux", "arm", ",\"variant\":\"v6\"") "," ENTRY("linux", "386", "") "," ENTRY(
			"windows", "amd64",
			"") "," ENTRY("linux", "amd64",
				      "") "," ENTRY("linux", "arm64",
						    ",\"variant\":\"v8\"") "," ENTRY("linux",
										     "amd64",
										     "") "," ENTRY("linux",
												   "arm",
												   ",\"variant\":"
												   "\"v7\"") "," ENTRY("unknown",
														       "unknown",
														       ""));
	static const char plain[] = INDEX(D(OCI "manifest.v1+json"));
	static const char foreign[] = INDEX(D("application/x") "," ENTRY("linux", "amd64", ""));
	struct hw_err e;

	(void)state;
	assert_int_equal(choose(several, "amd64", NULL, &e), 3);
	assert_int_equal(choose(several, "arm64", NULL, &e), 4);
	assert_int_equal(choose(several, "arm", "v7", &e), 6);
	assert_int_equal(choose(several, "arm", "v6", &e), 0);
	assert_int_equal(choose(several, "386", NULL, &e), 1);
	assert_int_equal(choose(plain, "amd64", NULL, &e), 0);
	assert_int_equal(choose(foreign, "amd64", NULL, &e), 1);
	assert_int_equal(choose(several, "s390x", NULL, &e), -1);
	assert_string_equal(e.msg, "no image for linux/s390x, available: linux/arm/v6, "
				   "linux/386, windows/amd64, linux/amd64, linux/arm64/v8, "
				   "linux/amd64, linux/arm/v7");
	assert_int_equal(choose(INDEX(""), "amd64", NULL, &e), -1);
	assert_string_equal(e.msg, "no image for linux/amd64, available: none");
}

static void test_artifacts(void **state)
{
	AUTO(manifest_free)
	struct manifest *artifact = parse(
		"{\"schemaVersion\":2,\"artifactType\":\"application/x\",\"config\":" D(
			"application/vnd.oci.empty.v1+json") ",\"layers\":[" D("text/plain") "]}",
		NULL);
	AUTO(manifest_free)
	struct manifest *encrypted = parse("{\"schemaVersion\":2," CONFIG ",\"layers\":[" LAYER
					   "," D(OCI "layer.v1.tar+gzip+encrypted") "]}",
					   NULL);
	struct hw_err e;

	(void)state;
	assert_int_equal(manifest_check_image(artifact, &e), -EOPNOTSUPP);
	assert_non_null(strstr(e.msg, "artifact, not a container image"));
	assert_int_equal(manifest_check_image(encrypted, &e), -EOPNOTSUPP);
	assert_non_null(
		strstr(e.msg, "unsupported media type \"" OCI "layer.v1.tar+gzip+encrypted\""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "manifest: OCI and Docker images are parsed", test_images },
		{ "manifest: a generic or missing Content-Type is ignored", test_content_types },
		{ "manifest: a malformed manifest is rejected with a reason", test_rejected },
		{ "manifest: a manifest with too many bytes or entries is rejected", test_limits },
		{ "manifest: the best matching entry of an index is chosen", test_choices },
		{ "manifest: artifacts and encrypted layers are rejected", test_artifacts },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
