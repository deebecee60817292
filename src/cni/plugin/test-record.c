/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/plugin/test-record.c - tests of attachment records
 */
#include "cni/plugin/record.h"

#include "cni/test.h"

#include <errno.h>
#include <glob.h>

static const struct record example = {
	.plugin = (char *)"bridge",
	.network = (char *)"net",
	.container_id = (char *)"c1",
	.ifname = (char *)"eth0",
	.netns = (char *)"/run/netns/c1",
	.netns_id = (char *)"4:4026531840",
	.netns_cookie = 4711,
	.netns_override = true,
	.args = (char *)"IP=10.0.0.1",
	.config = (char *)"{\"name\":\"net\",\"x\":9007199254740993}",
	.created = (char *)"{\"link\":\"veth1\"}",
	.boot = (char *)"b",
	.started = INT64_MAX,
	.finished = 7,
};

static void save(const struct place *p, const struct record *r)
{
	struct hw_err e;

	assert_ok(record_write(p->state, r, &e), e);
}

static int find(const struct place *p, const char *container_id, struct record *ret)
{
	struct hw_err e;
	int r = record_read(p->state, "bridge", "net", container_id, "eth0", "", ret, &e);

	if (r < 0)
		fail_msg("%s", e.msg);
	return r;
}

/* Return: the path of the only record */
static char *only_file(const struct place *p)
{
	autofree char *pattern = str_printf("%s/attachments/bridge/*/*", p->state);
	glob_t g;

	assert_int_equal(glob(pattern, GLOB_PERIOD | GLOB_NOSORT, NULL, &g), 0);
	char *file = NULL;
	for (size_t i = 0; i < g.gl_pathc; i++)
		if (!str_ends(g.gl_pathv[i], "/.") && !str_ends(g.gl_pathv[i], "/.."))
			file = str_copy(g.gl_pathv[i]);
	globfree(&g);
	assert_non_null(file);
	return file;
}

static void read_after_write(void **state)
{
	AUTO(record_done) struct record r = { 0 };

	save(*state, &example);
	assert_int_equal(find(*state, "c1", &r), 1);
	assert_string_equal(r.plugin, example.plugin);
	assert_string_equal(r.network, example.network);
	assert_string_equal(r.container_id, example.container_id);
	assert_string_equal(r.ifname, example.ifname);
	assert_string_equal(r.netns, example.netns);
	assert_string_equal(r.netns_id, example.netns_id);
	assert_int_equal(r.netns_cookie, example.netns_cookie);
	assert_true(r.netns_override);
	assert_string_equal(r.args, example.args);
	assert_string_equal(r.config, example.config);
	assert_string_equal(r.created, example.created);
	assert_string_equal(r.boot, example.boot);
	assert_int_equal(r.started, example.started);
	assert_int_equal(r.finished, example.finished);
}

static void missing_record(void **state)
{
	struct record r;

	assert_int_equal(find(*state, "c1", &r), 0);
	save(*state, &example);
	assert_int_equal(find(*state, "c2", &r), 0);
}

static void replaced(void **state)
{
	AUTO(record_done) struct record r = { 0 };
	struct record newer = example;

	newer.created = NULL;
	newer.finished = 0;
	save(*state, &example);
	save(*state, &newer);
	assert_int_equal(find(*state, "c1", &r), 1);
	assert_null(r.created);
	assert_int_equal(r.finished, 0);
}

static void file_modes(void **state)
{
	struct stat st;

	save(*state, &example);
	autofree char *file = only_file(*state);
	assert_int_equal(stat(file, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	*strrchr(file, '/') = '\0';
	assert_int_equal(stat(file, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
}

static void removed(void **state)
{
	const struct place *p = *state;
	struct record r;
	struct hw_err e;

	save(p, &example);
	for (int i = 0; i < 2; i++)
		assert_ok(record_remove(p->state, "bridge", "net", "c1", "eth0", "", &e), e);
	assert_int_equal(find(p, "c1", &r), 0);
}

/* Overwrites the only record. */
static void overwrite(const struct place *p, const char *text)
{
	autofree char *file = only_file(p);
	struct hw_err e;

	assert_ok(file_replace(AT_FDCWD, file, text, strlen(text), 0600, 0, &e), e);
}

/* Version 0.1.0 wrote the key "earlier". */
static void unknown_key(void **state)
{
	AUTO(record_done) struct record r = { 0 };

	save(*state, &example);
	overwrite(*state, "{\"plugin\":\"bridge\",\"network\":\"net\",\"containerID\":\"c1\","
			  "\"ifname\":\"eth0\",\"config\":{},\"earlier\":7}");
	assert_int_equal(find(*state, "c1", &r), 1);
	assert_int_equal(r.finished, 0);
}

static void damaged_record(void **state)
{
	struct record r;

	save(*state, &example);
	overwrite(*state, "");
	assert_int_equal(find(*state, "c1", &r), 0);
	overwrite(*state, "{\"plugin\":\"bridge\",\"netw");
	assert_int_equal(find(*state, "c1", &r), 0);
	overwrite(*state, "{\"plugin\":\"bridge\"}");
	assert_int_equal(find(*state, "c1", &r), 0);
}

static void record_of_other_attachment(void **state)
{
	struct record r;

	save(*state, &example);
	overwrite(*state, "{\"plugin\":\"bridge\",\"network\":\"net\",\"containerID\":\"c2\","
			  "\"ifname\":\"eth0\",\"config\":{}}");
	assert_int_equal(find(*state, "c1", &r), 0);
	overwrite(*state, "{\"plugin\":\"bridge\",\"network\":\"other\",\"containerID\":\"c1\","
			  "\"ifname\":\"eth0\",\"config\":{}}");
	assert_int_equal(find(*state, "c1", &r), 0);
}

static void names_with_slashes(void **state)
{
	const struct place *p = *state;
	AUTO(record_done) struct record r = { 0 };
	struct record odd = example;
	struct hw_err e;

	odd.network = (char *)"../../../x";
	odd.container_id = (char *)"a/b";
	odd.ifname = (char *)"..";
	save(p, &odd);
	assert_false(place_has(p, "x"));
	assert_int_equal(record_read(p->state, "bridge", "../../../x", "a/b", "..", "", &r, &e), 1);
}

struct visit {
	char seen[64];
	const char *fail;
	bool stop; /* end the walk after the first record */
};

static int visit(void *ctx, const struct record *r, struct hw_err *e)
{
	struct visit *v = ctx;
	size_t n = strlen(v->seen);

	snprintf(v->seen + n, sizeof(v->seen) - n, "%s ", r->container_id);
	if (str_equal(r->container_id, v->fail))
		return hw_err_text(e, -EIO, "failed for %s", r->container_id);
	return v->stop;
}

/* Return: the result of errors_result() */
static int walk(const struct place *p, bool prune, struct visit *v, struct hw_err *e)
{
	struct errors errors = { 0 };

	record_each_of_network(p->state, "bridge", "net", prune, visit, v, &errors);
	return errors_result(&errors, e);
}

static void save_three(const struct place *p)
{
	struct record r = example;

	save(p, &r);
	r.container_id = (char *)"c2";
	save(p, &r);
	r.network = (char *)"other";
	save(p, &r);
}

static void each_of_a_network(void **state)
{
	const struct place *p = *state;
	struct visit v = { 0 };
	struct hw_err e;

	assert_ok(walk(p, false, &v, &e), e);
	assert_string_equal(v.seen, "");
	save_three(p);
	assert_ok(walk(p, false, &v, &e), e);
	assert_int_equal(strlen(v.seen), strlen("c1 c2 "));
	assert_contains(v.seen, "c1 ");
	assert_contains(v.seen, "c2 ");
}

static void each_continues(void **state)
{
	const struct place *p = *state;
	struct visit v = { .fail = "c1" };
	struct hw_err e;

	save_three(p);
	assert_int_equal(walk(p, false, &v, &e), -EIO);
	assert_string_equal(e.msg, "failed for c1");
	assert_contains(v.seen, "c2 ");
}

static void each_of_plugin_stops(void **state)
{
	const struct place *p = *state;
	struct visit all = { 0 }, one = { .stop = true };
	struct errors errors = { 0 };
	struct hw_err e;

	save_three(p);
	record_each_of_plugin(p->state, "bridge", visit, &all, &errors);
	record_each_of_plugin(p->state, "bridge", visit, &one, &errors);
	assert_ok(errors_result(&errors, &e), e);
	assert_int_equal(strlen(all.seen), strlen("c1 c2 c2 "));
	assert_int_equal(strlen(one.seen), strlen("c1 "));
	/* record_each_of_network(), which GC uses, cannot be stopped */
	assert_ok(walk(p, false, &one, &e), e);
	assert_int_equal(strlen(one.seen), strlen("c1 c1 c2 "));
}

static void prune(void **state)
{
	const struct place *p = *state;
	struct visit v = { 0 };
	struct hw_err e;

	save(p, &example);
	overwrite(p, "{");
	autofree char *file = only_file(p);
	assert_ok(walk(p, false, &v, &e), e);
	assert_int_equal(access(file, F_OK), 0);
	assert_ok(walk(p, true, &v, &e), e);
	assert_int_equal(access(file, F_OK), -1);
	assert_string_equal(v.seen, "");
}

static void writable_state_dir(void **state)
{
	const struct place *p = *state;
	struct hw_err e;

	assert_ok(record_check_dir(p->state, &e), e);
	save(p, &example);
	assert_ok(record_check_dir(p->state, &e), e);
	assert_int_equal(chmod(p->state, 01777), 0);
	assert_int_equal(record_check_dir(p->state, &e), -EPERM);
	assert_int_equal(chmod(p->state, 0755), 0);
	assert_ok(record_check_dir(p->state, &e), e);
	if (chown(p->state, 65534, 65534) < 0)
		skip();
	assert_int_equal(record_check_dir(p->state, &e), -EPERM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		PLACE_TEST("record: a record that was written can be read", read_after_write),
		PLACE_TEST("record: no record is found before the first write", missing_record),
		PLACE_TEST("record: a second write replaces the first", replaced),
		PLACE_TEST("record: only the owner can read a record", file_modes),
		PLACE_TEST("record: removing twice succeeds", removed),
		PLACE_TEST("record: unknown keys are ignored", unknown_key),
		PLACE_TEST("record: a damaged file is treated as missing", damaged_record),
		PLACE_TEST("record: a file that names another attachment is treated as missing",
			   record_of_other_attachment),
		PLACE_TEST("record: names with slashes and dots do not lead out of the directory",
			   names_with_slashes),
		PLACE_TEST("record: the walk visits all records of one network and no others",
			   each_of_a_network),
		PLACE_TEST("record: the walk continues after an error and returns the error",
			   each_continues),
		PLACE_TEST("record: the walk of all networks ends if the callback returns 1",
			   each_of_plugin_stops),
		PLACE_TEST("record: only a pruning walk removes damaged files", prune),
		PLACE_TEST("record: a directory that other users can write to is refused",
			   writable_state_dir),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
