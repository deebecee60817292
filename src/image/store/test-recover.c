/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/store/test-recover.c - image store: a database that was lost or damaged
 *
 * test/faults/store.scenario kills the recovery at each system call.
 */
#include "image/store/store.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "db/db.h"
#include "image/store/state.h"
#include "image/store/test-store.h"

#define NAME "docker.io/library/busybox"
#define PAGE 4096

/* ---- helpers ------------------------------------------------------------------ */

/* Two images that share a layer, and a layer of a failed pull. */
struct content {
	char one[DIGEST_TEXT], two[DIGEST_TEXT], left[DIGEST_TEXT];
};

static void add_content(struct test_store *p, struct content *ret)
{
	add_image(p, "7", LIST("base", "one"), LIST(NAME ":1", NAME ":latest", NAME "@" DIGEST_A),
		  ret->one);
	add_image(p, "", LIST("base", "two"), LIST(NAME ":2"), ret->two);
	add_layer(p, NULL, "left", ret->left);
}

static char *path_of(const struct test_store *p, const char *before, const char *id,
		     const char *after)
{
	return str_printf("%s/%s%s%s", p->path, before, id ? id + strlen("sha256:") : "", after);
}

/* All that a client can see of the store. */
static char *describe(struct test_store *p)
{
	AUTO(store_snapshot_put) const struct store_snapshot *snap = store_snapshot_get(p->store);
	AUTO(buf_done) struct buf b = { 0 };
	struct store_usage usage;

	for (size_t i = 0; i < snap->n; i++) {
		const struct store_image *image = snap->images[i];

		buf_printf(&b, "%s %s %lld %d:%lld:%s %s", image->id, image->manifest,
			   (long long)image->size, image->has_uid, (long long)image->uid,
			   image->username, image->damaged ? "damaged" : "complete");
		for (size_t k = 0; k < image->tags.n; k++)
			buf_printf(&b, " %s", image->tags.v[k]);
		for (size_t k = 0; k < image->digests.n; k++)
			buf_printf(&b, " %s", image->digests.v[k]);
		buf_puts(&b, "\n");
	}
	store_usage(p->store, &usage);
	buf_printf(&b, "%lld %lld %zu\n", (long long)usage.bytes, (long long)usage.inodes,
		   usage.layers);
	return buf_take(&b);
}

static bool is_lost(struct test_store *p)
{
	autofree char *why = store_loss(p->store);

	return why != NULL;
}

static void reopen(struct test_store *p)
{
	test_store_close(p);
	test_store_open(p);
}

static void recover(struct test_store *p, struct store_recovery *ret)
{
	OK(store_recover(p->store, ret, &e));
	assert_false(is_lost(p));
	assert_int_equal(count_in(p, "tmp"), 0);
	assert_int_equal(count_in(p, "gone"), 0);
}

static void replace_file(const struct test_store *p, const char *before, const char *id,
			 const char *after, const char *text)
{
	autofree char *path = path_of(p, before, id, after);

	OK(file_replace(AT_FDCWD, path, text, strlen(text), 0600, 0, &e));
}

static void delete_path(const struct test_store *p, const char *before, const char *id,
			const char *after)
{
	autofree char *path = path_of(p, before, id, after);

	OK(remove_tree(AT_FDCWD, path, &e));
}

/* ---- damage: the store is closed ------------------------------------------------ */

static void delete_database(struct test_store *p)
{
	delete_path(p, "images.db", NULL, "");
}

static void empty_database(struct test_store *p)
{
	replace_file(p, "images.db", NULL, "", "");
}

static void overwrite_database(struct test_store *p)
{
	replace_file(p, "images.db", NULL, "", "not a database");
}

static struct db *open_own(struct test_store *p)
{
	autofree char *path = path_of(p, "images.db", NULL, "");
	const struct db_options options = { LIST("SELECT 1"), 1, .busy_ms = 1000 };
	struct db *db = NULL;

	OK(db_open(path, &options, &db, &e));
	return db;
}

/* Overwrites the pages of the table "layers". */
static void damage_page(struct test_store *p)
{
	autofree char *path = path_of(p, "images.db", NULL, "");
	struct db *db = open_own(p);
	autoclose int fd = -1;
	char page[PAGE];
	int64_t root = 0;

	OK(db_get_int(db, "SELECT rootpage FROM sqlite_schema WHERE name = 'layers'", DB_NO_VALUES,
		      &root, &e));
	db_close(db);
	memset(page, 0x5a, sizeof(page));
	fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_int_equal(pwrite(fd, page, PAGE, (root - 1) * PAGE), PAGE);
}

static void delete_rows(struct test_store *p)
{
	static const char *const sql[] = { "DELETE FROM layers", "DELETE FROM images",
					   "DELETE FROM image_layers", "DELETE FROM names" };
	struct db *db = open_own(p);

	for (size_t i = 0; i < ARRAY_SIZE(sql); i++)
		OK(db_run(db, sql[i], DB_NO_VALUES, &e));
	db_close(db);
}

/* As after the restoration of an old copy of the database. */
static void delete_named_image(struct test_store *p, const char *name)
{
	struct db *db = open_own(p);

	OK(db_run(db, "DELETE FROM names WHERE name = ?", DB_VALUES(DB_TEXT(name)), &e));
	OK(db_run(db, "DELETE FROM images WHERE id NOT IN (SELECT image FROM names)", DB_NO_VALUES,
		  &e));
	OK(db_run(db, "DELETE FROM image_layers WHERE image NOT IN (SELECT image FROM names)",
		  DB_NO_VALUES, &e));
	OK(db_run(db,
		  "DELETE FROM layers WHERE used = 1"
		  " AND chain NOT IN (SELECT chain FROM image_layers)",
		  DB_NO_VALUES, &e));
	db_close(db);
}

static void delete_one_image(struct test_store *p)
{
	delete_named_image(p, NAME ":2");
}

static void (*const damages[])(struct test_store *p) = {
	delete_database, empty_database, overwrite_database,
	damage_page,	 delete_rows,	 delete_one_image,
};

/* ---- tests ---------------------------------------------------------------------- */

static void nothing_is_removed(void **state)
{
	struct test_store *p = *state;
	struct content c;

	for (size_t i = 0; i < ARRAY_SIZE(damages); i++) {
		AUTO(store_recovery_done) struct store_recovery result = { 0 };
		autofree char *before = NULL, *after = NULL, *later = NULL;

		add_content(p, &c);
		before = describe(p);
		test_store_close(p);
		damages[i](p);
		test_store_open(p);
		for (int restart = 0; restart < 2; restart++) {
			assert_true(is_lost(p));
			assert_int_equal(count_images(p), damages[i] == delete_one_image);
			OK(store_sweep(p->store, &e));
			OK(store_trim(p->store, &e));
			assert_int_equal(count_in(p, "layers"), 4);
			assert_int_equal(count_in(p, "images"), 2);
			reopen(p);
		}
		recover(p, &result);
		assert_true(result.lost);
		assert_int_equal(result.layers, 4);
		assert_int_equal(result.unknown_layers + result.missing.n, 0);
		after = describe(p);
		assert_string_equal(before, after);
		reopen(p);
		later = describe(p);
		assert_string_equal(before, later);
		assert_false(is_lost(p));
		OK(store_image_remove(p->store, c.one, &e));
		OK(store_image_remove(p->store, c.two, &e));
		assert_int_equal(count_in(p, "layers"), 0);
		assert_int_equal(count_in(p, "images"), 0);
	}
}

static void nothing_to_recover(void **state)
{
	struct test_store *p = *state;
	AUTO(store_recovery_done) struct store_recovery result = { 0 };
	autofree char *before = NULL, *after = NULL;
	struct content c;

	add_content(p, &c);
	before = describe(p);
	recover(p, &result);
	after = describe(p);
	assert_false(result.lost);
	assert_string_equal(before, after);
}

/* A pull before the recovery uses the layers, and a removal keeps those of other images. */
static void used_before_recovery(void **state)
{
	struct test_store *p = *state;
	AUTO(store_recovery_done) struct store_recovery result = { 0 };
	AUTO(store_hold_free) struct store_hold *hold = NULL;
	char chain[DIGEST_TEXT], id[DIGEST_TEXT], third[DIGEST_TEXT];
	autofree char *before = NULL, *after = NULL;
	struct content c;

	add_content(p, &c);
	before = describe(p);
	test_store_close(p);
	delete_database(p);
	test_store_open(p);
	hold = store_hold_new(p->store);
	digest_of("base", 4, chain);
	assert_int_equal(store_hold_layer(hold, chain, NULL), 1);
	digest_of("one", 3, id);
	digest_chain(chain, id, chain);
	assert_int_equal(store_hold_layer(hold, chain, NULL), 1);
	OK(store_image(p, "7", LIST("base", "one"), LIST(NAME ":1"), id, &e));
	assert_string_equal(id, c.one);
	assert_finds(p, "busybox:latest", id); /* it keeps its other names */
	store_hold_free(take_ptr(hold));
	/* a name moves to a new image, which is then removed */
	add_image(p, "", LIST("base", "three"), LIST(NAME ":3", NAME ":2"), third);
	OK(store_image_remove(p->store, "busybox:1", &e));
	assert_int_equal(count_in(p, "layers"), 5);
	OK(store_image(p, "7", LIST("base", "one"),
		       LIST(NAME ":1", NAME ":latest", NAME "@" DIGEST_A), id, &e));
	recover(p, &result);
	assert_finds(p, "busybox:2", third); /* the database is newer than the files */
	assert_int_equal(count_images(p), 3);
	OK(store_image(p, "", LIST("base", "two"), LIST(NAME ":2"), id, &e));
	OK(store_image_remove(p->store, third, &e));
	reopen(p);
	add_layer(p, NULL, "left", chain); /* the removal of an image has removed it */
	after = describe(p);
	assert_string_equal(before, after);
}

static void newest_names_decide(void **state)
{
	static const struct timespec past[] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };
	struct test_store *p = *state;
	AUTO(store_recovery_done) struct store_recovery result = { 0 };
	autofree char *names = NULL;
	struct content c;

	add_content(p, &c);
	OK(store_image(p, "", LIST("base", "two"), LIST(NAME ":latest"), c.two, &e));
	test_store_close(p);
	/* as if the process had been killed between the two files */
	replace_file(p, "images/", c.one, "/names", NAME ":1\n" NAME ":latest\n");
	names = path_of(p, "images/", c.one, "/names");
	assert_int_equal(utimensat(AT_FDCWD, names, past, 0), 0);
	delete_database(p);
	test_store_open(p);
	recover(p, &result);
	assert_finds(p, "busybox:latest", c.two);
	assert_finds(p, "busybox:1", c.one);
}

/* A store of version 0.1.0 has no files beside the database. */
static void forget_files(struct test_store *p, const struct content *c)
{
	char chain[DIGEST_TEXT], below[DIGEST_TEXT];

	delete_path(p, "images/", c->one, "");
	delete_path(p, "images/", c->two, "");
	digest_of("base", 4, below);
	delete_path(p, "layers/", below, "/layer");
	delete_path(p, "layers/", c->left, "/layer");
	for (int i = 0; i < 2; i++) {
		digest_of(i ? "two" : "one", 3, chain);
		digest_chain(below, chain, chain);
		delete_path(p, "layers/", chain, "/layer");
	}
}

static void old_store(void **state)
{
	struct test_store *p = *state;
	struct content c;

	for (int i = 0; i < 2; i++) {
		AUTO(store_recovery_done) struct store_recovery result = { 0 };

		add_content(p, &c);
		test_store_close(p);
		forget_files(p, &c);
		if (i == 0)
			delete_database(p);
		else
			damage_page(p);
		test_store_open(p);
		for (int restart = 0; restart < 2; restart++) { /* only the mark shows the loss */
			assert_true(is_lost(p));
			OK(store_sweep(p->store, &e));
			assert_int_equal(count_in(p, "layers"), 4);
			reopen(p);
		}
		recover(p, &result);
		assert_int_equal(result.unknown_layers, 4);
		assert_int_equal(count_in(p, "layers"), 0);
		assert_int_equal(count_in(p, "unrecovered"), 4 * (i + 1));
		assert_int_equal(count_images(p), 0);
		/* the names are still in the damaged database */
		assert_int_equal(result.missing.n, i == 0 ? 0 : 4);
		assert_int_equal(strings_has(&result.missing, NAME ":2"), i == 1);
	}
}

static void sweep_writes_files(void **state)
{
	struct test_store *p = *state;
	AUTO(store_recovery_done) struct store_recovery result = { 0 };
	autofree char *before = NULL, *after = NULL;
	struct content c;

	add_content(p, &c);
	before = describe(p);
	test_store_close(p);
	forget_files(p, &c);
	test_store_open(p);
	OK(store_sweep(p->store, &e));
	test_store_close(p);
	delete_database(p);
	test_store_open(p);
	recover(p, &result);
	assert_int_equal(result.unknown_layers + result.missing.n, 0);
	after = describe(p);
	assert_string_equal(before, after);
}

/* Files of one image are damaged, and a layer of the other is lost. */
static void damaged_files(void **state)
{
	struct test_store *p = *state;
	AUTO(store_recovery_done) struct store_recovery result = { 0 };
	char chain[DIGEST_TEXT], below[DIGEST_TEXT];
	struct content c;

	add_content(p, &c);
	test_store_close(p);
	delete_database(p);
	replace_file(p, "images/", c.one, "/config", "{}");
	digest_of("base", 4, below);
	digest_of("two", 3, chain);
	digest_chain(below, chain, chain);
	delete_path(p, "layers/", chain, "");
	test_store_open(p);
	recover(p, &result);
	assert_int_equal(result.missing.n, 4);
	assert_true(strings_has(&result.missing, NAME ":latest"));
	assert_true(strings_has(&result.missing, NAME ":2"));
	assert_int_equal(count_images(p), 1); /* listed as damaged, so that a pull repairs it */
	assert_int_equal(count_in(p, "layers"), 3);
	assert_int_equal(count_in(p, "images"), 1);
	add_layer(p, below, "two", chain);
	assert_finds(p, "busybox:2", c.two);
}

static void move(const struct test_store *p, const char *from, const char *id, const char *to)
{
	autofree char *old = path_of(p, from, id, ""), *new = path_of(p, to, NULL, "");

	assert_int_equal(rename(old, new), 0);
}

/* What a kill during an addition or a removal leaves is not mistaken for a loss. */
static void killed_changes(void **state)
{
	struct test_store *p = *state;
	autofree char *one = NULL, *before = NULL, *after = NULL;
	struct content c;

	add_content(p, &c);
	before = describe(p);
	one = path_of(p, "images/", c.one, "");
	test_store_close(p);
	/* after the commit of an addition, or before that of a removal */
	move(p, "images/", c.one, "gone/77");
	test_store_open(p);
	assert_false(is_lost(p));
	after = describe(p);
	assert_string_equal(before, after);
	OK(store_sweep(p->store, &e));
	assert_int_equal(access(one, F_OK), 0);
	/* after the commit of a removal */
	test_store_close(p);
	delete_one_image(p); /* c.two */
	move(p, "images/", c.two, "gone/78");
	test_store_open(p);
	assert_false(is_lost(p));
	assert_int_equal(count_images(p), 1);
	assert_int_equal(count_in(p, "layers"), 3);
	OK(store_sweep(p->store, &e));
	assert_int_equal(count_in(p, "images"), 1);
	/* before the commit of an addition: the layers are in place */
	test_store_close(p);
	move(p, "images/", c.one, "tmp/79");
	delete_rows(p);
	test_store_open(p);
	assert_false(is_lost(p));
	assert_int_equal(count_in(p, "images") + count_in(p, "layers") + count_in(p, "tmp"), 0);
}

/* All its layers belong to another image, too, so no layer shows the loss. */
static void lost_row_of_image(void **state)
{
	struct test_store *p = *state;
	AUTO(store_recovery_done) struct store_recovery result = { 0 };
	autofree char *before = NULL, *after = NULL;
	char id[DIGEST_TEXT];
	struct content c;

	add_content(p, &c);
	OK(store_image(p, "8", LIST("base", "one"), LIST(NAME ":3"), id, &e));
	before = describe(p);
	test_store_close(p);
	delete_named_image(p, NAME ":3");
	test_store_open(p);
	assert_true(is_lost(p));
	recover(p, &result);
	after = describe(p);
	assert_string_equal(before, after);
}

static void assert_content(const struct test_store *p, const char *name, const char *text)
{
	autofree char *path = path_of(p, name, NULL, "");
	AUTO(buf_done) struct buf b = { 0 };

	OK(file_read(AT_FDCWD, path, 1000, &b, &e));
	assert_int_equal(b.len, strlen(text));
	assert_memory_equal(b.data, text, b.len);
}

/* The first database is the most valuable one: it has all names. */
static void damaged_databases_are_kept(void **state)
{
	struct test_store *p = *state;
	struct content c;

	add_content(p, &c);
	for (int i = 0; i < 3; i++) {
		autofree char *text = str_printf("not a database %d", i);

		test_store_close(p);
		replace_file(p, "images.db", NULL, "", text);
		test_store_open(p);
		assert_true(is_lost(p));
		if (i == 1) {
			AUTO(store_recovery_done) struct store_recovery result = { 0 };

			recover(p, &result);
			assert_int_equal(result.missing.n, 0);
		}
	}
	assert_content(p, "images.db.damaged.1", "not a database 1");
	assert_content(p, "images.db.damaged.2", "not a database 0");
	assert_content(p, "images.db.damaged", "not a database 2");
}

/* The names of an earlier loss do not belong to the next one. */
static void old_names_are_reported_once(void **state)
{
	struct test_store *p = *state;
	struct content c;

	add_content(p, &c);
	test_store_close(p);
	forget_files(p, &c);
	damage_page(p);
	test_store_open(p);
	for (int i = 0; i < 2; i++) {
		AUTO(store_recovery_done) struct store_recovery result = { 0 };

		recover(p, &result);
		assert_int_equal(result.missing.n, i == 0 ? 4 : 0);
		add_layer(p, NULL, "left", c.left);
		test_store_close(p);
		delete_database(p);
		test_store_open(p);
	}
}

/* As if the disk had not been mounted at one of the starts. */
static void layers_come_back(void **state)
{
	struct test_store *p = *state;
	autofree char *before = NULL, *after = NULL, *layers = path_of(p, "layers", NULL, "");
	autofree char *elsewhere = path_of(p, "elsewhere", NULL, "");
	char found[DIGEST_TEXT];
	struct content c;

	add_content(p, &c);
	before = describe(p);
	test_store_close(p);
	assert_int_equal(rename(layers, elsewhere), 0);
	for (int restart = 0; restart < 2; restart++) {
		test_store_open(p);
		OK(store_sweep(p->store, &e));
		assert_int_equal(count_images(p), 2);
		assert_int_equal(find_image(p, "busybox:1", found), 0); /* it is damaged */
		test_store_close(p);
	}
	assert_int_equal(rmdir(layers), 0);
	assert_int_equal(rename(elsewhere, layers), 0);
	test_store_open(p);
	OK(store_sweep(p->store, &e));
	after = describe(p);
	assert_string_equal(before, after);
	assert_int_equal(count_in(p, "layers"), 4);
}

/* Reading it fails. */
static void make_unreadable(const struct test_store *p, const char *before, const char *id,
			    const char *after)
{
	autofree char *path = path_of(p, before, id, after);

	if (unlink(path) < 0)
		assert_int_equal(errno, ENOENT);
	assert_int_equal(symlink(path, path), 0);
}

/* A directory in place of a file: reading it fails, and a rename does not replace it. */
static void obstruct(const struct test_store *p, const char *before, const char *id,
		     const char *after)
{
	autofree char *path = path_of(p, before, id, after);

	if (unlink(path) < 0)
		assert_int_equal(errno, ENOENT);
	assert_int_equal(mkdir(path, 0700), 0);
}

static void base_chain(char ret[DIGEST_TEXT])
{
	digest_of("base", 4, ret);
}

/* Nothing depends on a single file beside the database. */
static void unreadable_files(void **state)
{
	static const char *const files[] = { "/manifest", "/config", "/names" };
	struct test_store *p = *state;
	char base[DIGEST_TEXT], id[DIGEST_TEXT];
	struct hw_err why;
	struct content c;

	base_chain(base);
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		AUTO(store_recovery_done) struct store_recovery result = { 0 };
		autofree char *before = NULL, *after = NULL;

		add_content(p, &c);
		before = describe(p);
		obstruct(p, "images/", c.one, files[i]);
		make_unreadable(p, "layers/", base, "/layer");
		/* a pull adds a name, and writes the files again */
		OK(store_image(p, "7", LIST("base", "one"), LIST(NAME ":more"), id, &e));
		/* a start without the row of the image */
		make_unreadable(p, "images/", c.one, files[i]);
		test_store_close(p);
		delete_rows(p);
		make_unreadable(p, "needs-recovery", NULL, "");
		test_store_open(p);
		assert_true(is_lost(p));
		OK(store_sweep(p->store, &e));
		/* a pull before the recovery */
		add_layer(p, NULL, "base", base);
		/* the recovery adds the other image, and fails until the file is deleted */
		assert_int_equal(store_recover(p->store, &result, &why), -ELOOP);
		assert_non_null(strstr(why.msg, files[i]));
		assert_true(is_lost(p));
		assert_finds(p, "busybox:2", c.two);
		delete_path(p, "images/", c.one, files[i]);
		recover(p, &result);
		assert_int_equal(result.layers, 4);
		/* it is recovered without names, but not without documents */
		assert_int_equal(count_images(p), str_equal(files[i], "/names") ? 2 : 1);
		add_image(p, "7", LIST("base", "one"),
			  LIST(NAME ":1", NAME ":latest", NAME "@" DIGEST_A), c.one);
		after = describe(p);
		assert_string_equal(before, after);
		OK(store_image_remove(p->store, c.one, &e));
		OK(store_image_remove(p->store, c.two, &e));
	}
}

/* The image is recovered before one of its layers. */
static void layer_recovered_later(void **state)
{
	struct test_store *p = *state;
	AUTO(store_recovery_done) struct store_recovery result = { 0 };
	AUTO(store_hold_free) struct store_hold *hold = NULL;
	autofree char *before = NULL, *after = NULL, *file = NULL, *kept = NULL;
	char base[DIGEST_TEXT], found[DIGEST_TEXT];
	struct content c;
	struct hw_err why;

	base_chain(base);
	add_content(p, &c);
	before = describe(p);
	file = path_of(p, "layers/", base, "/layer");
	kept = path_of(p, "kept", NULL, "");
	test_store_close(p);
	delete_database(p);
	assert_int_equal(rename(file, kept), 0);
	make_unreadable(p, "layers/", base, "/layer");
	test_store_open(p);
	assert_int_equal(store_recover(p->store, &result, &why), -ELOOP);
	assert_int_equal(count_images(p), 2);
	assert_int_equal(find_image(p, "busybox:1", found), 0); /* damaged */
	assert_int_equal(rename(kept, file), 0);
	recover(p, &result);
	after = describe(p);
	assert_string_equal(before, after);
	/* it is known as a layer of an image: it is removed with its last hold */
	hold = store_hold_new(p->store);
	assert_int_equal(store_hold_layer(hold, base, NULL), 1);
	OK(store_image_remove(p->store, c.one, &e));
	OK(store_image_remove(p->store, c.two, &e));
	assert_int_equal(count_in(p, "layers"), 1);
	store_hold_free(take_ptr(hold));
	assert_int_equal(count_in(p, "layers"), 0);
}

/* An interrupted removal of version 0.2.0 left such a directory. */
static void left_by_removal(void **state)
{
	struct test_store *p = *state;
	autofree char *left = NULL, *file = NULL;
	struct content c;

	add_content(p, &c);
	left = path_of(p, "images/", c.one, ".removed");
	file = path_of(p, "images/", c.one, ".removed/names");
	assert_int_equal(mkdir(left, 0700), 0);
	OK(file_replace(AT_FDCWD, file, "", 0, 0600, 0, &e));
	OK(store_image_remove(p->store, c.one, &e));
	reopen(p);
	assert_false(is_lost(p));
	assert_int_equal(count_in(p, "images"), 1);
}

static void sweep_mends_files(void **state)
{
	static const char *const files[] = { "/manifest", "/config", "/names" };
	struct test_store *p = *state;
	AUTO(store_recovery_done) struct store_recovery result = { 0 };
	autofree char *before = NULL, *after = NULL;
	char base[DIGEST_TEXT];
	struct content c;

	base_chain(base);
	add_content(p, &c);
	before = describe(p);
	obstruct(p, "images/", c.two, "/config");
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		replace_file(p, "images/", c.one, files[i], i == 1 ? "{}" : "");
	replace_file(p, "layers/", base, "/layer", "{}");
	reopen(p);
	OK(store_sweep(p->store, &e));
	test_store_close(p);
	delete_database(p);
	test_store_open(p);
	recover(p, &result);
	assert_int_equal(result.unknown_layers + result.missing.n, 0);
	after = describe(p);
	assert_string_equal(before, after);
}

/* A directory that cannot be deleted does not stop the rest of the sweep. */
static void sweep_continues(void **state)
{
	struct test_store *p = *state;
	autofree char *busy = path_of(p, "gone/7", NULL, ""),
		      *left = path_of(p, "gone/8", NULL, "");
	autofree char *one = NULL, *two = NULL, *names = NULL;
	struct content c;
	struct hw_err why;

	add_content(p, &c);
	one = path_of(p, "images/", c.one, "/config");
	two = path_of(p, "images/", c.two, "");
	names = path_of(p, "images/", c.two, "/names");
	delete_path(p, "images/", c.one, "/config");
	delete_path(p, "images/", c.two, "");
	test_store_close(p);
	assert_int_equal(mkdir(busy, 0700), 0);
	assert_int_equal(mkdir(left, 0700), 0);
	if (mount("none", busy, "tmpfs", 0, NULL) < 0 || mkdir(two, 0700) < 0 ||
	    mount("none", two, "tmpfs", MS_RDONLY, NULL) < 0)
		skip();
	test_store_open(p);
	assert_int_equal(store_sweep(p->store, &why), -EBUSY);
	assert_int_equal(access(one, F_OK), 0);
	assert_int_equal(access(left, F_OK), -1);
	assert_int_equal(umount(busy) + umount(two), 0);
	OK(store_sweep(p->store, &e));
	assert_int_equal(access(busy, F_OK), -1);
	assert_int_equal(access(names, F_OK), 0);
}

#define TEST(name, f)                                                                              \
	{                                                                                          \
		name, f, test_store_new, test_store_delete                                         \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST("store: after the loss of its database nothing is removed, and all is "
		     "recovered",
		     nothing_is_removed),
		TEST("store: the recovery of an intact store changes nothing", nothing_to_recover),
		TEST("store: before the recovery pulls use the layers, and none is removed",
		     used_before_recovery),
		TEST("store: of two images with the same name, the newest files decide",
		     newest_names_decide),
		TEST("store: the recovery of an old store names what must be pulled again, and "
		     "keeps the layers",
		     old_store),
		TEST("store: a sweep writes the files that an old store lacks", sweep_writes_files),
		TEST("store: the recovery names images with damaged files or lost layers",
		     damaged_files),
		TEST("store: an interrupted addition or removal is not mistaken for a loss",
		     killed_changes),
		TEST("store: the loss of a single image is noticed", lost_row_of_image),
		TEST("store: the databases of several losses are kept", damaged_databases_are_kept),
		TEST("store: a recovery does not list names of an earlier one",
		     old_names_are_reported_once),
		TEST("store: layers that were missing at a start are used when they come back",
		     layers_come_back),
		TEST("store: a file that cannot be read prevents no start, pull or recovery of "
		     "others",
		     unreadable_files),
		TEST("store: a layer can be recovered later than its image", layer_recovered_later),
		TEST("store: an image whose removal was interrupted before can be removed",
		     left_by_removal),
		TEST("store: a sweep mends files that differ from the database", sweep_mends_files),
		TEST("store: a sweep continues after an error", sweep_continues),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
