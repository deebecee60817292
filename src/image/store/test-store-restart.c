/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/store/test-store-restart.c - image store: restart, kill, full disk, damage
 *
 * Here the process is killed after each step; test/faults/store.scenario kills it at each system
 * call.
 */
#include "image/store/store.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "db/db.h"
#include "image/store/test-store.h"

#define NAME "docker.io/library/busybox"

static void reopen(struct test_store *p)
{
	test_store_close(p);
	test_store_open(p);
}

static void content_survives_restart(void **state)
{
	struct test_store *p = *state;
	struct store_usage before, after;
	char id[DIGEST_TEXT];

	add_image(p, "www-data:grp", LIST("one", "two"), LIST(NAME ":1"), id);
	store_usage(p->store, &before);
	reopen(p);
	assert_finds(p, "busybox:1", id);
	store_usage(p->store, &after);
	assert_memory_equal(&before, &after, sizeof(before));
	{
		AUTO(store_snapshot_put)
		const struct store_snapshot *snap = store_snapshot_get(p->store);

		assert_false(snap->images[0]->has_uid);
		assert_string_equal(snap->images[0]->username, "www-data");
	}
	assert_int_equal(count_in(p, "layers"), 2);
	assert_int_equal(count_in(p, "gone"), 0);
}

static void second_process(void **state)
{
	struct test_store *p = *state;
	struct store *second = NULL;
	struct hw_err e = { 0 };

	assert_int_equal(store_open(p->path, &second, &e), -EBUSY);
	assert_non_null(strstr(e.msg, "is in use by another process"));
	assert_null(second);
}

static void newer_version(void **state)
{
	struct test_store *p = *state;
	autofree char *path = str_printf("%s/images.db", p->path);
	const char *const newer[] = { "SELECT 1", "SELECT 1" };
	const struct db_options options = { newer, ARRAY_SIZE(newer), .durable = true };
	struct hw_err why = { 0 };
	struct db *db = NULL;
	char chain[DIGEST_TEXT];

	add_layer(p, NULL, "one", chain);
	test_store_close(p);
	OK(db_open(path, &options, &db, &e));
	db_close(db);
	assert_int_equal(store_open(p->path, &p->store, &why), -ENOTSUP);
	assert_int_equal(count_in(p, "layers"), 1); /* nothing was removed */
}

/* ---- kill -------------------------------------------------------------------- */

enum step { BEGUN, WRITTEN, COMMITTED, ADDED, SECOND_ADDED, REMOVED, STEPS };

/* Add an image, add a second image that shares a layer, remove the second image; return after the
 * step @last. */
static void run_until(struct test_store *p, enum step last)
{
	struct store_new_layer layer;
	char id[DIGEST_TEXT];
	struct test_layer l;

	test_store_open(p);
	test_layer_begin(p, NULL, "one", &l);
	if (last == BEGUN && remove_tree(l.stage->dir, "root/f", &(struct hw_err){ 0 }) < 0)
		return;
	if (last <= WRITTEN)
		return;
	layer = test_layer_commit_arg(&l);
	OK(store_add(p->store, &(struct store_addition){ .layers = &layer, .n_layers = 1 }, NULL,
		     &e));
	if (last == COMMITTED)
		return;
	OK(store_image(p, "", LIST("one"), LIST(NAME ":1"), id, &e));
	if (last == ADDED)
		return;
	add_image(p, "", LIST("one", "two"), LIST(NAME ":2"), id);
	if (last == SECOND_ADDED)
		return;
	OK(store_image_remove(p->store, "busybox:2", &e));
}

static void kill_after(struct test_store *p, enum step last)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		run_until(p, last);
		kill(getpid(), SIGKILL);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void kill_after_each_step(void **state)
{
	static const struct {
		int layers;
		size_t images;
	} want[STEPS] = {
		[BEGUN] = { 0, 0 }, [WRITTEN] = { 0, 0 },      [COMMITTED] = { 1, 0 },
		[ADDED] = { 1, 1 }, [SECOND_ADDED] = { 2, 2 }, [REMOVED] = { 1, 1 },
	};
	struct test_store *p = *state;

	for (enum step step = BEGUN; step < STEPS; step++) {
		test_store_close(p);
		kill_after(p, step);
		test_store_open(p);
		assert_int_equal(count_in(p, "tmp"), 0);
		assert_int_equal(count_in(p, "layers"), want[step].layers);
		assert_int_equal(count_images(p), want[step].images);
		assert_int_equal(count_in(p, "gone"), step <= WRITTEN);
		OK(store_sweep(p->store, &e));
		assert_int_equal(count_in(p, "gone"), 0);
		OK(store_image_remove(p->store, "busybox:1", &e));
		OK(store_image_remove(p->store, "busybox:2", &e));
		OK(store_trim(p->store, &e));
		assert_int_equal(count_in(p, "layers"), 0);
	}
}

/* A hawser-fetch that outlives its daemon may still write to its stage by name. */
static void stage_names_are_not_reused(void **state)
{
	struct test_store *p = *state;
	autofree char *old = str_printf("%s/tmp/1", p->path);
	AUTO(store_stage_free) struct store_stage *stage = NULL;

	test_store_close(p);
	OK(file_mkdirs(AT_FDCWD, old, 0700, &e));
	test_store_open(p);
	for (int i = 0; i < 3; i++) {
		store_stage_free(take_ptr(stage));
		OK(store_layer_begin(p->store, &stage, &e));
		assert_string_not_equal(stage->name, "1");
	}
	store_stage_free(take_ptr(stage));
}

static void layer_without_row(void **state)
{
	struct test_store *p = *state;
	char chain[DIGEST_TEXT];
	struct store_usage usage;
	autofree char *path = NULL, *deep = NULL;

	digest_of("one", 3, chain);
	path = str_printf("%s/layers/%s", p->path, chain + 7);
	deep = str_printf("%s/root/a/b/c", path);
	OK(file_mkdirs(AT_FDCWD, deep, 0755, &e));
	add_layer(p, NULL, "one", chain); /* replaces the existing directory */
	assert_true(has_layer(p, chain));
	assert_int_equal(count_in(p, "gone"), 0);
	OK(store_trim(p->store, &e));
	OK(file_mkdirs(AT_FDCWD, deep, 0755, &e));
	reopen(p);
	assert_int_equal(count_in(p, "layers"), 0);
	assert_int_equal(count_in(p, "gone"), 1);
	store_usage(p->store, &usage);
	assert_int_equal(usage.layers, 0);
	reopen(p); /* the directory stays in gone/ until store_sweep() */
	OK(store_sweep(p->store, &e));
	assert_int_equal(count_in(p, "gone"), 0);
}

static void symlinks_are_not_followed(void **state)
{
	struct test_store *p = *state;
	autofree char *outside = str_printf("%s/outside", p->path);
	autofree char *kept = str_printf("%s/kept", outside);
	autofree char *left = str_printf("%s/tmp/77", p->path);
	autofree char *link = str_printf("%s/link", left);

	OK(file_mkdirs(AT_FDCWD, outside, 0755, &e));
	OK(file_replace(AT_FDCWD, kept, "x", 1, 0600, 0, &e));
	OK(file_mkdirs(AT_FDCWD, left, 0755, &e));
	assert_int_equal(symlink(outside, link), 0);
	reopen(p);
	OK(store_sweep(p->store, &e));
	assert_int_equal(count_in(p, "gone"), 0);
	assert_int_equal(count_in(p, "outside"), 1);
}

/* Deletes nested directories with very few file descriptors. */
static void few_descriptors(void **state)
{
	struct test_store *p = *state;
	AUTO(buf_done) struct buf path = { 0 };
	struct rlimit limit, few;
	int next = dup(STDIN_FILENO);

	close(next);
	buf_printf(&path, "%s/tmp/77", p->path);
	for (int i = 0; i < 40; i++)
		buf_printf(&path, "/%d", i % 3);
	OK(file_mkdirs(AT_FDCWD, path.data, 0755, &e));
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	few = limit;
	few.rlim_cur = (rlim_t)next + 6;
	reopen(p);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	OK(store_sweep(p->store, &e));
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(count_in(p, "gone"), 0);
}

static void assert_finds_damaged(struct test_store *p, const char *text, const char *id)
{
	AUTO(store_snapshot_put) const struct store_snapshot *snap = store_snapshot_get(p->store);
	const struct store_image *image = NULL;
	struct hw_err e;

	assert_int_equal(store_snapshot_find_any(snap, text, &image, &e), 1);
	assert_string_equal(image->id, id);
}

static void lost_layer(void **state)
{
	struct test_store *p = *state;
	char id[DIGEST_TEXT], chain[DIGEST_TEXT], found[DIGEST_TEXT];
	autofree char *layers = str_printf("%s/layers", p->path);
	autoclose int dir = -1;

	digest_of("one", 3, chain);
	add_image(p, "", LIST("one", "two"), LIST(NAME ":1", NAME "@" DIGEST_A), id);
	test_store_close(p);
	dir = open(layers, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	OK(remove_tree(dir, chain + 7, &e));
	test_store_open(p);
	assert_int_equal(count_images(p), 1); /* the image is still listed */
	assert_int_equal(find_image(p, "busybox:1", found), 0);
	assert_finds_damaged(p, "busybox:1", id);
	assert_finds_damaged(p, id, id);
	assert_finds_damaged(p, "busybox@" DIGEST_A, id);
	assert_finds_damaged(p, "busybox:1@" DIGEST_A, id);
	add_layer(p, NULL, "one", chain); /* as a new pull does */
	assert_finds(p, "busybox:1", id);
	OK(store_image_remove(p->store, id, &e));
	assert_int_equal(count_in(p, "layers"), 0);
}

static void damaged_image_can_be_removed(void **state)
{
	struct test_store *p = *state;
	char id[DIGEST_TEXT], chain[DIGEST_TEXT];
	autofree char *layer = NULL, *elsewhere = str_printf("%s/elsewhere", p->path);

	digest_of("one", 3, chain);
	layer = str_printf("%s/layers/%s", p->path, chain + 7);
	add_image(p, "", LIST("one", "two"), LIST(NAME ":1"), id);
	test_store_close(p);
	assert_int_equal(rename(layer, elsewhere), 0);
	test_store_open(p);
	assert_int_equal(store_image_remove(p->store, "busybox:1", NULL), 1);
	assert_int_equal(count_images(p), 0);
	assert_int_equal(count_in(p, "layers"), 0);
}

/* ---- layers of failed pulls -------------------------------------------------- */

/* Close the store, and open it again as if a day had passed. */
static void next_day(struct test_store *p)
{
	autofree char *path = str_printf("%s/images.db", p->path);
	const char *const schema[] = { "SELECT 1" };
	const struct db_options options = { schema, ARRAY_SIZE(schema), .durable = true };
	struct db *db = NULL;

	test_store_close(p);
	OK(db_open(path, &options, &db, &e));
	OK(db_run(db, "UPDATE layers SET made = made - 24 * 3600 - 1", DB_NO_VALUES, &e));
	db_close(db);
	test_store_open(p);
}

static void removed_by_sweep_after_a_day(void **state)
{
	struct test_store *p = *state;
	char id[DIGEST_TEXT], left[DIGEST_TEXT];

	add_image(p, "", LIST("one"), LIST(NAME ":1"), id);
	add_layer(p, NULL, "left", left);
	reopen(p);
	OK(store_sweep(p->store, &e));
	assert_true(has_layer(p, left));
	next_day(p);
	OK(store_sweep(p->store, &e));
	assert_false(has_layer(p, left));
	assert_finds(p, "busybox:1", id);
	assert_int_equal(count_in(p, "layers"), 1);
}

/* Two containers hold the layers of their images, the images are removed, and the process is killed. */
static void remove_images_in_use(struct test_store *p, const char *one, const char *two)
{
	char id[DIGEST_TEXT];
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		struct store_hold *hold;

		test_store_open(p);
		hold = store_hold_new(p->store);
		add_image(p, "", LIST("one"), LIST(NAME ":1"), id);
		add_image(p, "", LIST("two"), LIST(NAME ":2"), id);
		OK(store_hold_layer(hold, one, &e));
		OK(store_hold_layer(hold, two, &e));
		OK(store_image_remove(p->store, "busybox:1", &e));
		OK(store_image_remove(p->store, "busybox:2", &e));
		kill(getpid(), SIGKILL);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void sweep_removes_what_nobody_uses(void **state)
{
	struct test_store *p = *state;
	char one[DIGEST_TEXT], two[DIGEST_TEXT];
	struct store_hold *hold;

	digest_of("one", 3, one);
	digest_of("two", 3, two);
	test_store_close(p);
	remove_images_in_use(p, one, two);
	test_store_open(p);
	hold = store_hold_new(p->store);
	assert_int_equal(store_hold_layer(hold, two, NULL), 1);
	OK(store_sweep(p->store, &e));
	assert_false(has_layer(p, one));
	assert_true(has_layer(p, two));
	assert_int_equal(count_in(p, "layers"), 1);
	store_hold_free(hold);
	assert_int_equal(count_in(p, "layers"), 0);
}

/* A container outlives the process that holds its layers. */
static void hold_that_is_left(void **state)
{
	struct test_store *p = *state;
	struct store_hold *container = store_hold_new(p->store);
	char id[DIGEST_TEXT], base[DIGEST_TEXT];

	add_image(p, "", LIST("base"), LIST(NAME ":1"), id);
	digest_of("base", 4, base);
	assert_int_equal(store_hold_layer(container, base, NULL), 1);
	OK(store_image_remove(p->store, id, &e));
	store_hold_leave(container);
	OK(store_trim(p->store, &e));
	assert_true(has_layer(p, base));
	reopen(p);
	assert_true(has_layer(p, base));
	OK(store_trim(p->store, &e));
	assert_false(has_layer(p, base));
}

static void removed_by_pull_after_a_day(void **state)
{
	struct test_store *p = *state;
	struct store_hold *pull, *other;
	char left[DIGEST_TEXT], held[DIGEST_TEXT], fresh[DIGEST_TEXT];

	add_layer(p, NULL, "left", left);
	add_layer(p, NULL, "held", held);
	next_day(p);
	add_layer(p, NULL, "fresh", fresh);
	pull = store_hold_new(p->store);
	other = store_hold_new(p->store);
	assert_int_equal(store_hold_layer(pull, held, NULL), 1);
	store_hold_free(other);
	assert_false(has_layer(p, left));
	assert_true(has_layer(p, held) && has_layer(p, fresh));
	store_hold_free(pull);
	assert_false(has_layer(p, held));
	assert_true(has_layer(p, fresh));
}

/* ---- full disk --------------------------------------------------------------- */

/* Fill the file system, and leave @leave bytes free. */
static void fill_disk(const struct test_store *p, long leave)
{
	static const char block[4096];
	autofree char *path = str_printf("%s/filler", p->path);
	autoclose int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	off_t size = 0;
	ssize_t n;

	while ((n = write(fd, block, sizeof(block))) > 0)
		size += n;
	assert_int_equal(errno, ENOSPC);
	assert_int_equal(ftruncate(fd, size > leave ? size - leave : 0), 0);
}

#define LONG_USER (1 << 20)

static void full_disk(void **state)
{
	struct test_store *p = *state;
	autofree char *filler = str_printf("%s/filler", p->path);
	autofree char *user = mem_new(LONG_USER + 1);
	char id[DIGEST_TEXT], chain[DIGEST_TEXT];
	int r = -ENOSPC;
	struct hw_err why = { 0 };

	test_store_close(p);
	if (mount("none", p->path, "tmpfs", 0, "size=4m") < 0)
		skip();
	test_store_open(p);
	add_image(p, "", LIST("one"), LIST(NAME ":1"), id);
	for (long leave = 0; r == -ENOSPC; leave += 4096) { /* until there is space for a row */
		struct store_new_layer layer;
		struct test_layer l;

		assert_true(leave < 500000);
		test_layer_begin(p, NULL, "two", &l);
		fill_disk(p, leave);
		layer = test_layer_commit_arg(&l);
		r = store_add(p->store, &(struct store_addition){ .layers = &layer, .n_layers = 1 },
			      NULL, &why);
		memcpy(chain, l.chain, sizeof(chain));
		test_layer_done(&l);
		assert_int_equal(has_layer(p, chain), r == 0);
		assert_int_equal(count_in(p, "tmp"), 0);
		assert_int_equal(unlink(filler), 0);
	}
	if (r < 0)
		fail_msg("%s", why.msg);
	fill_disk(p, 0);
	/* more than the log of the database has room for after a checkpoint */
	memset(user, 'u', LONG_USER);
	r = store_image(p, user, LIST("two"), LIST(NAME ":2"), id, &why);
	assert_int_equal(r, -ENOSPC);
	assert_int_equal(count_images(p), 1);
	assert_int_equal(unlink(filler), 0);
	reopen(p);
	OK(store_image(p, "", LIST("two"), LIST(NAME ":2"), id, &e));
	assert_finds(p, "busybox:2", id);
}

static void image_removed_from_full_disk(void **state)
{
	struct test_store *p = *state;
	autofree char *filler = str_printf("%s/filler", p->path);
	char id[DIGEST_TEXT];

	test_store_close(p);
	if (mount("none", p->path, "tmpfs", 0, "size=4m") < 0)
		skip();
	/* fill the disk first while the store is open, then while the store is closed */
	for (int again = 0; again < 2; again++) {
		test_store_open(p);
		add_image(p, "", LIST("one"), LIST(NAME ":1"), id);
		if (again)
			test_store_close(p);
		fill_disk(p, 0);
		if (again)
			test_store_open(p);
		assert_finds(p, "busybox:1", id);
		OK(store_image_remove(p->store, "busybox:1", &e));
		assert_int_equal(count_in(p, "layers"), 0);
		test_store_close(p);
		assert_int_equal(unlink(filler), 0);
	}
}

#define TEST(name, f)                                                                              \
	{                                                                                          \
		name, f, test_store_new, test_store_delete                                         \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST("store: images and layers survive a restart", content_survives_restart),
		TEST("store: a second process cannot open the store", second_process),
		TEST("store: a store of a newer version is rejected and not changed",
		     newer_version),
		TEST("store: after a kill at any step, only complete data is left",
		     kill_after_each_step),
		TEST("store: a sweep removes layers that neither an image nor a container uses",
		     sweep_removes_what_nobody_uses),
		TEST("store: layers of a hold that was left stay while the store is open, and "
		     "after "
		     "a restart until they are swept",
		     hold_that_is_left),
		TEST("store: names of stages are not reused after a restart",
		     stage_names_are_not_reused),
		TEST("store: a layer directory without a database row is removed",
		     layer_without_row),
		TEST("store: removal does not follow symlinks", symlinks_are_not_followed),
		TEST("store: removal of nested directories needs few file descriptors",
		     few_descriptors),
		TEST("store: an image that lost a layer is not found until the layer is added "
		     "again",
		     lost_layer),
		TEST("store: an image that lost a layer can be removed",
		     damaged_image_can_be_removed),
		TEST("store: layers of a failed pull survive a restart, and are swept after a day",
		     removed_by_sweep_after_a_day),
		TEST("store: layers of a failed pull are removed after a day when a hold is "
		     "released",
		     removed_by_pull_after_a_day),
		TEST("store: a change on a full disk fails and has no effect", full_disk),
		TEST("store: an image can be removed when the disk is full, also after a restart",
		     image_removed_from_full_disk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
