/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/runtime/test-status.c - tests of STATUS, VERSION and validation with shell plugins
 */
#include "cni/test.h"

#include "cni/runtime/cni.h"
#include "cni/runtime/conf.h"

#define GOOD "cat >$D/$N.$CNI_COMMAND; note $CNI_COMMAND $N"
#define LIST(version)                                                                              \
	"{\"name\":\"n\",\"cniVersion\":\"" version "\",\"plugins\":[{\"type\":\"a\"},"            \
	"{\"type\":\"b\"}]}"
#define V100 LIST("1.0.0")
#define V110 LIST("1.1.0")
#define ONE  "{\"name\":\"n\",\"cniVersion\":\"1.0.0\",\"type\":\"a\"}"

struct fixture {
	const struct place *p;
	struct hw_cni *cni;
	struct hw_conf *conf; /* a list of version 1.0.0 */
	struct hw_err e;
};

static void fixture_done(struct fixture *f)
{
	hw_conf_free(f->conf);
	hw_cni_free(f->cni);
}

AUTO_VALUE_DEFINE(fixture_done, struct fixture);

/* Installs plugins a and b with these shell scripts; NULL: not installed. */
static struct fixture fixture(void **state, const char *a, const char *b)
{
	struct fixture f = { .p = *state, .cni = place_cni(*state), .conf = test_list(V100) };

	if (a)
		place_plugin(f.p, "a", a);
	if (b)
		place_plugin(f.p, "b", b);
	return f;
}

static void status_runs_each(void **state)
{
	AUTO(fixture_done) struct fixture f = fixture(state, GOOD, GOOD);
	AUTO(hw_conf_free) struct hw_conf *conf = test_list(V110);
	autofree char *text = NULL;

	assert_ok(hw_status(f.cni, conf, &f.e), f.e);
	assert_notes(f.p, "STATUS a\nSTATUS b\n");
	text = place_read(f.p, "a.STATUS");
	assert_string_equal(text, "{\"cniVersion\":\"1.1.0\",\"name\":\"n\",\"type\":\"a\"}");
	place_plugin(f.p, "a", "echo '{\"code\":50,\"msg\":\"not yet\"}'; exit 1");
	assert_true(hw_status(f.cni, conf, &f.e) < 0);
	assert_string_equal(f.e.msg, "not yet");
	assert_int_equal(hw_err_wire(&f.e), HW_CNI_NOT_AVAILABLE);
	assert_notes(f.p, "");
	/* there is no STATUS before 1.1.0 */
	assert_ok(hw_status(f.cni, f.conf, &f.e), f.e);
}

static void versions(void **state)
{
	static const struct {
		const char *body, *want; /* the versions joined by spaces, or the error message */
	} cases[] = {
		{ "echo '{\"cniVersion\":\"1.1.0\",\"supportedVersions\":[\"0.1.0\",\"9.9\"]}'",
		  "0.1.0 9.9" },
		{ "echo '{\"cniVersion\":\"0.2.0\"}'", "0.1.0 0.2.0" },
		{ "echo '{\"code\":4,\"msg\":\"unknown CNI_COMMAND: VERSION\"}'; exit 1", "0.1.0" },
		{ "echo '{\"code\":4,\"msg\":\"unknown CNI_COMMAND: VERSION\",\"details\":\"d\"}'; "
		  "exit 1",
		  "unknown CNI_COMMAND: VERSION" },
		{ "echo '{\"cniVersion\":\"1.0.0\"}'",
		  "decoding version info: missing field supportedVersions" },
		{ "echo '{}'", "decoding version info: missing field cniVersion" },
		{ "exit 1", "netplugin failed with no error message: exit status 1" },
	};
	AUTO(fixture_done) struct fixture f = fixture(state, NULL, NULL);

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		AUTO(hw_strings_free) struct hw_strings list = { 0 };
		AUTO(buf_done) struct buf got = { 0 };

		place_plugin(f.p, "a", cases[i].body);
		if (hw_plugin_versions(f.cni, "a", &list, &f.e) < 0)
			buf_puts(&got, f.e.msg);
		for (size_t j = 0; j < list.n; j++)
			buf_printf(&got, "%s%s", j ? " " : "", list.v[j]);
		assert_string_equal(got.data, cases[i].want);
	}
}

static void versions_failure(void **state)
{
	AUTO(fixture_done) struct fixture f = fixture(state, "exit 1", NULL);
	struct hw_strings untouched = { NULL, 7 };

	assert_true(hw_plugin_versions(f.cni, "a", &untouched, &f.e) < 0);
	assert_true(hw_plugin_versions(f.cni, "x", &untouched, &f.e) < 0);
	place_plugin(f.p, "a", "echo '{}'");
	assert_true(hw_plugin_versions(f.cni, "a", &untouched, &f.e) < 0);
	assert_int_equal(untouched.n, 7);
}

static void version_environment(void **state)
{
	AUTO(fixture_done)
	struct fixture f = fixture(state,
				   "note $CNI_COMMAND $CNI_NETNS $CNI_IFNAME $CNI_PATH "
				   "\"$CNI_CONTAINERID$CNI_ARGS\" $(cat)\n"
				   "echo '{\"cniVersion\":\"0.2.0\"}'",
				   NULL);
	AUTO(hw_strings_free) struct hw_strings list = { 0 };

	assert_ok(hw_plugin_versions(f.cni, "a", &list, &f.e), f.e);
	assert_notes(f.p, "VERSION dummy dummy dummy  {\"cniVersion\":\"1.1.0\"}\n");
}

#define SUPPORTS(list) "echo '{\"cniVersion\":\"1.1.0\",\"supportedVersions\":[" list "]}'"

static void validate_list(void **state)
{
	AUTO(fixture_done)
	struct fixture f = fixture(state, SUPPORTS("\"0.4.0\""), SUPPORTS("\"1.0.0\",\"1.1.0\""));
	AUTO(hw_strings_free) struct hw_strings caps = { 0 };
	AUTO(hw_conf_free)
	struct hw_conf *conf =
		test_list("{\"name\":\"n\",\"cniVersion\":\"1.0.0\",\"plugins\":["
			  "{\"type\":\"b\",\"capabilities\":{\"x\":true,\"y\":false}},"
			  "{\"type\":\"b\",\"capabilities\":{\"x\":true,\"z\":true}}]}");
	const char *const wanted[] = { "x", "y", NULL };

	assert_ok(hw_validate(f.cni, conf, NULL, &caps, &f.e), f.e);
	assert_int_equal(caps.n, 2);
	assert_true(strings_has(&caps, "x") && strings_has(&caps, "z"));
	assert_true(hw_validate(f.cni, conf, wanted, NULL, &f.e) < 0);
	assert_string_equal(f.e.msg, "network \"n\" does not declare capability \"y\"");
	assert_true(hw_validate(f.cni, f.conf, NULL, NULL, &f.e) < 0);
	assert_string_equal(f.e.msg, "[plugin a does not support config version \"1.0.0\"]");
}

static void validate_without_version(void **state)
{
	AUTO(fixture_done) struct fixture f = fixture(state, SUPPORTS("\"0.1.0\""), NULL);
	AUTO(hw_conf_free) struct hw_conf *one = test_plugin("{\"name\":\"n\",\"type\":\"a\"}");

	assert_ok(hw_validate(f.cni, one, NULL, NULL, &f.e), f.e);
	place_plugin(f.p, "a", SUPPORTS("\"0.2.0\""));
	assert_true(hw_validate(f.cni, one, NULL, NULL, &f.e) < 0);
	assert_string_equal(f.e.msg, "plugin a does not support config version \"0.1.0\"");
}

static void validate_joins_errors(void **state)
{
	AUTO(fixture_done) struct fixture f = fixture(state, SUPPORTS("\"0.4.0\""), NULL);
	autofree char *want = str_printf("[plugin a does not support config version \"1.0.0\" "
					 "failed to find plugin \"b\" in path [%s]]",
					 f.p->bin);
	AUTO(hw_conf_free) struct hw_conf *one = test_plugin(ONE);

	assert_true(hw_validate(f.cni, f.conf, NULL, NULL, &f.e) < 0);
	assert_string_equal(f.e.msg, want);
	assert_true(hw_validate(f.cni, one, NULL, NULL, &f.e) < 0);
	assert_string_equal(f.e.msg, "plugin a does not support config version \"1.0.0\"");
}

/* ---- time ----------------------------------------------------------------------- */

struct deadlines {
	int64_t v[2];
	size_t n;
};

static int note_deadline(void *ctx, const struct hw_run *run, struct hw_ran *ret_ran,
			 struct hw_err *e)
{
	struct deadlines *d = ctx;

	(void)e;
	assert_true(d->n < ARRAY_SIZE(d->v));
	d->v[d->n++] = run->deadline_ns;
	ret_ran->output = str_copy("{\"cniVersion\":\"0.2.0\"}");
	ret_ran->output_len = strlen(ret_ran->output);
	return 0;
}

static void one_deadline(void **state)
{
	AUTO(fixture_done) struct fixture f = fixture(state, "", "");
	struct deadlines d = { 0 };

	f.cni->exec = (struct hw_exec){ .ctx = &d, .run = note_deadline };
	f.cni->timeout_ms = 1000;
	assert_true(hw_validate(f.cni, f.conf, NULL, NULL, &f.e) < 0);
	assert_int_equal(d.n, 2);
	assert_true(d.v[0] > 0 && d.v[0] == d.v[1]);
}

static const struct CMUnitTest tests[] = {
	PLACE_TEST("status: STATUS runs each plugin, and a plugin's error keeps its code",
		   status_runs_each),
	PLACE_TEST("versions: a plugin's versions are returned, or the reason why they are unknown",
		   versions),
	PLACE_TEST("versions: on failure the output is not written", versions_failure),
	PLACE_TEST("versions: VERSION is called with the variables that old plugins require",
		   version_environment),
	PLACE_TEST("validate: an unsupported version or undeclared capability of a list is refused",
		   validate_list),
	PLACE_TEST("validate: a missing version means 0.1.0", validate_without_version),
	PLACE_TEST(
		"validate: a list returns the errors of all plugins, a single plugin its own error",
		validate_joins_errors),
	PLACE_TEST("validate: the timeout applies to the whole call", one_deadline),
};

int main(void)
{
	return cmocka_run_group_tests_name("status", tests, NULL, NULL);
}
