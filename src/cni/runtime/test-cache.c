/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/runtime/test-cache.c - tests of the cache: our files, libcni's and damaged ones
 */
#include "cni/runtime/cache.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "cni/result.h"
#include "cni/runtime/cni.h"
#include "cni/runtime/conf.h"
#include "cni/test-data.h"
#include "cni/test.h"

#define NETWORK "{\"cniVersion\":\"1.0.0\",\"name\":\"net\",\"plugins\":[{\"type\":\"noop\"}]}"
#define RESULT	"{\"cniVersion\":\"1.0.0\",\"ips\":[{\"address\":\"10.0.0.1/8\"}]}"
#define FILE	"cache/results/net-c1-eth0"

static const struct hw_attach attach = TEST_ATTACH;

static void write_entry(const struct place *p, const struct hw_attach *at, const char *result)
{
	AUTO(hw_conf_free) struct hw_conf *conf = test_list(NETWORK);
	struct hw_err e;

	assert_ok(cache_write(p->cache, conf, at, result, &e), e);
}

/* Overwrites the file of `attach`. */
static void write_raw(const struct place *p, const char *text)
{
	write_entry(p, &attach, NULL);
	place_write(p, FILE, text, 0600);
}

static int read_result(const struct place *p, const char *list, struct hw_result **ret_result,
		       struct hw_err *e)
{
	AUTO(hw_conf_free) struct hw_conf *conf = test_list(list);

	return cache_result(p->cache, conf, &attach, ret_result, e);
}

static mode_t mode_of(const struct place *p, const char *name)
{
	autofree char *path = str_printf("%s/%s", p->dir, name);
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return st.st_mode & 07777;
}

/* ---- writing ------------------------------------------------------------------------ */

static void writes_the_format(void **state)
{
	static const char *const args[][2] = { { "IgnoreUnknown", "1" }, { "A", "b c" } };
	struct hw_attach at = attach;
	struct place *p = *state;
	autofree char *text = NULL;

	at.args = args;
	at.n_args = ARRAY_SIZE(args);
	at.capability_args = "{\"mac\": \"x\"}";
	write_entry(p, &at, RESULT);
	text = place_read(p, FILE);
	assert_string_equal(
		text,
		"{\"kind\":\"cniCacheV1\",\"containerId\":\"c1\",\"config\":"
		"\"eyJjbmlWZXJzaW9uIjoiMS4wLjAiLCJuYW1lIjoibmV0IiwicGx1Z2lucyI6W3sidHlwZSI6Im5vb3A"
		"ifV19\",\"ifName\":\"eth0\",\"networkName\":\"net\",\"netns\":\"/run/netns/c1\","
		"\"cniArgs\":[[\"IgnoreUnknown\",\"1\"],[\"A\",\"b c\"]],"
		"\"capabilityArgs\":{\"mac\":\"x\"},\"result\":" RESULT "}");
	assert_int_equal(mode_of(p, FILE), 0600);
	assert_int_equal(mode_of(p, "cache/results"), 0700);
	assert_int_equal(mode_of(p, "cache"), 0700);
}

static void omits_missing_values(void **state)
{
	struct hw_attach at = attach;
	struct place *p = *state;
	autofree char *text = NULL;

	at.netns = "";
	at.capability_args = "{}";
	write_entry(p, &at, NULL);
	text = place_read(p, FILE);
	assert_true(str_ends(text, "\"ifName\":\"eth0\",\"networkName\":\"net\"}"));
}

static void refuses_invalid_json(void **state)
{
	AUTO(hw_conf_free) struct hw_conf *conf = test_list(NETWORK);
	struct hw_attach at = attach;
	struct place *p = *state;
	struct hw_err e;

	at.capability_args = "[1]";
	assert_int_equal(cache_write(p->cache, conf, &at, NULL, &e), -EINVAL);
	assert_starts(e.msg, "capability arguments: expected an object, got an array");
	assert_int_equal(cache_write(p->cache, conf, &attach, "{", &e), -EINVAL);
	assert_starts(e.msg, "result: malformed JSON");
	assert_false(place_has(p, FILE));
}

static void refuses_names(void **state)
{
	static const struct {
		const char *network, *id, *ifname;
	} cases[] = {
		{ "", "c1", "eth0" },	  { "n", "", "eth0" },	   { "n", "c1", "" },
		{ "n", NULL, "eth0" },	  { "n", "c1", NULL },	   { "../n", "c1", "eth0" },
		{ "n", "../c1", "eth0" }, { "n", "c1", "/etc/x" },
	};
	struct hw_err e;
	char *path = NULL;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct hw_attach at = { .container_id = cases[i].id, .ifname = cases[i].ifname };

		assert_int_equal(cache_path("/d", cases[i].network, &at, &path, &e), -EINVAL);
		assert_int_equal(cache_remove("/d", cases[i].network, &at, &e), -EINVAL);
		assert_null(path);
	}
	assert_int_equal(cache_path("/d", "", &(struct hw_attach){ .ifname = "e" }, &path, &e),
			 -EINVAL);
	assert_string_equal(e.msg, "cache file path requires network name (\"\"), container ID "
				   "(\"\"), and interface name (\"e\")");
}

static void refuses_long_names(void **state)
{
	AUTO(hw_conf_free) struct hw_conf *conf = test_list(NETWORK);
	char id[NAME_MAX + 1];
	struct hw_attach at = { .container_id = id, .ifname = "eth0" };
	struct place *p = *state;
	struct hw_err e;

	memset(id, 'a', sizeof(id));
	id[NAME_MAX - strlen("net--eth0")] = '\0';
	assert_ok(cache_write(p->cache, conf, &at, RESULT, &e), e);
	id[NAME_MAX - strlen("net--eth0")] = 'a';
	id[NAME_MAX - strlen("net--eth0") + 1] = '\0';
	assert_int_equal(cache_write(p->cache, conf, &at, RESULT, &e), -ENAMETOOLONG);
	assert_contains(e.msg, "256 bytes");
	assert_contains(e.msg, "too long");
}

static void no_directory(void **state)
{
	AUTO(hw_conf_free) struct hw_conf *conf = test_list(NETWORK);
	struct place *p = *state;
	struct hw_err e;

	place_write(p, "cache", "in the way", 0600);
	assert_int_equal(cache_write(p->cache, conf, &attach, RESULT, &e), -ENOTDIR);
	assert_contains(e.msg, p->cache);
}

/* Mounts a tmpfs for the cache; skips the test if that is not permitted. */
static void mount_cache(const struct place *p, const char *options)
{
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) {
		print_message("skip: cannot create a mount namespace: %s\n", strerror(errno));
		skip();
	}
	assert_int_equal(mkdir(p->cache, 0700), 0);
	assert_int_equal(mount("cache", p->cache, "tmpfs", 0, options), 0);
}

static void full_disk(void **state)
{
	AUTO(hw_conf_free) struct hw_conf *conf = NULL;
	AUTO(hw_result_free) struct hw_result *result = NULL;
	struct place *p = *state;
	char fill[8192] = { 0 };
	struct hw_err e, why;
	int r, left;

	mount_cache(p, "size=16k");
	conf = test_list(NETWORK);
	write_entry(p, &attach, RESULT);
	memset(fill, 'x', sizeof(fill) - 1);
	place_write(p, "cache/fill", fill, 0600);
	place_write(p, "cache/rest", "x", 0600);
	r = cache_write(p->cache, conf, &attach, "{\"cniVersion\":\"1.0.0\"}", &e);
	left = cache_result(p->cache, conf, &attach, &result, &why);
	assert_false(place_has(p, "cache/results/.net-c1-eth0~"));
	assert_int_equal(umount(p->cache), 0);
	assert_int_equal(r, -ENOSPC);
	assert_contains(e.msg, FILE);
	assert_int_equal(left, 1);
	assert_int_equal(result->n_ips, 1);
}

static void read_only(void **state)
{
	AUTO(hw_conf_free) struct hw_conf *conf = NULL;
	struct place *p = *state;
	struct hw_err e, why;
	int written, removed;

	mount_cache(p, "size=16k");
	conf = test_list(NETWORK);
	write_entry(p, &attach, RESULT);
	assert_int_equal(mount(NULL, p->cache, NULL, MS_REMOUNT | MS_RDONLY, NULL), 0);
	written = cache_write(p->cache, conf, &attach, RESULT, &e);
	removed = cache_remove(p->cache, "net", &attach, &why);
	assert_int_equal(umount(p->cache), 0);
	assert_int_equal(written, -EROFS);
	assert_contains(e.msg, FILE);
	assert_int_equal(removed, -EROFS);
	assert_contains(why.msg, FILE);
}

/* ---- reading -------------------------------------------------------------------------- */

static void reads_own_file(void **state)
{
	AUTO(cache_entry_done) struct hw_cached entry = { 0 };
	AUTO(hw_result_free) struct hw_result *result = NULL;
	struct place *p = *state;
	struct hw_err e;

	write_entry(p, &attach, RESULT);
	assert_int_equal(cache_read(p->cache, "net", &attach, &entry, &e), 1);
	assert_string_equal(entry.network, "net");
	assert_string_equal(entry.container_id, "c1");
	assert_string_equal(entry.ifname, "eth0");
	assert_string_equal(entry.netns, "/run/netns/c1");
	assert_string_equal(entry.config, NETWORK);
	assert_string_equal(entry.result, RESULT);
	assert_int_equal(entry.args.n, 0);
	assert_null(entry.capability_args);
	assert_int_equal(read_result(p, NETWORK, &result, &e), 1);
	assert_string_equal(result->version, "1.0.0");
	assert_int_equal(result->n_ips, 1);
}

static void copy_libcni(const struct place *p, const char *name)
{
	autofree char *from = str_printf("libcni/cache/results/%s", name);
	autofree char *to = str_printf("cache/results/%s", name);
	autofree char *dir = str_printf("%s/results", p->cache);
	AUTO(buf_done) struct buf text = { 0 };
	struct hw_err e;

	test_data(from, &text);
	assert_ok(file_mkdirs(AT_FDCWD, dir, 0700, &e), e);
	place_write(p, to, text.data, 0600);
}

static void reads_libcni(void **state)
{
	AUTO(cache_entry_done) struct hw_cached entry = { 0 };
	AUTO(hw_result_free) struct hw_result *result = NULL;
	AUTO(hw_conf_free) struct hw_conf *conf = NULL;
	AUTO(buf_done) struct buf list = { 0 };
	struct place *p = *state;
	struct hw_err e;

	copy_libcni(p, "podnet-c1-eth0");
	test_data("libcni/list.json", &list);
	assert_ok(hw_conf_parse(list.data, list.len, &conf, &e), e);
	assert_int_equal(cache_read(p->cache, "podnet", &attach, &entry, &e), 1);
	assert_string_equal(entry.config, list.data);
	assert_string_equal(entry.netns, "/var/run/netns/blue");
	assert_int_equal(entry.args.n, 2);
	assert_string_equal(entry.args.keys[1], "K8S_POD_NAME");
	assert_string_equal(entry.args.values[1], "a b");
	assert_string_equal(entry.capability_args,
			    "{\"bandwidth\":1,\"portMappings\":[{\"containerPort\":80,"
			    "\"hostPort\":8080,\"protocol\":\"tcp\"}]}");
	assert_int_equal(cache_result(p->cache, conf, &attach, &result, &e), 1);
	assert_int_equal(result->n_ifaces, 3);
}

/* Our file of the same attachment must be identical to libcni's. */
static void writes_as_libcni(void **state)
{
	static const char *const args[][2] = { { "IgnoreUnknown", "1" },
					       { "K8S_POD_NAME", "a b" } };
	AUTO(buf_done) struct buf list = { 0 }, json = { 0 }, want = { 0 };
	AUTO(hw_result_free) struct hw_result *result = NULL;
	AUTO(hw_conf_free) struct hw_conf *conf = NULL;
	autofree char *text = NULL, *got = NULL;
	struct hw_attach at = attach;
	struct place *p = *state;
	struct hw_err e;

	test_data("libcni/list.json", &list);
	test_data("libcni/result.json", &json);
	test_data("libcni/cache/results/podnet-c1-eth0", &want);
	at.netns = "/var/run/netns/blue";
	at.args = args;
	at.n_args = ARRAY_SIZE(args);
	at.capability_args = "{\"bandwidth\":1,\"portMappings\":[{\"containerPort\":80,"
			     "\"hostPort\":8080,\"protocol\":\"tcp\"}]}";
	assert_ok(hw_conf_parse(list.data, list.len, &conf, &e), e);
	assert_ok(hw_result_parse(json.data, json.len, NULL, &result, &e), e);
	assert_ok(hw_result_format(result, conf->version, 0, &text, &e), e);
	assert_ok(cache_write(p->cache, conf, &at, text, &e), e);
	got = place_read(p, "cache/results/podnet-c1-eth0");
	assert_string_equal(got, want.data);
}

static void converts_result(void **state)
{
	static const char old[] = "{\"cniVersion\":\"0.2.0\",\"name\":\"net\",\"plugins\":"
				  "[{\"type\":\"noop\"}]}";
	AUTO(hw_result_free) struct hw_result *result = NULL;
	struct hw_result *none = NULL;
	struct place *p = *state;
	struct hw_err e;

	write_entry(p, &attach, RESULT);
	assert_int_equal(read_result(p, old, &result, &e), 1);
	assert_string_equal(result->version, "0.2.0");
	write_entry(p, &attach, "{\"cniVersion\":\"1.0.0\"}");
	assert_true(read_result(p, old, &none, &e) < 0);
	assert_contains(e.msg, "failed to convert cached result to config version \"0.2.0\": "
			       "cannot convert: no valid IP addresses");
	assert_null(none);
}

static void reads_legacy(void **state)
{
	AUTO(hw_result_free) struct hw_result *result = NULL;
	AUTO(cache_entry_done) struct hw_cached entry = { 0 };
	struct place *p = *state;
	struct hw_err e;

	write_raw(p, "{\"cniVersion\":\"0.4.0\",\"ips\":[{\"version\":\"4\",\"address\":"
		     "\"10.0.0.1/8\"}]}");
	assert_int_equal(read_result(p, NETWORK, &result, &e), 1);
	assert_string_equal(result->version, "1.0.0");
	assert_int_equal(result->n_ips, 1);
	assert_true(cache_read(p->cache, "net", &attach, &entry, &e) < 0);
	assert_contains(e.msg, "read cached network \"net\" config has wrong kind: ");
}

static void missing_entries(void **state)
{
	struct hw_result *result = NULL;
	struct hw_cached entry = { 0 };
	struct place *p = *state;
	struct hw_err e;

	assert_int_equal(read_result(p, NETWORK, &result, &e), 0);
	assert_int_equal(cache_read(p->cache, "net", &attach, &entry, &e), 0);
	assert_ok(cache_remove(p->cache, "net", &attach, &e), e);
	write_raw(p, "");
	assert_int_equal(read_result(p, NETWORK, &result, &e), 0);
	assert_int_equal(cache_read(p->cache, "net", &attach, &entry, &e), 0);
	write_entry(p, &attach, NULL);
	assert_int_equal(read_result(p, NETWORK, &result, &e), 0);
	assert_null(result);
}

static void damaged_files(void **state)
{
	static const char *const texts[] = {
		"{\"kind\":\"cniCacheV1\",\"containerId\":\"c",
		"\n\n",
		"[]",
		"{\"kind\":\"cniCacheV1\",\"config\":\"%%%\"}",
		"{\"kind\":\"cniCacheV1\",\"config\":\"AAAA\"}",
		"{\"kind\":\"cniCacheV1\",\"containerId\":7}",
		"{\"kind\":\"cniCacheV1\",\"cniArgs\":[[\"a\"]]}",
		"{\"kind\":\"cniCacheV1\",\"cniArgs\":[\"a\"]}",
		"{\"kind\":\"cniCacheV1\",\"capabilityArgs\":[]}",
		"{\"kind\":\"cniCacheV1\",\"result\":\"x\"}",
	};
	struct place *p = *state;
	struct hw_result *result = NULL;
	struct hw_cached entry = { 0 };
	struct hw_err e;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		write_raw(p, texts[i]);
		if (read_result(p, NETWORK, &result, &e) >= 0)
			fail_msg("result accepted from: %s", texts[i]);
		assert_contains(e.msg, FILE);
		if (cache_read(p->cache, "net", &attach, &entry, &e) >= 0)
			fail_msg("entry accepted from: %s", texts[i]);
		assert_contains(e.msg, FILE);
	}
	assert_null(result);
	assert_null(entry.network);
	assert_ok(cache_remove(p->cache, "net", &attach, &e), e);
	assert_false(place_has(p, FILE));
}

/* ("net", "a-b") and ("net-a", "b") have the same file name. */
static void same_file_name(void **state)
{
	struct hw_attach one = { .container_id = "a-b", .ifname = "eth0" };
	struct hw_attach other = { .container_id = "b", .ifname = "eth0" };
	AUTO(hw_conf_free)
	struct hw_conf *conf = test_list("{\"cniVersion\":\"1.0.0\",\"name\":\"net-a\",\"plugins\":"
					 "[{\"type\":\"noop\"}]}");
	struct hw_result *result = NULL;
	struct hw_cached entry = { 0 };
	struct place *p = *state;
	struct hw_err e;

	write_entry(p, &one, RESULT);
	assert_int_equal(cache_result(p->cache, conf, &other, &result, &e), 0);
	assert_int_equal(cache_read(p->cache, "net-a", &other, &entry, &e), 0);
	assert_null(result);
}

static void removes_temporary_file(void **state)
{
	struct place *p = *state;
	struct hw_err e;

	write_entry(p, &attach, RESULT);
	place_write(p, "cache/results/.net-c1-eth0~", "half", 0600);
	assert_ok(cache_remove(p->cache, "net", &attach, &e), e);
	assert_false(place_has(p, FILE));
	assert_false(place_has(p, "cache/results/.net-c1-eth0~"));
}

/* While two processes write, a reader always sees one of the two complete texts. */
static void two_writers(void **state)
{
	static const char *const results[] = { RESULT, "{\"cniVersion\":\"1.0.0\"}" };
	struct place *p = *state;
	pid_t pids[2];
	int status;

	write_entry(p, &attach, RESULT);
	for (size_t w = 0; w < 2; w++) {
		pids[w] = fork();
		if (pids[w] > 0)
			continue;
		for (int i = 0; i < 200; i++)
			write_entry(p, &attach, results[w]);
		_exit(0);
	}
	for (int i = 0; i < 400; i++) {
		AUTO(hw_result_free) struct hw_result *result = NULL;
		struct hw_err e;

		assert_ok(read_result(p, NETWORK, &result, &e), e);
		assert_non_null(result);
	}
	for (size_t w = 0; w < 2; w++) {
		assert_int_equal(waitpid(pids[w], &status, 0), pids[w]);
		assert_int_equal(status, 0);
	}
}

/* ---- listing and snapshots ---------------------------------------------------------------- */

static void note_damaged(void *ctx, const char *file, const struct hw_err *why)
{
	assert_true(why->msg[0]);
	strings_add(ctx, strrchr(file, '/') + 1);
}

static void lists_attachments(void **state)
{
	AUTO(hw_cached_list_free) struct hw_cached_list all = { 0 }, some = { 0 };
	AUTO(hw_strings_free) struct hw_strings bad = { 0 };
	AUTO(hw_cni_free) struct hw_cni *cni = NULL;
	struct hw_attach other = { .container_id = "c2", .ifname = "eth0" };
	struct hw_attach longer = { .container_id = "x-c2", .ifname = "eth0" };
	struct place *p = *state;
	autofree char *dir = str_printf("%s/results/dir", p->cache);
	struct hw_err e;

	cni = place_cni(p);
	copy_libcni(p, "podnet-plain-id-net1");
	write_entry(p, &attach, RESULT);
	write_entry(p, &other, RESULT);
	place_write(p, "cache/results/0-c1-empty", "", 0600);
	place_write(p, "cache/results/1-c1-torn", "{\"kind\":", 0600);
	place_write(p, "cache/results/2-legacy", RESULT, 0600);
	place_write(p, "cache/results/3-c1-noname", "{\"kind\":\"cniCacheV1\"}", 0600);
	place_write(p, "cache/results/.net-c3-eth0~", "half", 0600);
	assert_int_equal(mkdir(dir, 0700), 0);
	assert_ok(hw_cached_attachments(cni, NULL, note_damaged, &bad, &all, &e), e);
	assert_int_equal(all.n, 3);
	assert_string_equal(all.v[0].container_id, "c1");
	assert_string_equal(all.v[1].container_id, "c2");
	assert_string_equal(all.v[2].container_id, "plain-id");
	assert_int_equal(bad.n, 4);
	assert_string_equal(bad.v[0], "0-c1-empty");
	assert_ok(hw_cached_attachments(cni, "plain-id", NULL, NULL, &some, &e), e);
	assert_int_equal(some.n, 1);
	assert_string_equal(some.v[0].ifname, "net1");
	hw_cached_list_free(&some);
	write_entry(p, &longer, RESULT); /* this file name also contains "-c2-" */
	assert_ok(hw_cached_attachments(cni, "c2", NULL, NULL, &some, &e), e);
	assert_int_equal(some.n, 1);
	assert_string_equal(some.v[0].container_id, "c2");
}

/* The netns must be the sandbox of the attachment's own interface. */
static void netns_from_result(void **state)
{
	static const struct {
		const char *netns, *want;
	} cases[] = { { "", "/ns/1" }, { "\"netns\":\"/own\",", "/own" } };
	struct place *p = *state;

	write_entry(p, &attach, RESULT);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		autofree char *text = str_printf(
			"{\"kind\":\"cniCacheV1\",\"containerId\":\"c1\",\"config\":\"\","
			"\"ifName\":"
			"\"eth0\",\"networkName\":\"net\",%s\"result\":{\"interfaces\":[{\"name\":"
			"\"veth0\"},{\"name\":\"eth1\",\"sandbox\":\"/ns/2\"},{\"name\":\"eth0\","
			"\"sandbox\":\"/ns/1\"}]}}",
			cases[i].netns);
		AUTO(cache_entry_done) struct hw_cached entry = { 0 };
		struct hw_err e;

		place_write(p, FILE, text, 0600);
		assert_int_equal(cache_read(p->cache, "net", &attach, &entry, &e), 1);
		assert_string_equal(entry.netns, cases[i].want);
	}
}

static void lists_none(void **state)
{
	AUTO(hw_cached_list_free) struct hw_cached_list list = { 0 };
	AUTO(hw_cni_free) struct hw_cni *cni = NULL;
	struct place *p = *state;
	struct hw_err e;

	cni = place_cni(p);
	assert_ok(hw_cached_attachments(cni, NULL, NULL, NULL, &list, &e), e);
	assert_int_equal(list.n, 0);
	write_entry(p, &attach, RESULT);
	assert_ok(hw_cached_attachments(cni, "c", NULL, NULL, &list, &e), e);
	assert_int_equal(list.n, 0);
	assert_ok(hw_cached_attachments(cni, "eth0", NULL, NULL, &list, &e), e);
	assert_int_equal(list.n, 0);
}

static void public_functions(void **state)
{
	AUTO(hw_conf_free) struct hw_conf *conf = test_list(NETWORK);
	AUTO(hw_result_free) struct hw_result *result = NULL;
	AUTO(hw_cached_list_free) struct hw_cached_list list = { 0 };
	AUTO(hw_cni_free) struct hw_cni *cni = NULL;
	struct hw_attach no_size = { .container_id = "c1", .ifname = "eth0" };
	struct place *p = *state;
	struct hw_err e;

	cni = place_cni(p);
	assert_int_equal(hw_cached_result(cni, conf, &attach, &result, &e), 0);
	assert_null(result);
	assert_int_equal(hw_cached_config(cni, conf, &attach, &list, &e), 0);
	assert_int_equal(list.n, 0);
	write_entry(p, &attach, RESULT);
	assert_int_equal(hw_cached_result(cni, conf, &attach, &result, &e), 1);
	assert_int_equal(result->n_ips, 1);
	assert_int_equal(hw_cached_config(cni, conf, &attach, &list, &e), 1);
	assert_int_equal(list.n, 1);
	assert_string_equal(list.v[0].config, NETWORK);
	assert_int_equal(hw_cached_config(cni, conf, &no_size, &list, &e), -EINVAL);
}

static void snapshot_of_files(void **state)
{
	AUTO(cache_snapshot_free) struct cache_snapshot *before = NULL;
	struct hw_attach later = { .container_id = "c2", .ifname = "eth0" };
	struct hw_cached first = { .container_id = (char *)"c1", .ifname = (char *)"eth0" };
	struct hw_cached second = { .container_id = (char *)"c2", .ifname = (char *)"eth0" };
	struct place *p = *state;
	struct hw_err e;

	write_entry(p, &attach, RESULT);
	assert_ok(cache_snapshot(p->cache, &before, &e), e);
	write_entry(p, &later, RESULT);
	assert_true(cache_snapshot_has(before, "net", &first));
	assert_false(cache_snapshot_has(before, "net", &second));
	write_entry(p, &attach, RESULT);
	assert_false(cache_snapshot_has(before, "net", &first));
	assert_ok(cache_remove(p->cache, "net", &attach, &e), e);
	assert_false(cache_snapshot_has(before, "net", &first));
}

static void snapshot_of_nothing(void **state)
{
	AUTO(cache_snapshot_free) struct cache_snapshot *before = NULL;
	struct hw_cached entry = { .container_id = (char *)"c1", .ifname = (char *)"eth0" };
	struct place *p = *state;
	struct hw_err e;

	assert_ok(cache_snapshot(p->cache, &before, &e), e);
	write_entry(p, &attach, RESULT);
	assert_false(cache_snapshot_has(before, "net", &entry));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		PLACE_TEST("cache: a file has libcni's keys in libcni's order and mode 0600",
			   writes_the_format),
		PLACE_TEST("cache: missing values are omitted", omits_missing_values),
		PLACE_TEST("cache: arguments and results that are not valid JSON are refused",
			   refuses_invalid_json),
		{ "cache: missing names and names with a slash are refused", refuses_names },
		PLACE_TEST("cache: names are refused if the file name becomes too long; the error "
			   "has its length",
			   refuses_long_names),
		PLACE_TEST("cache: an error names the directory that cannot be created",
			   no_directory),
		PLACE_TEST("cache: if the disk is full, the old file is kept", full_disk),
		PLACE_TEST("cache: if the directory is read-only, the error names the file",
			   read_only),
		PLACE_TEST("cache: a file that was written can be read", reads_own_file),
		PLACE_TEST("cache: a file that libcni wrote can be read", reads_libcni),
		PLACE_TEST("cache: a file is byte-for-byte identical to libcni's",
			   writes_as_libcni),
		PLACE_TEST("cache: the result is converted to the network's version, or refused",
			   converts_result),
		PLACE_TEST("cache: a file with only a result can be read", reads_legacy),
		PLACE_TEST("cache: a missing or empty file or result counts as not found",
			   missing_entries),
		PLACE_TEST("cache: a damaged file is named in the error and can be removed",
			   damaged_files),
		PLACE_TEST("cache: a file that contains another attachment is ignored",
			   same_file_name),
		PLACE_TEST(
			"cache: removing an entry also removes the temporary file of a dead writer",
			removes_temporary_file),
		PLACE_TEST("cache: while two processes write, a reader always sees a complete file",
			   two_writers),
		PLACE_TEST("cache: attachments are listed, damaged files are reported",
			   lists_attachments),
		PLACE_TEST("cache: a missing netns is taken from the result", netns_from_result),
		PLACE_TEST("cache: the list of a missing directory or unknown container is empty",
			   lists_none),
		PLACE_TEST("cache: the public functions return the cached result and configuration",
			   public_functions),
		PLACE_TEST("cache: a snapshot contains only existing files that were not replaced",
			   snapshot_of_files),
		PLACE_TEST("cache: a snapshot of a missing directory is empty",
			   snapshot_of_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
