/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/spec/test-oci-spec.c - encoding and decoding of OCI configurations
 */
#include "oci/spec/spec.h"

#include <errno.h>

#include "oci/spec/test.h"

static void an_empty_configuration_has_what_crun_needs(void **state)
{
	struct oci_spec s = { 0 };
	autofree char *text = encode_spec(&s);

	(void)state;
	assert_string_equal(
		text, "{\"ociVersion\":\"1.0.2\",\"process\":{\"user\":{\"uid\":0,\"gid\":0},"
		      "\"cwd\":\"\",\"capabilities\":{\"bounding\":[],\"effective\":[],"
		      "\"inheritable\":[],\"permitted\":[],\"ambient\":[]}},\"root\":{\"path\":"
		      "\"\"},\"mounts\":[]}");
}

static const char whole[] =
	"{\"ociVersion\":\"1.0.2\",\"process\":{\"terminal\":true,\"consoleSize\":{\"height\":25,"
	"\"width\":80},\"user\":{\"uid\":1,\"gid\":2,\"additionalGids\":[2,3]},\"args\":[\"a\","
	"\"\"],\"env\":[\"A=b\"],\"cwd\":\"/\",\"capabilities\":{\"bounding\":[\"CAP_KILL\"],"
	"\"effective\":[\"CAP_KILL\"],\"inheritable\":[],\"permitted\":[\"CAP_KILL\"],\"ambient\":"
	"[]},\"rlimits\":[{\"type\":\"RLIMIT_NOFILE\",\"soft\":1,\"hard\":-1}],"
	"\"noNewPrivileges\":true,\"apparmorProfile\":\"p\",\"selinuxLabel\":\"l\",\"oomScoreAdj\":"
	"0},\"root\":{\"path\":\"/r\",\"readonly\":true},\"mounts\":[{\"destination\":\"/d\","
	"\"type\":\"bind\",\"source\":\"/s\",\"options\":[\"rbind\"],\"uidMappings\":"
	"[{\"containerID\":0,\"hostID\":5,\"size\":6}],\"gidMappings\":[{\"containerID\":0,"
	"\"hostID\":5,\"size\":6}]}],\"hooks\":{\"prestart\":[{\"path\":\"/h\",\"args\":[\"h\"],"
	"\"env\":[\"X=y\"],\"timeout\":3}],\"poststop\":[{\"path\":\"/i\"}]},\"annotations\":"
	"{\"k\":\"v\"},\"linux\":{\"namespaces\":[{\"type\":\"pid\"},{\"type\":\"network\","
	"\"path\":\"/n\"}],\"uidMappings\":[{\"containerID\":0,\"hostID\":5,\"size\":6}],"
	"\"gidMappings\":[{\"containerID\":0,\"hostID\":5,\"size\":6}],\"devices\":[{\"type\":"
	"\"c\",\"path\":\"/dev/x\",\"major\":1,\"minor\":0,\"fileMode\":432,\"uid\":0,\"gid\":5}],"
	"\"cgroupsPath\":\"/a/b\",\"resources\":{\"devices\":[{\"allow\":false,\"access\":\"rwm\"},"
	"{\"allow\":true,\"type\":\"c\",\"major\":1,\"minor\":0,\"access\":\"rw\"}],\"memory\":"
	"{\"limit\":1,\"swap\":-1},\"cpu\":{\"shares\":1,\"quota\":-1,\"period\":3,\"cpus\":\"0\","
	"\"mems\":\"1\"},\"pids\":{\"limit\":9},\"hugepageLimits\":[{\"pageSize\":\"2MB\","
	"\"limit\":"
	"0}],\"unified\":{\"memory.high\":\"max\"}},\"seccomp\":{\"defaultAction\":"
	"\"SCMP_ACT_ALLOW\"},\"rootfsPropagation\":\"rshared\",\"maskedPaths\":[\"/m\"],"
	"\"readonlyPaths\":[\"/p\"],\"mountLabel\":\"ml\"}}";

static void what_is_encoded_can_be_decoded(void **state)
{
	AUTO(spec_done) struct oci_spec s = { 0 };
	autofree char *again = NULL;
	struct hw_err e;

	(void)state;
	assert_ok(spec_decode(whole, strlen(whole), &s, &e), &e);
	again = encode_spec(&s);
	assert_string_equal(again, whole);
	assert_int_equal(((uint32_t *)s.process.user.additional_gids.v)[1], 3);
	assert_true(s.process.has_oom_score_adj);
}

static void a_malformed_configuration_is_rejected(void **state)
{
	static const char bad[] = "{\"linux\":{\"resources\":{\"cpu\":{\"quota\":\"1\"}}}}";
	struct oci_spec s;
	struct hw_err e;

	(void)state;
	assert_int_equal(spec_decode(bad, strlen(bad), &s, &e), -EBADMSG);
	assert_string_equal(e.msg, "OCI configuration: linux.resources.cpu.quota: expected a "
				   "number, got a string");
}

static void a_configuration_that_could_not_be_read_is_not_written(void **state)
{
	struct hw_strings args = { mem_new((5 << 20) * sizeof(char *)), 1 };
	struct oci_spec s = { .process.args = args };
	autofree char *text = NULL, *large = mem_new((5 << 20) + 1);
	struct hw_err e;

	(void)state;
	memset(large, 'x', 5 << 20);
	args.v[0] = large;
	assert_int_equal(spec_encode(&s, &text, &e), -E2BIG);
	assert_non_null(strstr(e.msg, "OCI configuration: "));
	for (s.process.args.n = 0; s.process.args.n < 1 << 19; s.process.args.n++)
		args.v[s.process.args.n] = (char *)"";
	assert_int_equal(spec_encode(&s, &text, &e), -E2BIG);
	free(args.v);
}

static void annotations_are_set_and_replaced(void **state)
{
	AUTO(spec_done) struct oci_spec s = { 0 };

	(void)state;
	spec_annotate(&s, "a", "1");
	spec_annotate(&s, "b", "2");
	spec_annotate(&s, "a", "3");
	assert_spec(&s, "annotations", "{'a':'3','b':'2'}");
	assert_string_equal(spec_find_annotation(&s, "b"), "2");
	assert_string_equal(spec_find_annotation(&s, "c"), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "spec: an empty configuration has the keys that crun needs",
		  an_empty_configuration_has_what_crun_needs },
		{ "spec: an encoded configuration can be decoded", what_is_encoded_can_be_decoded },
		{ "spec: a malformed configuration is rejected with the path of the key",
		  a_malformed_configuration_is_rejected },
		{ "spec: a configuration that is too large to be read is not written",
		  a_configuration_that_could_not_be_read_is_not_written },
		{ "spec: an annotation is added once and found", annotations_are_set_and_replaced },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
