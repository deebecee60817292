/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/runtime/test-run.c - tests of ADD, DEL and CHECK with shell plugins
 */
#include "cni/runtime/run.h"

#include "cni/test.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mount.h>

#include "base/json/value.h"
#include "base/time.h"
#include "cni/lock.h"
#include "cni/result.h"
#include "cni/runtime/cache.h"
#include "cni/runtime/cni.h"

/* A plugin that adds the call to its notes, writes its input to NAME.COMMAND and replies to ADD
 * with an address. */
#define GOOD                                                                                       \
	"cat >$D/$N.$CNI_COMMAND; note $CNI_COMMAND $N\n"                                          \
	"[ $CNI_COMMAND != ADD ] || echo '{\"cniVersion\":\"1.0.0\",\"ips\":"                      \
	"[{\"address\":\"10.0.0.2/24\"}]}'"
#define BAD "note $CNI_COMMAND $N; echo '{\"code\":100,\"msg\":\"no\",\"details\":\"d\"}'; exit 1"
/* A plugin whose ADD fails. */
#define BAD_ADD "if [ $CNI_COMMAND = ADD ]; then " BAD "; else " GOOD "; fi"

#define TWO                                                                                        \
	"{\"name\":\"n\",\"cniVersion\":\"1.0.0\",\"plugins\":[{\"type\":\"a\"},{\"type\":\"b\"}]" \
	"}"
#define ONE	   "{\"name\":\"n\",\"cniVersion\":\"1.0.0\",\"type\":\"a\"}"
#define CACHE_FILE "cache/results/n-c1-eth0"

/* Return: the value of a key in a JSON file, as text; NULL: missing */
static char *read_key(const struct place *p, const char *file, const char *key)
{
	autofree char *text = place_read(p, file);
	AUTO(value_free) struct value *v = NULL;
	struct value *member;
	struct hw_err e;

	assert_ok(value_parse(text, strlen(text), &v, &e), e);
	member = value_find(v, key);
	return member ? value_format(member, 0) : NULL;
}

static void assert_key(const struct place *p, const char *file, const char *key, const char *want)
{
	autofree char *text = read_key(p, file, key);

	if (!want)
		assert_null(text);
	else
		assert_string_equal(str_or(text, "(absent)"), want);
}

struct fixture {
	const struct place *p;
	struct hw_cni *cni;
	struct hw_conf *conf;
	struct hw_attach at;
	struct hw_err e;
};

static void fixture_done(struct fixture *f)
{
	hw_conf_free(f->conf);
	hw_cni_free(f->cni);
}

AUTO_VALUE_DEFINE(fixture_done, struct fixture);

static struct fixture fixture(void **state, const char *a, const char *b)
{
	struct fixture f = { .p = *state, .cni = place_cni(*state), .at = TEST_ATTACH };

	if (a)
		place_plugin(f.p, "a", a);
	if (b)
		place_plugin(f.p, "b", b);
	f.conf = test_list(TWO);
	return f;
}

/* ---- lists ---------------------------------------------------------------------- */

static void add_runs_list(void **state)
{
	AUTO(fixture_done) struct fixture f = fixture(state, GOOD, GOOD);
	AUTO(hw_result_free) struct hw_result *result = NULL;

	assert_ok(hw_add(f.cni, f.conf, &f.at, 0, &result, &f.e), f.e);
	assert_int_equal(result->n_ips, 1);
	assert_string_equal(result->version, "1.0.0");
	assert_notes(f.p, "ADD a\nADD b\n");
	assert_key(f.p, "a.ADD", "name", "\"n\"");
	assert_key(f.p, "a.ADD", "cniVersion", "\"1.0.0\"");
	assert_key(f.p, "a.ADD", "prevResult", NULL);
	assert_key(f.p, "b.ADD", "prevResult",
		   "{\"cniVersion\":\"1.0.0\",\"ips\":[{\"address\":\"10.0.0.2/24\"}]}");
	assert_key(f.p, CACHE_FILE, "containerId", "\"c1\"");
}

static void result_of_another_version(void **state)
{
	AUTO(fixture_done)
	struct fixture f = fixture(state,
				   "echo '{\"cniVersion\":\"0.4.0\",\"ips\":[{\"version\":"
				   "\"4\",\"address\":\"10.0.0.3/24\"}]}'",
				   GOOD);

	assert_ok(hw_add(f.cni, f.conf, &f.at, 0, NULL, &f.e), f.e);
	assert_key(f.p, "b.ADD", "prevResult",
		   "{\"cniVersion\":\"0.4.0\",\"dns\":{},\"ips\":[{\"address\":\"10.0.0.3/24\","
		   "\"version\":\"4\"}]}");
}

static void del_runs_in_reverse(void **state)
{
	AUTO(fixture_done) struct fixture f = fixture(state, GOOD, GOOD);

	assert_ok(hw_add(f.cni, f.conf, &f.at, 0, NULL, &f.e), f.e);
	free(place_notes(f.p));
	assert_ok(hw_del(f.cni, f.conf, &f.at, &f.e), f.e);
	assert_notes(f.p, "DEL b\nDEL a\n");
	assert_key(f.p, "b.DEL", "prevResult",
		   "{\"cniVersion\":\"1.0.0\",\"ips\":[{\"address\":\"10.0.0.2/24\"}]}");
	assert_false(place_has(f.p, CACHE_FILE));
	assert_ok(hw_del(f.cni, f.conf, &f.at, &f.e), f.e);
	assert_key(f.p, "a.DEL", "prevResult", NULL);
}

static void check_gets_result(void **state)
{
	AUTO(fixture_done) struct fixture f = fixture(state, GOOD, GOOD);

	assert_ok(hw_check(f.cni, f.conf, &f.at, &f.e), f.e);
	assert_key(f.p, "a.CHECK", "prevResult", NULL);
	assert_ok(hw_add(f.cni, f.conf, &f.at, 0, NULL, &f.e), f.e);
	free(place_notes(f.p));
	assert_ok(hw_check(f.cni, f.conf, &f.at, &f.e), f.e);
	assert_notes(f.p, "CHECK a\nCHECK b\n");
	assert_key(f.p, "a.CHECK", "prevResult",
		   "{\"cniVersion\":\"1.0.0\",\"ips\":[{\"address\":\"10.0.0.2/24\"}]}");
	assert_true(place_has(f.p, CACHE_FILE));
}

static void result_of_the_caller_is_used_without_cache(void **state)
{
	static const char *const want =
		"{\"cniVersion\":\"1.0.0\",\"ips\":[{\"address\":\"10.0.0.2/24\"}]}";
	AUTO(fixture_done) struct fixture f = fixture(state, GOOD, GOOD);

	/* of another version: the plugins get it in that of the network */
	f.at.prev_result = "{\"cniVersion\":\"0.4.0\",\"ips\":[{\"version\":\"4\","
			   "\"address\":\"10.0.0.2/24\"}]}";
	assert_ok(hw_check(f.cni, f.conf, &f.at, &f.e), f.e);
	assert_key(f.p, "a.CHECK", "prevResult", want);
	assert_ok(hw_del(f.cni, f.conf, &f.at, &f.e), f.e);
	assert_key(f.p, "b.DEL", "prevResult", want);
	f.at.prev_result = "{";
	assert_true(hw_check(f.cni, f.conf, &f.at, &f.e) < 0);
	assert_starts(f.e.msg, "prev_result: ");
	assert_ok(hw_del(f.cni, f.conf, &f.at, &f.e), f.e);
	assert_key(f.p, "a.DEL", "prevResult", NULL);
	/* the cache takes precedence */
	assert_ok(hw_add(f.cni, f.conf, &f.at, 0, NULL, &f.e), f.e);
	assert_ok(hw_check(f.cni, f.conf, &f.at, &f.e), f.e);
	assert_key(f.p, "a.CHECK", "prevResult", want);
}

static void arguments_reach_the_plugins(void **state)
{
	static const char *const args[][2] = { { "IgnoreUnknown", "1" }, { "K", "v" } };
	AUTO(fixture_done)
	struct fixture f = fixture(state,
				   "cat >$D/in; note $CNI_ARGS $CNI_CONTAINERID $CNI_NETNS "
				   "$CNI_IFNAME $CNI_PATH; echo '{}'",
				   NULL);
	autofree char *want =
		str_printf("IgnoreUnknown=1;K=v c1 /run/netns/c1 eth0 %s\n", f.p->bin);
	AUTO(hw_conf_free)
	struct hw_conf *conf = test_list("{\"name\":\"n\",\"cniVersion\":\"1.0.0\",\"plugins\":["
					 "{\"type\":\"a\",\"capabilities\":{\"mac\":true}}]}");

	f.at.args = args;
	f.at.n_args = 2;
	f.at.capability_args = "{\"mac\":\"02:00:00:00:00:01\",\"ips\":[\"10.0.0.9\"]}";
	assert_ok(hw_add(f.cni, conf, &f.at, 0, NULL, &f.e), f.e);
	assert_notes(f.p, want);
	assert_key(f.p, "in", "runtimeConfig", "{\"mac\":\"02:00:00:00:00:01\"}");
	assert_key(f.p, CACHE_FILE, "cniArgs", "[[\"IgnoreUnknown\",\"1\"],[\"K\",\"v\"]]");
}

/* ---- checks before the first plugin runs -------------------------------------------- */

static void names_are_checked_first(void **state)
{
	static const struct {
		const char *id, *ifname, *msg;
		int wire;
	} bad[] = {
		{ NULL, "eth0", "plugin type=\"a\" failed (add): missing containerID", 3 },
		{ "", "eth0", "plugin type=\"a\" failed (add): missing containerID", 3 },
		{ "c/1", "eth0",
		  "plugin type=\"a\" failed (add): invalid characters in containerID", 4 },
		{ "c1", NULL, "plugin type=\"a\" failed (add): interface name is empty", 4 },
		{ "c1", "..", "plugin type=\"a\" failed (add): interface name is . or ..", 4 },
	};
	AUTO(fixture_done) struct fixture f = fixture(state, GOOD, GOOD);

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		f.at.container_id = bad[i].id;
		f.at.ifname = bad[i].ifname;
		assert_true(hw_add(f.cni, f.conf, &f.at, 0, NULL, &f.e) < 0);
		assert_string_equal(f.e.msg, bad[i].msg);
		assert_int_equal(hw_err_wire(&f.e), bad[i].wire);
	}
	assert_notes(f.p, "");
}

static void arguments_are_checked_first(void **state)
{
	static const char *const pair[][2] = { { "K", "v" }, { "L", NULL } };
	AUTO(fixture_done) struct fixture f = fixture(state, GOOD, GOOD);

	f.at.capability_args = "[]"; /* checked although no plugin declares capabilities */
	assert_int_equal(hw_add(f.cni, f.conf, &f.at, 0, NULL, &f.e), -EINVAL);
	assert_string_equal(f.e.msg, "capability arguments: expected an object, got an array");
	f.at.capability_args = "{\"mac\":";
	assert_int_equal(hw_add(f.cni, f.conf, &f.at, 0, NULL, &f.e), -EINVAL);
	assert_contains(f.e.msg, "capability arguments: malformed JSON");
	f.at.capability_args = NULL;
	f.at.args = pair;
	f.at.n_args = 2;
	assert_int_equal(hw_add(f.cni, f.conf, &f.at, 0, NULL, &f.e), -EINVAL);
	assert_string_equal(f.e.msg, "CNI_ARGS: pair 1 has no value");
	assert_notes(f.p, "");
}

static void bad_network_name(void **state)
{
	AUTO(fixture_done) struct fixture f = fixture(state, GOOD, NULL);
	AUTO(hw_conf_free)
	struct hw_conf *conf = test_list("{\"name\":\"a/b\",\"plugins\":[{\"type\":\"a\"}]}");

	assert_true(hw_add(f.cni, conf, &f.at, 0, NULL, &f.e) < 0);
	assert_string_equal(f.e.msg, "plugin type=\"a\" failed (add): invalid characters found in "
				     "network name");
	assert_int_equal(hw_err_wire(&f.e), HW_CNI_INVALID_CONFIG);
	assert_notes(f.p, "");
}

static void missing_plugin(void **state)
{
	AUTO(fixture_done) struct fixture f = fixture(state, GOOD, NULL);
	autofree char *want = str_printf("plugin type=\"b\" failed (add): failed to find plugin "
					 "\"b\" in path [%s]",
					 f.p->bin);

	assert_true(hw_add(f.cni, f.conf, &f.at, 0, NULL, &f.e) < 0);
	assert_string_equal(f.e.msg, want);
	assert_notes(f.p, "");
}

static void names_too_long_for_a_file(void **state)
{
	AUTO(fixture_done) struct fixture f = fixture(state, GOOD, GOOD);
	char id[256];

	memset(id, 'x', sizeof(id) - 1);
	id[sizeof(id) - 1] = '\0';
	f.at.container_id = id;
	assert_int_equal(hw_add(f.cni, f.conf, &f.at, 0, NULL, &f.e), -ENAMETOOLONG);
	assert_starts(f.e.msg, "failed to set network \"n\" cached result: ");
	assert_notes(f.p, "");
}

/* ---- failures ------------------------------------------------------------------------ */

static void add_stops_at_the_first_error(void **state)
{
	AUTO(fixture_done) struct fixture f = fixture(state, BAD, GOOD);

	assert_true(hw_add(f.cni, f.conf, &f.at, 0, NULL, &f.e) < 0);
	assert_string_equal(f.e.msg, "plugin type=\"a\" failed (add): no");
	assert_string_equal(f.e.details, "d");
	assert_int_equal(hw_err_wire(&f.e), 100);
	assert_notes(f.p, "ADD a\n");
	assert_false(place_has(f.p, CACHE_FILE));
}

static void error_names_the_plugin(void **state)
{
	AUTO(fixture_done) struct fixture f = fixture(state, BAD, NULL);
	AUTO(hw_conf_free)
	struct hw_conf *conf = test_list("{\"name\":\"n\",\"cniVersion\":\"1.0.0\",\"plugins\":["
					 "{\"type\":\"a\",\"name\":\"mine\"}]}");

	assert_true(hw_add(f.cni, conf, &f.at, 0, NULL, &f.e) < 0);
	assert_string_equal(f.e.msg, "plugin type=\"a\" name=\"mine\" failed (add): no");
	assert_true(hw_del(f.cni, conf, &f.at, &f.e) < 0);
	assert_string_equal(f.e.msg, "plugin type=\"a\" name=\"mine\" failed (delete): no");
}

static void nothing_printed(void **state)
{
	AUTO(fixture_done) struct fixture f = fixture(state, "cat >/dev/null", GOOD);

	assert_true(hw_add(f.cni, f.conf, &f.at, 0, NULL, &f.e) < 0);
	assert_string_equal(f.e.msg, "plugin type=\"a\" failed (add): failed to unmarshal raw "
				     "result: unexpected end of JSON input");
}

static void del_stops_and_keeps_the_cache(void **state)
{
	AUTO(fixture_done) struct fixture f = fixture(state, GOOD, GOOD);

	assert_ok(hw_add(f.cni, f.conf, &f.at, 0, NULL, &f.e), f.e);
	place_plugin(f.p, "b", BAD);
	free(place_notes(f.p));
	assert_true(hw_del(f.cni, f.conf, &f.at, &f.e) < 0);
	assert_string_equal(f.e.msg, "plugin type=\"b\" failed (delete): no");
	assert_notes(f.p, "DEL b\n");
	assert_true(place_has(f.p, CACHE_FILE));
}

static void check_error_is_bare(void **state)
{
	AUTO(fixture_done) struct fixture f = fixture(state, BAD, GOOD);

	assert_true(hw_check(f.cni, f.conf, &f.at, &f.e) < 0);
	assert_string_equal(f.e.msg, "no");
	assert_int_equal(hw_err_wire(&f.e), 100);
	assert_notes(f.p, "CHECK a\n");
}

static void check_disabled_or_old(void **state)
{
	AUTO(fixture_done) struct fixture f = fixture(state, BAD, NULL);
	AUTO(hw_conf_free)
	struct hw_conf *off = test_list("{\"name\":\"n\",\"cniVersion\":\"0.4.0\","
					"\"disableCheck\":true,\"plugins\":[{\"type\":\"a\"}]}");
	AUTO(hw_conf_free)
	struct hw_conf *old = test_list("{\"name\":\"n\",\"cniVersion\":\"0.3.1\","
					"\"disableCheck\":true,\"plugins\":[{\"type\":\"a\"}]}");

	assert_ok(hw_check(f.cni, off, &f.at, &f.e), f.e);
	assert_true(hw_check(f.cni, old, &f.at, &f.e) < 0);
	assert_string_equal(f.e.msg, "configuration version \"0.3.1\" does not support the CHECK "
				     "command");
	assert_notes(f.p, "");
}

static void old_del_has_no_result(void **state)
{
	AUTO(fixture_done) struct fixture f = fixture(state, GOOD, NULL);
	AUTO(hw_conf_free)
	struct hw_conf *old = test_list("{\"name\":\"n\",\"cniVersion\":\"0.3.1\","
					"\"plugins\":[{\"type\":\"a\"}]}");

	assert_ok(hw_add(f.cni, old, &f.at, 0, NULL, &f.e), f.e);
	assert_ok(hw_del(f.cni, old, &f.at, &f.e), f.e);
	assert_key(f.p, "a.DEL", "prevResult", NULL);
}

static void old_result_without_addresses(void **state)
{
	AUTO(fixture_done) struct fixture f = fixture(state, "echo '{}'", GOOD);
	AUTO(hw_conf_free)
	struct hw_conf *old = test_list("{\"name\":\"n\",\"plugins\":[{\"type\":\"a\"}]}");

	assert_ok(hw_add(f.cni, old, &f.at, 0, NULL, &f.e), f.e);
	assert_key(f.p, CACHE_FILE, "result", "{\"cniVersion\":\"0.1.0\",\"dns\":{}}");
}

/* ---- the cache ------------------------------------------------------------------------- */

static void count_damaged(void *ctx, const char *file, const struct hw_err *why)
{
	assert_contains(file, CACHE_FILE);
	assert_contains(why->msg, "cache file ");
	++*(int *)ctx;
}

static void damaged_cache(void **state)
{
	AUTO(fixture_done) struct fixture f = fixture(state, GOOD, GOOD);
	int damaged = 0;

	f.cni->damaged = count_damaged;
	f.cni->damaged_ctx = &damaged;
	assert_ok(hw_add(f.cni, f.conf, &f.at, 0, NULL, &f.e), f.e);
	place_write(f.p, CACHE_FILE, "{\"kind\":\"cniCache", 0600);
	assert_true(hw_check(f.cni, f.conf, &f.at, &f.e) < 0);
	assert_starts(f.e.msg, "failed to get network \"n\" cached result: ");
	free(place_notes(f.p));
	assert_ok(hw_del(f.cni, f.conf, &f.at, &f.e), f.e);
	assert_notes(f.p, "DEL b\nDEL a\n");
	assert_key(f.p, "a.DEL", "prevResult", NULL);
	assert_false(place_has(f.p, CACHE_FILE));
	assert_int_equal(damaged, 1);
}

/* Creates a file in place of the cache directory. */
static void block_cache(const struct place *p)
{
	place_write(p, "cache", "", 0600);
}

static void no_cache_no_undo(void **state)
{
	AUTO(fixture_done) struct fixture f = fixture(state, GOOD, GOOD);

	block_cache(f.p);
	assert_true(hw_add(f.cni, f.conf, &f.at, 0, NULL, &f.e) < 0);
	assert_starts(f.e.msg, "failed to set network \"n\" cached result: ");
	assert_notes(f.p, "ADD a\nADD b\n");
}

static void no_cache_undone(void **state)
{
	AUTO(fixture_done) struct fixture f = fixture(state, GOOD, GOOD);
	struct hw_result *result = NULL;

	block_cache(f.p);
	assert_true(hw_add(f.cni, f.conf, &f.at, HW_ADD_UNDO, &result, &f.e) < 0);
	assert_starts(f.e.msg, "failed to set network \"n\" cached result: ");
	assert_notes(f.p, "ADD a\nADD b\nDEL b\nDEL a\n");
	assert_key(f.p, "a.DEL", "prevResult",
		   "{\"cniVersion\":\"1.0.0\",\"ips\":[{\"address\":\"10.0.0.2/24\"}]}");
	assert_null(result);
}

static void add_with_cache_on(void **state, const char *options, unsigned long flags,
			      const char *reason)
{
	AUTO(fixture_done) struct fixture f = fixture(state, GOOD, GOOD);
	autofree char *filler = str_printf("%s/filler", f.p->cache);
	static const char zeros[65536];
	int fd;

	assert_int_equal(mkdir(f.p->cache, 0700), 0);
	if (mount("hawser-test", f.p->cache, "tmpfs", 0, options) < 0) {
		print_message("skip: not allowed to mount a tmpfs\n");
		skip();
	}
	fd = open(filler, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	while (write(fd, zeros, sizeof(zeros)) > 0)
		;
	close(fd);
	assert_int_equal(mount(NULL, f.p->cache, NULL, MS_REMOUNT | flags, options), 0);
	assert_true(hw_add(f.cni, f.conf, &f.at, HW_ADD_UNDO, NULL, &f.e) < 0);
	assert_int_equal(umount2(f.p->cache, MNT_DETACH), 0);
	assert_starts(f.e.msg, "failed to set network \"n\" cached result: ");
	assert_contains(f.e.msg, reason);
	assert_notes(f.p, "ADD a\nADD b\nDEL b\nDEL a\n");
}

static void full_disk(void **state)
{
	add_with_cache_on(state, "size=64k", 0, "No space left on device");
}

static void read_only_disk(void **state)
{
	add_with_cache_on(state, "size=64k", MS_RDONLY, "Read-only file system");
}

/* ---- undo ---------------------------------------------------------------------------------- */

static void failed_add_is_undone(void **state)
{
	AUTO(fixture_done) struct fixture f = fixture(state, GOOD, BAD_ADD);

	assert_true(hw_add(f.cni, f.conf, &f.at, HW_ADD_UNDO, NULL, &f.e) < 0);
	assert_string_equal(f.e.msg, "plugin type=\"b\" failed (add): no");
	assert_string_equal(f.e.details, "d");
	assert_notes(f.p, "ADD a\nADD b\nDEL b\nDEL a\n");
	assert_key(f.p, "b.DEL", "prevResult",
		   "{\"cniVersion\":\"1.0.0\",\"ips\":[{\"address\":\"10.0.0.2/24\"}]}");
}

#define REFUSE "note $CNI_COMMAND $N; echo '{\"code\":1017,\"msg\":\"attached\"}'; exit 1"

/* The cache file of the first ADD was lost, but the plugin has a record of the attachment. */
static void refused_add(void **state)
{
	AUTO(fixture_done) struct fixture f = fixture(state, GOOD, REFUSE);

	assert_int_equal(hw_add(f.cni, f.conf, &f.at, HW_ADD_UNDO, NULL, &f.e), -EEXIST);
	assert_int_equal(hw_err_wire(&f.e), HW_CNI_ALREADY_ATTACHED);
	assert_string_equal(f.e.msg, "plugin type=\"b\" failed (add): attached");
	assert_string_equal(f.e.details, "");
	assert_notes(f.p, "ADD a\nADD b\nDEL a\n");
}

static void add_refused_by_the_first_plugin(void **state)
{
	AUTO(fixture_done) struct fixture f = fixture(state, REFUSE, GOOD);

	assert_int_equal(hw_add(f.cni, f.conf, &f.at, HW_ADD_UNDO, NULL, &f.e), -EEXIST);
	assert_notes(f.p, "ADD a\n");
}

static void undo_that_fails(void **state)
{
	AUTO(fixture_done) struct fixture f = fixture(state, GOOD, BAD);

	assert_true(hw_add(f.cni, f.conf, &f.at, HW_ADD_UNDO, NULL, &f.e) < 0);
	assert_string_equal(f.e.msg, "plugin type=\"b\" failed (add): no");
	assert_string_equal(f.e.details,
			    "d; undo also failed: plugin type=\"b\" failed (delete): no");
}

static void second_add_is_not_undone(void **state)
{
	AUTO(fixture_done) struct fixture f = fixture(state, GOOD, GOOD);

	assert_ok(hw_add(f.cni, f.conf, &f.at, HW_ADD_UNDO, NULL, &f.e), f.e);
	place_plugin(f.p, "a", BAD_ADD);
	free(place_notes(f.p));
	assert_true(hw_add(f.cni, f.conf, &f.at, HW_ADD_UNDO, NULL, &f.e) < 0);
	assert_notes(f.p, "ADD a\n");
	assert_contains(f.e.details, "not undone: ");
	assert_true(place_has(f.p, CACHE_FILE));
}

/* An empty cache file, as after a power cut, is not an earlier ADD. */
static void empty_cache_is_no_earlier_add(void **state)
{
	AUTO(fixture_done) struct fixture f = fixture(state, GOOD, BAD_ADD);
	struct hw_err e;

	assert_ok(cache_write(f.p->cache, f.conf, &f.at, NULL, &e), e);
	place_write(f.p, CACHE_FILE, "", 0600);
	assert_true(hw_add(f.cni, f.conf, &f.at, HW_ADD_UNDO, NULL, &f.e) < 0);
	assert_notes(f.p, "ADD a\nADD b\nDEL b\nDEL a\n");
}

static void timed_out_add_is_undone(void **state)
{
	AUTO(fixture_done)
	struct fixture f = fixture(state, GOOD,
				   "note $CNI_COMMAND $N; [ $CNI_COMMAND = DEL ] || "
				   "while :; do sleep 1; done");

	f.at.timeout_ms = 500;
	assert_int_equal(hw_add(f.cni, f.conf, &f.at, HW_ADD_UNDO, NULL, &f.e), -ETIMEDOUT);
	assert_starts(f.e.msg, "plugin type=\"b\" failed (add): netplugin failed with no error "
			       "message: timed out after ");
	assert_notes(f.p, "ADD a\nADD b\nDEL b\nDEL a\n");
}

static void undo_that_hangs(void **state)
{
	AUTO(fixture_done)
	struct fixture f = fixture(state, GOOD, "note $CNI_COMMAND $N; while :; do sleep 1; done");

	f.at.timeout_ms = 500;
	f.at.undo_deadline_ns = time_deadline(1000);
	assert_int_equal(hw_add(f.cni, f.conf, &f.at, HW_ADD_UNDO, NULL, &f.e), -ETIMEDOUT);
	assert_starts(f.e.msg, "plugin type=\"b\" failed (add): ");
	assert_contains(f.e.details, "undo also failed: plugin type=\"b\" failed (delete): ");
	assert_contains(f.e.details, "timed out after ");
	assert_notes(f.p, "ADD a\nADD b\nDEL b\n");
}

struct canceller {
	const struct place *p;
	int fd;
};

static void *cancel_second(void *arg)
{
	const struct canceller *c = arg;

	while (!place_has(c->p, "second"))
		time_sleep(10);
	return write(c->fd, "x", 1) == 1 ? arg : NULL;
}

static void cancelled_add_is_undone(void **state)
{
	AUTO(fixture_done)
	struct fixture f = fixture(state, GOOD,
				   "note $CNI_COMMAND $N; [ $CNI_COMMAND = DEL ] || "
				   "{ : >$D/second; while :; do sleep 1; done; }");
	struct canceller c = { .p = f.p };
	pthread_t thread;
	int cancel[2];

	assert_int_equal(pipe2(cancel, O_CLOEXEC), 0);
	c.fd = cancel[1];
	f.at.cancel_fd = cancel[0];
	assert_int_equal(pthread_create(&thread, NULL, cancel_second, &c), 0);
	assert_int_equal(hw_add(f.cni, f.conf, &f.at, HW_ADD_UNDO, NULL, &f.e), -ECANCELED);
	pthread_join(thread, NULL);
	close(cancel[0]);
	close(cancel[1]);
	assert_notes(f.p, "ADD a\nADD b\nDEL b\nDEL a\n");
}

/* ---- the lock ------------------------------------------------------------------------------- */

static void waits_for_a_gc(void **state)
{
	AUTO(fixture_done) struct fixture f = fixture(state, GOOD, GOOD);
	autoclose int gc = -1;
	int cancel[2];

	assert_ok(lock_acquire(f.p->state, "n", RUN_LOCK_HOLDER, true, TIME_NEVER, &gc, &f.e), f.e);
	assert_true(hw_add(f.cni, f.conf, &f.at, 0, NULL, &f.e) < 0);
	assert_int_equal(hw_err_wire(&f.e), HW_CNI_TRY_AGAIN);
	assert_true(hw_del(f.cni, f.conf, &f.at, &f.e) < 0);
	assert_int_equal(hw_err_wire(&f.e), HW_CNI_TRY_AGAIN);
	assert_notes(f.p, "");
	assert_int_equal(pipe2(cancel, O_CLOEXEC), 0);
	assert_int_equal(write(cancel[1], "x", 1), 1);
	f.at.cancel_fd = cancel[0];
	assert_int_equal(hw_add(f.cni, f.conf, &f.at, 0, NULL, &f.e), -ECANCELED);
	close(cancel[0]);
	close(cancel[1]);
	f.at.cancel_fd = -1;
	assert_ok(hw_check(f.cni, f.conf, &f.at, &f.e), f.e);
}

static void waits_for_same_attachment(void **state)
{
	AUTO(fixture_done) struct fixture f = fixture(state, GOOD, GOOD);
	autoclose int lock = -1;

	assert_ok(lock_acquire(f.p->state, "n", RUN_LOCK_HOLDER, false, TIME_NEVER, &lock, &f.e),
		  f.e);
	assert_ok(lock_attachment(lock, "c1", "eth0", TIME_NEVER, &f.e), f.e);
	assert_true(hw_add(f.cni, f.conf, &f.at, 0, NULL, &f.e) < 0);
	assert_int_equal(hw_err_wire(&f.e), HW_CNI_TRY_AGAIN);
	assert_true(hw_del(f.cni, f.conf, &f.at, &f.e) < 0);
	assert_int_equal(hw_err_wire(&f.e), HW_CNI_TRY_AGAIN);
	assert_notes(f.p, "");
	f.at.ifname = "eth1";
	assert_ok(hw_add(f.cni, f.conf, &f.at, 0, NULL, &f.e), f.e);
}

/* ---- a single plugin -------------------------------------------------------------------------- */

static void single_plugin(void **state)
{
	AUTO(fixture_done) struct fixture f = fixture(state, GOOD, NULL);
	AUTO(hw_conf_free) struct hw_conf *one = test_plugin(ONE);
	AUTO(hw_result_free) struct hw_result *result = NULL;

	assert_ok(hw_add(f.cni, one, &f.at, 0, &result, &f.e), f.e);
	assert_int_equal(result->n_ips, 1);
	assert_ok(hw_check(f.cni, one, &f.at, &f.e), f.e);
	assert_ok(hw_del(f.cni, one, &f.at, &f.e), f.e);
	assert_notes(f.p, "ADD a\nCHECK a\nDEL a\n");
	assert_key(f.p, "a.DEL", "prevResult",
		   "{\"cniVersion\":\"1.0.0\",\"ips\":[{\"address\":\"10.0.0.2/24\"}]}");
	assert_false(place_has(f.p, CACHE_FILE));
}

static void single_errors_are_bare(void **state)
{
	AUTO(fixture_done) struct fixture f = fixture(state, BAD, NULL);
	AUTO(hw_conf_free) struct hw_conf *one = test_plugin(ONE);

	assert_true(hw_add(f.cni, one, &f.at, 0, NULL, &f.e) < 0);
	assert_string_equal(f.e.msg, "no");
	assert_true(hw_del(f.cni, one, &f.at, &f.e) < 0);
	assert_string_equal(f.e.msg, "no");
}

static const struct CMUnitTest tests[] = {
	PLACE_TEST("run: ADD runs the list, each plugin with the result of the previous one",
		   add_runs_list),
	PLACE_TEST("run: a result is passed on in the version that its plugin printed",
		   result_of_another_version),
	PLACE_TEST("run: DEL runs in reverse order with the cached result; a second DEL succeeds",
		   del_runs_in_reverse),
	PLACE_TEST("run: CHECK gets the cached result if there is one", check_gets_result),
	PLACE_TEST("run: CHECK and DEL get the caller's result if there is no cached one",
		   result_of_the_caller_is_used_without_cache),
	PLACE_TEST("run: arguments and declared capabilities reach the plugins and the cache",
		   arguments_reach_the_plugins),
	PLACE_TEST("run: container IDs and interface names are checked before anything is run",
		   names_are_checked_first),
	PLACE_TEST("run: arguments are checked before anything is run",
		   arguments_are_checked_first),
	PLACE_TEST("run: an invalid network name is refused before anything is run",
		   bad_network_name),
	PLACE_TEST("run: a missing plugin is reported before anything is run", missing_plugin),
	PLACE_TEST("run: names too long for a cache file are reported before anything is run",
		   names_too_long_for_a_file),
	PLACE_TEST("run: ADD stops at the first error and caches nothing",
		   add_stops_at_the_first_error),
	PLACE_TEST("run: if the plugin object in the list has a name, errors contain the name",
		   error_names_the_plugin),
	PLACE_TEST("run: an ADD that prints nothing fails", nothing_printed),
	PLACE_TEST("run: DEL stops at the first error and keeps the cache",
		   del_stops_and_keeps_the_cache),
	PLACE_TEST("run: errors of CHECK have no prefix", check_error_is_bare),
	PLACE_TEST("run: CHECK fails before version 0.4.0, and does nothing with disableCheck",
		   check_disabled_or_old),
	PLACE_TEST("run: before version 0.4.0, DEL passes no prevResult", old_del_has_no_result),
	PLACE_TEST("run: a result of version 0.1.0 without addresses is accepted",
		   old_result_without_addresses),
	PLACE_TEST("run: with a damaged cache file, CHECK fails; DEL reports it and continues",
		   damaged_cache),
	PLACE_TEST("run: an ADD that cannot be cached fails and is not undone, as in libcni",
		   no_cache_no_undo),
	PLACE_TEST("run: an ADD that cannot be cached is undone if the caller requests it",
		   no_cache_undone),
	PLACE_TEST("run: an ADD is undone if the disk of the cache is full", full_disk),
	PLACE_TEST("run: an ADD is undone if the cache is read-only", read_only_disk),
	PLACE_TEST("run: if requested, a failed ADD is undone by a DEL of the whole list",
		   failed_add_is_undone),
	PLACE_TEST("run: an undo that fails is reported in the details", undo_that_fails),
	PLACE_TEST("run: an ADD that the first plugin refuses with code 1017 is not undone",
		   add_refused_by_the_first_plugin),
	PLACE_TEST(
		"run: if a plugin refuses an ADD with code 1017, the plugins before it are undone",
		refused_add),
	PLACE_TEST("run: a repeated ADD that fails does not delete the first attachment",
		   second_add_is_not_undone),
	PLACE_TEST("run: a failed ADD is undone even if there is an empty cache file",
		   empty_cache_is_no_earlier_add),
	PLACE_TEST("run: an ADD that timed out is undone", timed_out_add_is_undone),
	PLACE_TEST("run: an undo that hangs ends at its deadline", undo_that_hangs),
	PLACE_TEST("run: a cancelled ADD is undone", cancelled_add_is_undone),
	PLACE_TEST("run: ADD and DEL wait for a GC and fail with code 11 on timeout; CHECK does "
		   "not wait",
		   waits_for_a_gc),
	PLACE_TEST("run: ADD and DEL wait for a call of the same attachment, and fail on timeout",
		   waits_for_same_attachment),
	PLACE_TEST("run: ADD, CHECK and DEL accept a single plugin's configuration", single_plugin),
	PLACE_TEST("run: errors of a single plugin have no prefix", single_errors_are_bare),
};

int main(void)
{
	return cmocka_run_group_tests_name("run", tests, NULL, NULL);
}
