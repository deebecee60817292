/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/runtime/test-gc.c - tests of GC: which attachments it deletes and which it keeps
 */
#include "cni/test.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sys/wait.h>

#include "base/json/value.h"
#include "base/time.h"
#include "cni/lock.h"
#include "cni/runtime/cache.h"
#include "cni/runtime/cni.h"
#include "cni/runtime/conf.h"
#include "cni/runtime/gc.h"
#include "cni/runtime/run.h"

/* A plugin that adds the call to its notes and writes its input to NAME.COMMAND. */
#define GOOD                                                                                       \
	"cat >$D/$N.$CNI_COMMAND; note $CNI_COMMAND $N $CNI_CONTAINERID $CNI_IFNAME $CNI_NETNS "   \
	"$CNI_ARGS; [ $CNI_COMMAND != ADD ] || echo '{}'"
/* A plugin whose DEL and GC fail. */
#define BAD                                                                                        \
	"note $CNI_COMMAND $N $CNI_CONTAINERID; case $CNI_COMMAND in ADD) echo '{}';; "            \
	"*) echo '{\"code\":100,\"msg\":\"no\",\"details\":\"d\"}'; exit 1;; esac"
#define V110 "{\"name\":\"n\",\"cniVersion\":\"1.1.0\",\"plugins\":[{\"type\":\"a\"}]}"

struct fixture {
	const struct place *p;
	struct hw_cni *cni;
	struct hw_conf *conf;
	struct hw_err e;
};

static void fixture_done(struct fixture *f)
{
	hw_conf_free(f->conf);
	hw_cni_free(f->cni);
}

AUTO_VALUE_DEFINE(fixture_done, struct fixture);

static struct fixture fixture(void **state, const char *conf)
{
	struct fixture f = { .p = *state, .cni = place_cni(*state), .conf = test_list(conf) };

	place_plugin(f.p, "a", GOOD);
	return f;
}

static void add(struct fixture *f, const struct hw_conf *conf, const char *id)
{
	struct hw_attach at = TEST_ATTACH;

	at.container_id = id;
	at.netns = "/ns";
	assert_ok(hw_add(f->cni, conf, &at, 0, NULL, &f->e), f->e);
	free(place_notes(f->p));
}

static bool is_cached(const struct fixture *f, const char *network, const char *id)
{
	autofree char *name = str_printf("cache/results/%s-%s-eth0", network, id);

	return place_has(f->p, name);
}

static void assert_gc_key(const struct fixture *f, const char *key, const char *want)
{
	autofree char *text = place_read(f->p, "a.GC");
	AUTO(value_free) struct value *v = NULL;
	autofree char *got = NULL;
	struct hw_err e;

	assert_ok(value_parse(text, strlen(text), &v, &e), e);
	if (value_get(v, key))
		got = value_format(value_get(v, key), 0);
	assert_string_equal(str_or(got, "absent"), want);
}

static void deletes_stale(void **state)
{
	const struct hw_valid valid[] = { { "c2", "eth0" }, { "c9", "eth0" } };
	const char *const list = "[{\"containerID\":\"c2\",\"ifname\":\"eth0\"},"
				 "{\"containerID\":\"c9\",\"ifname\":\"eth0\"}]";
	AUTO(fixture_done) struct fixture f = fixture(state, V110);

	add(&f, f.conf, "c1");
	add(&f, f.conf, "c2");
	assert_ok(hw_gc(f.cni, f.conf, valid, 2, &f.e), f.e);
	assert_notes(f.p, "DEL a c1 eth0 /ns\nGC a\n");
	assert_false(is_cached(&f, "n", "c1"));
	assert_true(is_cached(&f, "n", "c2"));
	assert_gc_key(&f, "cni.dev/valid-attachments", list);
	assert_gc_key(&f, "cni.dev/attachments", list);
	assert_gc_key(&f, "name", "\"n\"");
}

static void another_interface_is_another_attachment(void **state)
{
	const struct hw_valid valid[] = { { "c1", "eth1" } };
	AUTO(fixture_done) struct fixture f = fixture(state, V110);

	add(&f, f.conf, "c1");
	assert_ok(hw_gc(f.cni, f.conf, valid, 1, &f.e), f.e);
	assert_false(is_cached(&f, "n", "c1"));
}

static void no_list(void **state)
{
	AUTO(fixture_done) struct fixture f = fixture(state, V110);

	add(&f, f.conf, "c1");
	add(&f, f.conf, "c2");
	assert_ok(hw_gc(f.cni, f.conf, NULL, 0, &f.e), f.e);
	assert_notes(f.p, "DEL a c1 eth0 /ns\nDEL a c2 eth0 /ns\nGC a\n");
	assert_gc_key(&f, "cni.dev/valid-attachments", "absent");
}

static void entry_without_names(void **state)
{
	const struct hw_valid valid[] = { { NULL, NULL }, { "c2", NULL } };
	AUTO(fixture_done) struct fixture f = fixture(state, V110);

	add(&f, f.conf, "c2");
	assert_ok(hw_gc(f.cni, f.conf, valid, 2, &f.e), f.e);
	assert_notes(f.p, "DEL a c2 eth0 /ns\nGC a\n");
}

static void keeps_other_networks(void **state)
{
	AUTO(fixture_done) struct fixture f = fixture(state, V110);
	AUTO(hw_conf_free)
	struct hw_conf *other = test_list("{\"name\":\"m\",\"cniVersion\":\"1.1.0\","
					  "\"plugins\":[{\"type\":\"a\"}]}");

	add(&f, other, "c1");
	add(&f, f.conf, "c1");
	add(&f, other, "c2");
	assert_ok(hw_gc(f.cni, f.conf, NULL, 0, &f.e), f.e);
	assert_notes(f.p, "DEL a c1 eth0 /ns\nGC a\n");
	assert_gc_key(&f, "cni.dev/valid-attachments", "absent");
	assert_false(is_cached(&f, "n", "c1"));
	assert_true(is_cached(&f, "m", "c1") && is_cached(&f, "m", "c2"));
}

static void cached_arguments_are_used(void **state)
{
	static const char *const args[][2] = { { "K", "v" }, { "L", "w" } };
	AUTO(fixture_done)
	struct fixture f = fixture(state, "{\"name\":\"n\",\"cniVersion\":\"1.1.0\",\"plugins\":["
					  "{\"type\":\"a\",\"capabilities\":{\"mac\":true}}]}");
	struct hw_attach at = TEST_ATTACH;
	autofree char *text = NULL;

	at.args = args;
	at.n_args = 2;
	at.capability_args = "{\"mac\":\"02:00:00:00:00:01\"}";
	assert_ok(hw_add(f.cni, f.conf, &at, 0, NULL, &f.e), f.e);
	free(place_notes(f.p));
	assert_ok(hw_gc(f.cni, f.conf, NULL, 0, &f.e), f.e);
	assert_notes(f.p, "DEL a c1 eth0 /run/netns/c1 K=v;L=w\nGC a\n");
	text = place_read(f.p, "a.DEL");
	assert_contains(text, "\"runtimeConfig\":{\"mac\":\"02:00:00:00:00:01\"}");
	assert_contains(text, "\"prevResult\":");
}

static void collects_errors(void **state)
{
	AUTO(fixture_done) struct fixture f = fixture(state, V110);

	add(&f, f.conf, "c1");
	add(&f, f.conf, "c2");
	place_plugin(f.p, "a", BAD);
	assert_true(hw_gc(f.cni, f.conf, NULL, 0, &f.e) < 0);
	assert_string_equal(f.e.msg, "failed to delete stale attachment c1 eth0: plugin "
				     "type=\"a\" failed (delete): no; d\n"
				     "failed to delete stale attachment c2 eth0: plugin "
				     "type=\"a\" failed (delete): no; d\n"
				     "failed to GC plugin a: no; d");
	assert_string_equal(f.e.details, "");
	assert_int_equal(hw_err_wire(&f.e), 100);
	assert_notes(f.p, "DEL a c1\nDEL a c2\nGC a\n");
	assert_true(is_cached(&f, "n", "c1"));
}

static void disabled(void **state)
{
	AUTO(fixture_done)
	struct fixture f = fixture(state, "{\"name\":\"n\",\"cniVersion\":\"1.1.0\","
					  "\"disableGC\":true,\"plugins\":[{\"type\":\"a\"}]}");

	add(&f, f.conf, "c1");
	assert_ok(hw_gc(f.cni, f.conf, NULL, 0, &f.e), f.e);
	assert_notes(f.p, "");
	assert_true(is_cached(&f, "n", "c1"));
}

static void before_1_1_0(void **state)
{
	AUTO(fixture_done)
	struct fixture f = fixture(state, "{\"name\":\"n\",\"cniVersion\":\"1.0.0\","
					  "\"plugins\":[{\"type\":\"a\"}]}");

	add(&f, f.conf, "c1");
	assert_ok(hw_gc(f.cni, f.conf, NULL, 0, &f.e), f.e);
	assert_notes(f.p, "DEL a c1 eth0 /ns\n");
}

static void count_damaged(void *ctx, const char *file, const struct hw_err *why)
{
	(void)file, (void)why;
	++*(int *)ctx;
}

static void damaged_file(void **state)
{
	AUTO(fixture_done) struct fixture f = fixture(state, V110);
	int damaged = 0;

	add(&f, f.conf, "c1");
	place_write(f.p, "cache/results/n-c0-eth0", "{\"kind\":", 0600);
	f.cni->damaged = count_damaged;
	f.cni->damaged_ctx = &damaged;
	assert_ok(hw_gc(f.cni, f.conf, NULL, 0, &f.e), f.e);
	assert_notes(f.p, "DEL a c1 eth0 /ns\nGC a\n");
	assert_int_equal(damaged, 1);
}

static void no_cache(void **state)
{
	AUTO(fixture_done) struct fixture f = fixture(state, V110);

	assert_ok(hw_gc(f.cni, f.conf, NULL, 0, &f.e), f.e);
	assert_notes(f.p, "GC a\n");
}

static void removes_temporary_files(void **state)
{
	AUTO(fixture_done) struct fixture f = fixture(state, V110);

	add(&f, f.conf, "c1");
	place_write(f.p, "cache/results/.n-c0-eth0~", "{\"kind\":", 0600);
	assert_ok(hw_gc(f.cni, f.conf, (const struct hw_valid[]){ { "c1", "eth0" } }, 1, &f.e),
		  f.e);
	assert_false(place_has(f.p, "cache/results/.n-c0-eth0~"));
	assert_true(is_cached(&f, "n", "c1"));
}

static void unreadable_cache(void **state)
{
	AUTO(fixture_done) struct fixture f = fixture(state, V110);

	place_write(f.p, "cache", "not a directory", 0600);
	assert_true(hw_gc(f.cni, f.conf, NULL, 0, &f.e) < 0);
	assert_notes(f.p, "");
}

/* ---- timeout and cancel ------------------------------------------------------------ */

static void one_timeout(void **state)
{
	AUTO(fixture_done) struct fixture f = fixture(state, V110);

	add(&f, f.conf, "c1");
	add(&f, f.conf, "c2");
	place_plugin(f.p, "a", "note $CNI_COMMAND $CNI_CONTAINERID; exec sleep 1000");
	f.cni->timeout_ms = 2000;
	assert_int_equal(hw_gc(f.cni, f.conf, NULL, 0, &f.e), -ETIMEDOUT);
	assert_contains(f.e.msg, "stale attachment c1 eth0: plugin type=\"a\" failed (delete): "
				 "netplugin failed with no error message: timed out after");
	assert_contains(f.e.msg, "\nfailed to delete stale attachment c2 eth0: plugin type=\"a\" "
				 "failed (delete): not started: the call timed out\n"
				 "failed to GC plugin a: not started: the call timed out");
	assert_notes(f.p, "DEL c1\n");
	assert_true(is_cached(&f, "n", "c1") && is_cached(&f, "n", "c2"));
}

static void cancelled(void **state)
{
	AUTO(fixture_done) struct fixture f = fixture(state, V110);
	autofree char *path = str_printf("%s/stop", f.p->dir);
	autoclose int stop = -1;

	add(&f, f.conf, "c1");
	add(&f, f.conf, "c2");
	place_plugin(f.p, "a",
		     "note $CNI_COMMAND $CNI_CONTAINERID; echo >$D/stop; exec sleep 1000");
	assert_int_equal(mkfifo(path, 0600), 0);
	stop = open(path, O_RDWR | O_CLOEXEC);
	assert_true(stop > 0);
	f.cni->cancel_fd = stop;
	assert_int_equal(hw_gc(f.cni, f.conf, NULL, 0, &f.e), -ECANCELED);
	assert_contains(f.e.msg, "c2 eth0: plugin type=\"a\" failed (delete): not started: the "
				 "call was cancelled");
	assert_notes(f.p, "DEL c1\n");
	assert_true(is_cached(&f, "n", "c1") && is_cached(&f, "n", "c2"));
}

/* ---- concurrent ADDs --------------------------------------------------------------- */

static void lock_timeout(void **state)
{
	AUTO(fixture_done) struct fixture f = fixture(state, V110);
	autoclose int lock = -1;

	add(&f, f.conf, "c1");
	assert_ok(lock_acquire(f.p->state, "n", RUN_LOCK_HOLDER, false, TIME_NEVER, &lock, &f.e),
		  f.e);
	assert_true(hw_gc(f.cni, f.conf, NULL, 0, &f.e) < 0);
	assert_int_equal(hw_err_wire(&f.e), HW_CNI_TRY_AGAIN);
	assert_notes(f.p, "");
	assert_true(is_cached(&f, "n", "c1"));
}

/* As if the ADD had run on another thread meanwhile. */
static int list_and_add(void *ctx, const struct hw_valid **ret_valid, size_t *ret_n,
			struct hw_err *e)
{
	static const struct hw_valid valid[] = { { "c1", "eth0" } };

	(void)e;
	add(ctx, ((struct fixture *)ctx)->conf, "c2");
	*ret_valid = valid;
	*ret_n = ARRAY_SIZE(valid);
	return 0;
}

static void attached_after_the_list(void **state)
{
	AUTO(fixture_done) struct fixture f = fixture(state, V110);

	add(&f, f.conf, "c0");
	add(&f, f.conf, "c1");
	assert_ok(gc_run(f.cni, f.conf, 0, list_and_add, &f, &f.e), f.e);
	assert_notes(f.p, "DEL a c0 eth0 /ns\nGC a\n");
	assert_true(is_cached(&f, "n", "c1") && is_cached(&f, "n", "c2"));
	assert_gc_key(&f, "cni.dev/valid-attachments",
		      "[{\"containerID\":\"c1\",\"ifname\":\"eth0\"},"
		      "{\"containerID\":\"c2\",\"ifname\":\"eth0\"}]");
}

/* Return: how many descriptors of the process refer to a lock file of the library */
static int lock_openers(const struct place *p, pid_t pid)
{
	autofree char *start = str_printf("%s/locks/" RUN_LOCK_HOLDER "-", p->state);
	autofree char *path = str_printf("/proc/%d/fd", pid);
	DIR *fds = opendir(path);
	struct dirent *entry;
	int n = 0;

	assert_non_null(fds);
	while ((entry = readdir(fds))) {
		char target[512] = "";

		if (readlinkat(dirfd(fds), entry->d_name, target, sizeof(target) - 1) > 0)
			n += str_starts(target, start);
	}
	closedir(fds);
	return n;
}

static void await_lock_openers(const struct place *p, pid_t pid, int n)
{
	int64_t deadline = time_deadline(20000);

	while (lock_openers(p, pid) < n) {
		assert_false(time_has_passed(deadline));
		time_sleep(5);
	}
}

static int list_nothing(void *ctx, const struct hw_valid **ret_valid, size_t *ret_n,
			struct hw_err *e)
{
	static const struct hw_valid none[1];

	(void)ctx;
	(void)e;
	*ret_valid = none;
	*ret_n = 0;
	return 0;
}

static void plugin_that_hangs(void **state)
{
	AUTO(fixture_done) struct fixture f = fixture(state, V110);

	place_plugin(f.p, "a", "note $CNI_COMMAND; exec sleep 1000");
	assert_int_equal(gc_run(f.cni, f.conf, 2000, list_nothing, NULL, &f.e), -ETIMEDOUT);
	assert_contains(f.e.msg, "failed to GC plugin a: ");
	assert_notes(f.p, "GC\n");
}

struct gc_thread {
	struct fixture *f;
	int r;
	struct hw_err e;
};

static void *run_gc(void *arg)
{
	struct gc_thread *c = arg;

	c->r = hw_gc(c->f->cni, c->f->conf, (const struct hw_valid[]){ { "c9", "eth0" } }, 1,
		     &c->e);
	return NULL;
}

static void keeps_new_attachments(void **state)
{
	AUTO(fixture_done) struct fixture f = fixture(state, V110);
	struct gc_thread c = { .f = &f };
	autoclose int running = -1;
	pthread_t thread;

	f.cni->lock_timeout_ms = 60000;
	add(&f, f.conf, "c1");
	add(&f, f.conf, "c2");
	/* hold the lock like a running ADD: GC has to wait, other ADDs may still start */
	assert_ok(lock_acquire(f.p->state, "n", RUN_LOCK_HOLDER, false, TIME_NEVER, &running, &f.e),
		  f.e);
	assert_int_equal(pthread_create(&thread, NULL, run_gc, &c), 0);
	await_lock_openers(f.p, getpid(), 2);
	add(&f, f.conf, "c3");
	add(&f, f.conf, "c2"); /* replaces the cache file, as DEL and ADD would */
	close(take_fd(running));
	pthread_join(thread, NULL);
	assert_ok(c.r, c.e);
	assert_false(is_cached(&f, "n", "c1"));
	assert_true(is_cached(&f, "n", "c2"));
	assert_true(is_cached(&f, "n", "c3"));
	assert_notes(f.p, "DEL a c1 eth0 /ns\nGC a\n");
	assert_gc_key(&f, "cni.dev/valid-attachments",
		      "[{\"containerID\":\"c9\",\"ifname\":\"eth0\"},"
		      "{\"containerID\":\"c2\",\"ifname\":\"eth0\"},"
		      "{\"containerID\":\"c3\",\"ifname\":\"eth0\"}]");
}

/* ---- processes ------------------------------------------------------------------------ */

#define ADDS 50
#define GCS  5

/* A plugin that keeps a file for each attachment. Its GC removes the files of attachments that are
 * not valid. HOLD is shell code that runs in the middle of an ADD. */
#define KEEPER(HOLD)                                                                               \
	"in=$(cat); case $CNI_COMMAND in\n"                                                        \
	"ADD) >$D/is/$CNI_CONTAINERID; " HOLD " echo '{}';;\n"                                     \
	"DEL) rm -f $D/is/$CNI_CONTAINERID;;\n"                                                    \
	"GC) for f in $D/is/*; do\n"                                                               \
	"  case $in in *'\"'${f##*/}'\"'*) ;; *) rm -f $f;; esac\n"                                \
	"done;;\nesac"

/* A network whose plugin keeps files in is/. */
static struct fixture keeper(void **state, const char *plugin)
{
	struct fixture f = fixture(state, V110);
	autofree char *is = str_printf("%s/is", f.p->dir);

	assert_int_equal(mkdir(is, 0700), 0);
	place_plugin(f.p, "a", plugin);
	f.cni->lock_timeout_ms = 60000;
	return f;
}

static int process_add(const struct fixture *f, int i)
{
	autofree char *id = str_printf("c%d", i);
	struct hw_attach at = TEST_ATTACH;
	struct hw_err e;
	int r;

	at.container_id = id;
	r = hw_add(f->cni, f->conf, &at, HW_ADD_UNDO, NULL, &e);
	if (r < 0)
		fprintf(stderr, "ADD %s: %s\n", id, e.msg);
	return r < 0;
}

/* GC with an empty list of valid attachments, which differs from a missing list. */
static int process_gc(const struct fixture *f, int i)
{
	const struct hw_valid none[1] = { { 0 } };
	struct hw_err e;
	int r;

	(void)i;
	r = hw_gc(f->cni, f->conf, none, 0, &e);
	if (r < 0)
		fprintf(stderr, "GC: %s\n", e.msg);
	return r < 0;
}

static pid_t start_process(const struct fixture *f, int i,
			   int (*work)(const struct fixture *f, int i))
{
	pid_t child = fork();

	if (child == 0)
		_exit(work(f, i));
	assert_true(child > 0);
	return child;
}

static void assert_succeeded(const pid_t *children, size_t n)
{
	int failed = 0;

	for (size_t i = 0; i < n; i++) {
		int status = -1;

		waitpid(children[i], &status, 0);
		failed += status != 0;
	}
	assert_int_equal(failed, 0);
}

/* Return: the number of cached attachments; the plugin must have files of the same attachments */
static int count_attachments(const struct fixture *f)
{
	int n = 0;

	for (int i = 0; i < ADDS; i++) {
		autofree char *id = str_printf("c%d", i);
		autofree char *file = str_printf("is/%s", id);

		assert_int_equal(is_cached(f, "n", id), place_has(f->p, file));
		n += is_cached(f, "n", id);
	}
	return n;
}

static void keeps_adds_of_other_processes(void **state)
{
	AUTO(fixture_done)
	struct fixture f = keeper(state, KEEPER("echo >$D/begun; read go <$D/go;"));
	autofree char *begun_path = str_printf("%s/begun", f.p->dir);
	autofree char *go_path = str_printf("%s/go", f.p->dir);
	autoclose int begun = -1, go = -1;
	char newlines[ADDS];
	pid_t adds[ADDS], gc;

	assert_int_equal(mkfifo(begun_path, 0600), 0);
	assert_int_equal(mkfifo(go_path, 0600), 0);
	begun = open(begun_path, O_RDWR | O_CLOEXEC);
	go = open(go_path, O_RDWR | O_CLOEXEC);
	assert_true(begun >= 0 && go >= 0);
	for (int i = 0; i < ADDS; i++)
		adds[i] = start_process(&f, i, process_add);
	for (int i = 0; i < ADDS; i++)
		assert_int_equal(read(begun, newlines, 1), 1);
	gc = start_process(&f, 0, process_gc);
	await_lock_openers(f.p, gc, 1); /* GC has its snapshot and waits for the lock */
	memset(newlines, '\n', sizeof(newlines));
	assert_int_equal(write(go, newlines, sizeof(newlines)), sizeof(newlines));
	assert_succeeded(adds, ADDS);
	assert_succeeded(&gc, 1);
	assert_int_equal(count_attachments(&f), ADDS);
	assert_int_equal(process_gc(&f, 0), 0);
	assert_int_equal(count_attachments(&f), 0);
}

static void adds_and_gcs_at_once(void **state)
{
	AUTO(fixture_done) struct fixture f = keeper(state, KEEPER(""));
	pid_t children[ADDS + GCS];

	size_t n = 0;

	for (int i = 0; i < ADDS; i++) {
		children[n++] = start_process(&f, i, process_add);
		if (i % (ADDS / GCS) == 0)
			children[n++] = start_process(&f, 0, process_gc);
	}
	assert_succeeded(children, n);
	count_attachments(&f);
}

static const struct CMUnitTest tests[] = {
	PLACE_TEST(
		"gc: stale attachments are deleted, valid ones are kept and passed to the plugins",
		deletes_stale),
	PLACE_TEST("gc: a valid attachment does not protect another interface of the container",
		   another_interface_is_another_attachment),
	PLACE_TEST("gc: without a list every attachment is deleted and the plugins get no list",
		   no_list),
	PLACE_TEST("gc: a list entry without container ID or interface name matches no attachment",
		   entry_without_names),
	PLACE_TEST("gc: attachments of other networks are kept", keeps_other_networks),
	PLACE_TEST("gc: DEL gets the namespace, arguments and capabilities of the ADD",
		   cached_arguments_are_used),
	PLACE_TEST("gc: GC continues after errors and returns all of them", collects_errors),
	PLACE_TEST("gc: with disableGC, GC succeeds and does nothing", disabled),
	PLACE_TEST("gc: before version 1.1.0, GC calls the plugins with DEL, but not with GC",
		   before_1_1_0),
	PLACE_TEST("gc: a damaged cache file is reported and skipped", damaged_file),
	PLACE_TEST("gc: a missing cache counts as empty", no_cache),
	PLACE_TEST("gc: temporary files of dead writers are removed from the cache",
		   removes_temporary_files),
	PLACE_TEST("gc: an unreadable cache is an error before anything is deleted",
		   unreadable_cache),
	PLACE_TEST("gc: the timeout applies to the whole call", one_timeout),
	PLACE_TEST("gc: a plugin that hangs while ADDs wait is killed after the given time",
		   plugin_that_hangs),
	PLACE_TEST("gc: a cancel stops the whole call", cancelled),
	PLACE_TEST("gc: GC fails with code 11 if a running ADD does not finish in time",
		   lock_timeout),
	PLACE_TEST("gc: what is attached just after the list was made is kept",
		   attached_after_the_list),
	PLACE_TEST("gc: GC with an empty list keeps fifty attachments that are being added",
		   keeps_adds_of_other_processes),
	PLACE_TEST("gc: fifty ADDs and five GCs at once leave plugin and cache consistent",
		   adds_and_gcs_at_once),
	PLACE_TEST("gc: attachments added or replaced by another thread after the call are kept",
		   keeps_new_attachments),
};

int main(void)
{
	return cmocka_run_group_tests_name("gc", tests, NULL, NULL);
}
