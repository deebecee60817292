/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/store/test-store.c - add, find, share and remove layers and images
 */
#include "image/store/store.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "image/store/state.h"
#include "image/store/test-store.h"

#define NAME "docker.io/library/busybox"

static void layer_is_stored(void **state)
{
	struct test_store *p = *state;
	AUTO(buf_done) struct buf text = { 0 };
	autoclose int fd = -1;
	struct store_usage usage;
	struct store_layer layer;
	char chain[DIGEST_TEXT];

	add_layer(p, NULL, "one", chain);
	assert_true(has_layer(p, chain));
	OK(store_layer_get(p->store, chain, &layer, &e));
	assert_string_equal(layer.chain_id, chain);
	assert_string_equal(layer.diff_id, chain); /* both are equal for the lowest layer */
	assert_int_equal(layer.archive, 1024);
	assert_int_equal(layer.blob_size, 77);
	assert_true(layer.rebuildable && !layer.opaque && !layer.blob_kept);
	OK(fd = store_layer_open(p->store, chain, &e));
	OK(file_read(fd, "root/f", 100, &text, &e));
	assert_string_equal(text.data, "one");
	assert_int_equal(count_in(p, "tmp"), 0);
	store_usage(p->store, &usage);
	assert_int_equal(usage.layers, 1);
	assert_int_equal(usage.bytes, layer.disk);
	assert_int_equal(usage.inodes, layer.inodes);
	assert_true(layer.disk >= 4096);
	/* the file, root/, the directory of the layer, the recipe, the row as a file */
	assert_int_equal(layer.inodes, 5);
}

static void stage_is_freed(void **state)
{
	struct test_store *p = *state;
	struct test_layer l;

	test_layer_begin(p, NULL, "one", &l);
	assert_int_equal(count_in(p, "tmp"), 1);
	test_layer_done(&l);
	assert_int_equal(count_in(p, "tmp"), 0);
	assert_false(has_layer(p, DIGEST_A));
}

static void same_layer_twice(void **state)
{
	struct test_store *p = *state;
	struct test_layer l[3];
	struct store_new_layer v[3];
	struct store_usage usage;

	test_layer_begin(p, NULL, "one", &l[0]);
	test_layer_begin(p, NULL, "one", &l[1]);
	test_layer_begin(p, NULL, "one", &l[2]);
	for (size_t i = 0; i < 3; i++)
		v[i] = test_layer_commit_arg(&l[i]);
	OK(store_add(p->store, &(struct store_addition){ .layers = &v[0], .n_layers = 1 }, NULL,
		     &e));
	OK(store_add(p->store, &(struct store_addition){ .layers = &v[1], .n_layers = 2 }, NULL,
		     &e)); /* like a slower pull of the same layer */
	assert_true(has_layer(p, l[0].chain));
	for (size_t i = 0; i < 3; i++)
		test_layer_done(&l[i]);
	assert_int_equal(count_in(p, "layers"), 1);
	assert_int_equal(count_in(p, "tmp"), 0);
	store_usage(p->store, &usage);
	assert_int_equal(usage.layers, 1);
}

static void invalid_digests(void **state)
{
	struct test_store *p = *state;
	struct store_new_layer layer;
	struct hw_err why = { 0 };
	struct test_layer l;

	test_layer_begin(p, NULL, "one", &l);
	layer = test_layer_commit_arg(&l);
	layer.chain_id = "sha256:../../etc";
	assert_int_equal(store_add(p->store,
				   &(struct store_addition){ .layers = &layer, .n_layers = 1 },
				   NULL, &why),
			 -EINVAL);
	assert_string_equal(why.msg, "invalid SHA-256 digest \"sha256:../../etc\"");
	layer = test_layer_commit_arg(&l);
	OK(store_add(p->store, &(struct store_addition){ .layers = &layer, .n_layers = 1 }, NULL,
		     &e));
	assert_int_equal(store_add(p->store,
				   &(struct store_addition){ .layers = &layer, .n_layers = 1 },
				   NULL, &why),
			 -EINVAL);
	assert_int_equal(store_layer_open(p->store, DIGEST_A, &why), -ENOENT);
	assert_int_equal(store_layer_open(p->store, "..", &why), -EINVAL);
	test_layer_done(&l);
}

static void image_is_stored(void **state)
{
	struct test_store *p = *state;
	AUTO(store_snapshot_put) const struct store_snapshot *snap = NULL;
	AUTO(buf_done) struct buf manifest = { 0 }, config = { 0 };
	autofree struct store_layer *layers = NULL;
	char id[DIGEST_TEXT];
	size_t n = 0;

	add_image(p, "1002:grp", LIST("one", "two"), LIST(NAME ":latest", NAME "@" DIGEST_A), id);
	snap = store_snapshot_get(p->store);
	assert_int_equal(snap->n, 1);
	assert_string_equal(snap->images[0]->id, id);
	assert_int_equal(snap->images[0]->tags.n, 1);
	assert_string_equal(snap->images[0]->tags.v[0], NAME ":latest");
	assert_string_equal(snap->images[0]->digests.v[0], NAME "@" DIGEST_A);
	assert_true(snap->images[0]->size > 8192);
	assert_true(snap->images[0]->has_uid && snap->images[0]->uid == 1002);
	assert_string_equal(snap->images[0]->username, "");
	assert_false(snap->images[0]->pinned || snap->images[0]->damaged);
	assert_int_equal(store_image_read(p->store, id, &manifest, &config, NULL), 1);
	assert_true(str_starts(manifest.data, "{\"schemaVersion\""));
	assert_true(str_starts(config.data, "{\"architecture\""));
	OK(store_image_layers(p->store, id, &layers, &n, &e));
	assert_int_equal(n, 2);
	assert_int_equal(layers[0].content, 3);
	assert_string_equal(layers[0].chain_id, layers[0].diff_id);
	assert_string_not_equal(layers[1].chain_id, layers[1].diff_id);
}

/* A writer holds the lock while it waits for the disk; here the test holds it. */
static void readers_do_not_block(void **state)
{
	struct test_store *p = *state;
	AUTO(buf_done) struct buf config = { 0 };
	autofree struct store_layer *layers = NULL;
	struct store_layer layer;
	char id[DIGEST_TEXT];
	size_t n = 0;

	add_image(p, "", LIST("one"), LIST(NAME ":latest"), id);
	STORE_LOCKED(p->store);
	assert_int_equal(store_image_read(p->store, id, NULL, &config, NULL), 1);
	assert_int_equal(store_image_layers(p->store, id, &layers, &n, NULL), 1);
	assert_int_equal(store_layer_get(p->store, layers[0].chain_id, &layer, NULL), 1);
	assert_int_equal(layer.content, 3);
}

static void image_is_incomplete(void **state)
{
	struct test_store *p = *state;
	char chain[DIGEST_TEXT], id[DIGEST_TEXT];
	struct hw_err e = { 0 };

	add_layer(p, NULL, "one", chain);
	assert_int_equal(store_image(p, "", LIST("one", "two"), LIST(NAME ":1"), id, &e), -ENOENT);
	assert_non_null(strstr(e.msg, "is not in the store"));
	assert_int_equal(count_images(p), 0);
	assert_int_equal(store_image(p, "", LIST("one"), LIST("busybox"), id, &e), -EINVAL);
	assert_non_null(strstr(e.msg, "incomplete image name \"busybox\""));
	assert_int_equal(count_images(p), 0);
}

static void image_with_no_layers(void **state)
{
	struct test_store *p = *state;
	char id[DIGEST_TEXT];

	add_image(p, "www-data:x", (const char *const[]){ NULL }, NULL, id);
	assert_finds(p, id, id);
	assert_int_equal(store_image_remove(p->store, id, NULL), 1);
	assert_int_equal(count_images(p), 0);
}

static void find_by_id_and_name(void **state)
{
	struct test_store *p = *state;
	char id[DIGEST_TEXT], other[DIGEST_TEXT], text[DIGEST_TEXT];

	add_image(p, "", LIST("one"), LIST(NAME ":latest", NAME "@" DIGEST_A), id);
	assert_finds(p, "busybox", id);
	assert_finds(p, "busybox:latest", id);
	assert_finds(p, NAME, id);
	assert_finds(p, "busybox@" DIGEST_A, id);
	assert_finds(p, "busybox:other@" DIGEST_A, id);
	assert_finds(p, id, id);
	assert_finds(p, id + 7, id);
	snprintf(text, sizeof(text), "%.10s", id + 7);
	assert_finds(p, text, id);
	snprintf(text, sizeof(text), "%.12s", id);
	assert_finds(p, text, id);
	assert_int_equal(find_image(p, "busybox:other", text), 0);
	assert_int_equal(find_image(p, "", text), 0);
	assert_int_equal(find_image(p, "No Name", text), 0);
	assert_int_equal(find_image(p, "sha256:", text), 0);
	/* at least two of seventeen IDs begin with the same digit */
	for (int i = 0; i < 17; i++) {
		autofree char *name = str_printf("%s:%d", NAME, i);

		snprintf(text, sizeof(text), "user%d", i);
		add_image(p, text, LIST("one"), LIST(name), other);
	}
	for (int i = 0, several = 0; i < 16; i++) {
		snprintf(text, sizeof(text), "%x", (unsigned int)i);
		several += find_image(p, text, other) == -EINVAL;
		assert_true(i < 15 || several > 0);
	}
}

static void two_names_one_image(void **state)
{
	struct test_store *p = *state;
	char id[DIGEST_TEXT], again[DIGEST_TEXT];

	add_image(p, "", LIST("one"), LIST(NAME ":1"), id);
	add_image(p, "", LIST("one"), LIST("quay.io/x/y:2"), again);
	assert_string_equal(id, again);
	assert_finds(p, "busybox:1", id);
	assert_finds(p, "quay.io/x/y:2", id);
	assert_int_equal(count_images(p), 1);
	assert_int_equal(store_image_remove(p->store, "quay.io/x/y:2", NULL), 1);
	assert_int_equal(find_image(p, "busybox:1", again),
			 0); /* the image was removed with all names */
	assert_int_equal(count_in(p, "layers"), 0);
	assert_int_equal(store_image_remove(p->store, "quay.io/x/y:2", NULL), 0);
}

static void stat_database(const struct test_store *p, struct stat ret_files[2])
{
	static const char *const names[] = { "images.db", "images.db-wal" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		autofree char *path = str_printf("%s/%s", p->path, names[i]);

		assert_int_equal(stat(path, &ret_files[i]), 0);
	}
}

static bool database_changed(const struct test_store *p, const struct stat before[2])
{
	struct stat now[2];
	bool same = true;

	stat_database(p, now);
	for (size_t i = 0; i < ARRAY_SIZE(now); i++)
		same = same && now[i].st_size == before[i].st_size &&
		       now[i].st_mtim.tv_sec == before[i].st_mtim.tv_sec &&
		       now[i].st_mtim.tv_nsec == before[i].st_mtim.tv_nsec;
	return !same;
}

/* Delete the directory of a layer while the store is closed. */
static void lose_layer(struct test_store *p, const char *chain)
{
	autofree char *path = str_printf("%s/layers/%s", p->path, chain + 7);

	test_store_close(p);
	OK(remove_tree(AT_FDCWD, path, &e));
	test_store_open(p);
}

static void image_exists(void **state)
{
	struct test_store *p = *state;
	struct stat before[2];
	char id[DIGEST_TEXT], chain[DIGEST_TEXT];
	struct hw_err why = { 0 };

	add_image(p, "", LIST("one"), LIST(NAME ":1", NAME "@" DIGEST_A), id);
	stat_database(p, before);
	OK(store_image(p, "", LIST("one"), LIST(NAME "@" DIGEST_A, NAME ":1"), id, &e));
	assert_false(database_changed(p, before));
	OK(store_image(p, "", LIST("one"), LIST(NAME ":2"), id, &e));
	assert_true(database_changed(p, before));
	assert_finds(p, "busybox:2", id);
	digest_of("one", 3, chain);
	lose_layer(p, chain);
	assert_int_equal(store_image(p, "", LIST("one"), LIST(NAME ":1"), id, &why), -ENOENT);
}

/* The first image of a pair is complete, but the second lacks a layer. */
static void all_images_or_none(void **state)
{
	struct test_store *p = *state;
	autofree char *first = make_config("", LIST("one")), *second = make_config("", LIST("two"));
	const struct store_new_image images[] = {
		{ "{}", 2, first, strlen(first), LIST(NAME ":1"), 1 },
		{ "{}", 2, second, strlen(second), LIST(NAME ":2", NAME ":1"), 2 },
	};
	char ids[2][DIGEST_TEXT], chain[DIGEST_TEXT];
	struct hw_err e;

	add_layer(p, NULL, "one", chain);
	assert_int_equal(store_add(p->store,
				   &(struct store_addition){ .images = images, .n_images = 2 }, ids,
				   &e),
			 -ENOENT);
	assert_int_equal(count_images(p), 0);
	add_layer(p, NULL, "two", chain);
	assert_int_equal(store_add(p->store,
				   &(struct store_addition){ .images = images, .n_images = 2 }, ids,
				   &e),
			 0);
	assert_int_equal(count_images(p), 2);
	assert_finds(p, "busybox:2", ids[1]);
	assert_finds(p, "busybox:1", ids[1]); /* a name belongs to the last image that has it */
}

static void name_moves(void **state)
{
	struct test_store *p = *state;
	AUTO(store_snapshot_put) const struct store_snapshot *snap = NULL;
	char one[DIGEST_TEXT], two[DIGEST_TEXT];

	add_image(p, "", LIST("one"), LIST(NAME ":latest", NAME "@" DIGEST_A), one);
	add_image(p, "", LIST("two"), LIST(NAME ":latest"), two);
	assert_finds(p, "busybox", two);
	assert_finds(p, "busybox@" DIGEST_A, one);
	snap = store_snapshot_get(p->store);
	assert_int_equal(snap->n, 2);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(snap->images[i]->tags.n, str_equal(snap->images[i]->id, two));
}

static void layers_are_shared(void **state)
{
	struct test_store *p = *state;
	char one[DIGEST_TEXT], two[DIGEST_TEXT], base[DIGEST_TEXT];
	struct store_usage usage;

	digest_of("base", 4, base);
	add_image(p, "", LIST("base", "one"), LIST(NAME ":1"), one);
	add_image(p, "", LIST("base", "two"), LIST(NAME ":2"), two);
	assert_int_equal(count_in(p, "layers"), 3);
	OK(store_image_remove(p->store, one, &e));
	assert_int_equal(count_in(p, "layers"), 2);
	assert_true(has_layer(p, base));
	assert_finds(p, "busybox:2", two);
	OK(store_image_remove(p->store, "busybox:2", &e));
	assert_int_equal(count_in(p, "layers"), 0);
	assert_int_equal(count_in(p, "gone"), 0);
	store_usage(p->store, &usage);
	assert_int_equal(usage.layers, 0);
	assert_int_equal(usage.bytes, 0);
	assert_int_equal(usage.inodes, 0);
}

static void held_layers_stay(void **state)
{
	struct test_store *p = *state;
	struct store_hold *pod = store_hold_new(p->store), *pull = store_hold_new(p->store);
	char id[DIGEST_TEXT], base[DIGEST_TEXT];

	digest_of("base", 4, base);
	OK(store_hold_layer(pull, base, &e));
	add_image(p, "", LIST("base", "one"), LIST(NAME ":1"), id);
	assert_int_equal(store_hold_layer(pod, base, NULL), 1);
	assert_int_equal(store_hold_layer(pod, base, NULL), 1); /* holding it twice has no effect */
	assert_int_equal(store_hold_layer(pod, DIGEST_A, NULL), 0);
	OK(store_image_remove(p->store, id, &e));
	assert_int_equal(count_in(p, "layers"), 1);
	store_hold_free(pull);
	assert_true(has_layer(p, base));
	OK(store_trim(p->store, &e));
	assert_true(has_layer(p, base));
	store_hold_free(pod);
	assert_false(has_layer(p, base));
	assert_int_equal(count_in(p, "gone"), 0);
}

static void all_layers_can_be_held(void **state)
{
	struct test_store *p = *state;
	struct store_hold *pod = store_hold_new(p->store);
	char id[DIGEST_TEXT];

	add_image(p, "", LIST("base", "one"), LIST(NAME ":1"), id);
	OK(store_hold_all(pod, &e));
	OK(store_hold_all(pod, &e)); /* holding them twice has no effect */
	OK(store_image_remove(p->store, id, &e));
	OK(store_trim(p->store, &e));
	assert_int_equal(count_in(p, "layers"), 2);
	store_hold_free(pod);
	assert_int_equal(count_in(p, "layers"), 0);
}

static void failed_pull_then_trim(void **state)
{
	struct test_store *p = *state;
	struct store_hold *pull = store_hold_new(p->store);
	char chain[DIGEST_TEXT];

	digest_of("one", 3, chain);
	assert_int_equal(store_hold_layer(pull, chain, NULL), 0);
	add_layer(p, NULL, "one", chain);
	OK(store_trim(p->store, &e));
	assert_true(has_layer(p, chain));
	store_hold_free(pull); /* the pull failed */
	assert_true(has_layer(p, chain));
	OK(store_trim(p->store, &e));
	assert_false(has_layer(p, chain));
}

static void failed_pull_then_removal(void **state)
{
	struct test_store *p = *state;
	struct store_hold *pull = store_hold_new(p->store);
	char left[DIGEST_TEXT], held[DIGEST_TEXT], id[DIGEST_TEXT];

	add_image(p, "", LIST("one"), LIST(NAME ":1"), id);
	add_layer(p, NULL, "left", left);
	add_layer(p, NULL, "held", held);
	OK(store_hold_layer(pull, held, &e));
	OK(store_image_remove(p->store, id, &e));
	assert_false(has_layer(p, left));
	assert_true(has_layer(p, held));
	store_hold_free(pull);
}

static void assert_layer_text(const struct test_store *p, const char *chain, const char *text)
{
	autofree char *path = str_printf("%s/layers/%s/root/f", p->path, chain + 7);
	AUTO(buf_done) struct buf got = { 0 };

	OK(file_read(AT_FDCWD, path, 100, &got, &e));
	assert_string_equal(got.data, text);
}

static void damage_layer(const struct test_store *p, const char *chain)
{
	autofree char *path = str_printf("%s/layers/%s/root/f", p->path, chain + 7);

	OK(file_replace(AT_FDCWD, path, "bad", 3, 0644, 0, &e));
}

static void suspect_layer_is_replaced(void **state)
{
	struct test_store *p = *state;
	struct store_hold *pod = store_hold_new(p->store);
	struct store_usage before, after;
	char id[DIGEST_TEXT], chain[DIGEST_TEXT];
	struct hw_err why = { 0 };

	digest_of("one", 3, chain);
	assert_int_equal(store_layer_mark_suspect(p->store, chain, &why), 0);
	add_image(p, "", LIST("one", "two"), LIST(NAME ":1"), id);
	damage_layer(p, chain);
	store_usage(p->store, &before);
	assert_int_equal(store_hold_layer(pod, chain, &why), 1);
	assert_int_equal(store_layer_mark_suspect(p->store, chain, &why), -EBUSY);
	store_hold_free(pod);
	assert_int_equal(store_layer_mark_suspect(p->store, chain, &why), 1);
	assert_finds(p, "busybox:1", id);
	add_layer(p, NULL, "one", chain);
	assert_layer_text(p, chain, "one");
	assert_int_equal(count_in(p, "tmp") + count_in(p, "gone"), 0);
	store_usage(p->store, &after);
	assert_memory_equal(&before, &after, sizeof(before));
	OK(store_trim(p->store, &e));
	assert_finds(p, "busybox:1", id);
}

static void suspect_layer_is_cleared(void **state)
{
	struct test_store *p = *state;
	struct store_hold *pull = store_hold_new(p->store);
	char id[DIGEST_TEXT], chain[DIGEST_TEXT];

	digest_of("one", 3, chain);
	add_image(p, "", LIST("one"), LIST(NAME ":1"), id);
	damage_layer(p, chain);
	OK(store_layer_mark_suspect(p->store, chain, &e));
	assert_int_equal(store_hold_layer(pull, chain, &(struct hw_err){ 0 }), 0);
	store_layer_clear_suspect(p->store, chain);
	assert_int_equal(store_hold_layer(pull, chain, &(struct hw_err){ 0 }), 1);
	add_layer(p, NULL, "one", chain); /* the layer exists, so nothing changes */
	assert_layer_text(p, chain, "bad");
	store_hold_free(pull);
}

/* An image may have the name "sha256" and 64 digits as tag. */
static void id_before_name(void **state)
{
	struct test_store *p = *state;
	char id[DIGEST_TEXT], evil[DIGEST_TEXT];
	autofree char *name = NULL;

	add_image(p, "", LIST("one"), LIST(NAME ":1"), id);
	name = str_printf("docker.io/library/%s", id);
	add_image(p, "", LIST("two"), LIST(name), evil);
	assert_finds(p, id, id);
	assert_finds(p, name, evil);
}

static void snapshots_are_immutable(void **state)
{
	struct test_store *p = *state;
	AUTO(store_snapshot_put) const struct store_snapshot *before = NULL, *after = NULL;
	char id[DIGEST_TEXT], kept[DIGEST_TEXT];

	add_image(p, "", LIST("kept"), LIST(NAME ":k"), kept);
	add_image(p, "", LIST("one"), LIST(NAME ":1"), id);
	before = store_snapshot_get(p->store);
	OK(store_image_remove(p->store, id, &e));
	after = store_snapshot_get(p->store);
	assert_int_equal(before->n, 2);
	assert_int_equal(after->n, 1);
	assert_string_equal(after->images[0]->id, kept);
	assert_true(before->images[0] == after->images[0] || before->images[1] == after->images[0]);
}

static bool is_pinned(struct test_store *p)
{
	AUTO(store_snapshot_put) const struct store_snapshot *snap = store_snapshot_get(p->store);

	assert_int_equal(snap->n, 1);
	return snap->images[0]->pinned;
}

static void images_are_pinned(void **state)
{
	struct test_store *p = *state;
	AUTO(hw_strings_free) struct hw_strings names = { 0 };
	char id[DIGEST_TEXT];

	strings_add(&names, NAME ":pause");
	store_pin(p->store, &names);
	add_image(p, "", LIST("one"), LIST(NAME ":pause"), id);
	assert_true(is_pinned(p));
	store_pin(p->store, &(struct hw_strings){ 0 });
	assert_false(is_pinned(p));
	store_pin(p->store, &names);
	assert_true(is_pinned(p));
	assert_finds(p, "busybox:pause", id);
	OK(store_image_remove(p->store, id, &e));
}

/* Before, a reload that could not read the database left the old marks in place. */
static void pinning_needs_no_database(void **state)
{
	struct test_store *p = *state;
	autofree char *path = str_printf("%s/images.db", p->path);
	AUTO(hw_strings_free) struct hw_strings names = { 0 };
	AUTO(db_close) struct db *db = NULL;
	char id[DIGEST_TEXT];

	add_image(p, "", LIST("one"), LIST(NAME ":pause"), id);
	OK(db_open(path, &(struct db_options){ LIST("SELECT 1"), 1, .busy_ms = 1000 }, &db, &e));
	OK(db_run(db, "ALTER TABLE names RENAME TO unreadable", DB_NO_VALUES, &e));
	strings_add(&names, NAME ":pause");
	store_pin(p->store, &names);
	assert_true(is_pinned(p));
}

/* ---- threads ------------------------------------------------------------------- */

#define ROUNDS 20

static void *add_and_remove(void *arg)
{
	struct test_store *p = arg;
	char id[DIGEST_TEXT];

	for (int i = 0; i < ROUNDS; i++) {
		AUTO(store_hold_free) struct store_hold *hold = store_hold_new(p->store);
		char base[DIGEST_TEXT];

		digest_of("base", 4, base);
		OK(store_hold_layer(hold, base, &e));
		add_image(p, "", LIST("base"), LIST(NAME ":t"), id);
		OK(store_image_remove(p->store, "busybox:t", &e));
	}
	return NULL;
}

static void *read_snapshots(void *arg)
{
	struct test_store *p = arg;

	for (int i = 0; i < 50 * ROUNDS; i++) {
		AUTO(store_snapshot_put)
		const struct store_snapshot *snap = store_snapshot_get(p->store);

		if (snap->n > 0)
			assert_true(str_starts(snap->images[0]->id, "sha256:"));
	}
	return NULL;
}

static void many_threads(void **state)
{
	struct test_store *p = *state;
	pthread_t threads[6];

	for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL,
						i < 4 ? add_and_remove : read_snapshots, p),
				 0);
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
		pthread_join(threads[i], NULL);
	OK(store_image_remove(p->store, "busybox:t", &e));
	assert_int_equal(count_in(p, "layers"), 0);
	assert_int_equal(count_in(p, "tmp"), 0);
	assert_int_equal(count_in(p, "gone"), 0);
}

#define TEST(name, f)                                                                              \
	{                                                                                          \
		name, f, test_store_new, test_store_delete                                         \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST("store: a layer is stored with all its properties", layer_is_stored),
		TEST("store: a stage that is not committed leaves nothing behind", stage_is_freed),
		TEST("store: adding an existing layer succeeds", same_layer_twice),
		TEST("store: an invalid digest is rejected", invalid_digests),
		TEST("store: an image is stored with all its properties", image_is_stored),
		TEST("store: an image with a missing layer or an incomplete name is rejected",
		     image_is_incomplete),
		TEST("store: readers never block on writers", readers_do_not_block),
		TEST("store: an image may have no layers", image_with_no_layers),
		TEST("store: an image is found by ID, prefix of the ID, tag and digest",
		     find_by_id_and_name),
		TEST("store: an image with two names is stored once and removed with both names",
		     two_names_one_image),
		TEST("store: adding an existing image does not write to the database",
		     image_exists),
		TEST("store: of several images all or none are added", all_images_or_none),
		TEST("store: a tag moves to another image, and the first image keeps its digest",
		     name_moves),
		TEST("store: images share layers, and a layer is removed with its last image",
		     layers_are_shared),
		TEST("store: a held layer stays until the last hold is released", held_layers_stay),
		TEST("store: all layers can be held, without a list of them",
		     all_layers_can_be_held),
		TEST("store: layers of a failed pull stay until the store is trimmed",
		     failed_pull_then_trim),
		TEST("store: layers of a failed pull are removed when an image is removed",
		     failed_pull_then_removal),
		TEST("store: a suspect layer stays until it is replaced",
		     suspect_layer_is_replaced),
		TEST("store: a layer that is no longer suspect is not replaced",
		     suspect_layer_is_cleared),
		TEST("store: an image ID is not mistaken for a name", id_before_name),
		TEST("store: a snapshot is immutable and shares images with the next snapshot",
		     snapshots_are_immutable),
		TEST("store: images are pinned and unpinned by name", images_are_pinned),
		TEST("store: images are pinned although the database cannot be read",
		     pinning_needs_no_database),
		TEST("store: many threads can add, remove and read images at the same time",
		     many_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
