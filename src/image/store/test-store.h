/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/store/test-store.h - test helpers: store in a temporary directory, small layers and images
 *
 * To be included after <cmocka.h>.
 */
#ifndef IMAGE_STORE_TEST_STORE_H
#define IMAGE_STORE_TEST_STORE_H

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include "base/os/file.h"
#include "base/os/remove-tree.h"
#include "base/str.h"
#include "image/store/store.h"

#define DIGEST_A "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

/* Takes the digest and the size of the configuration. */
#define TEST_MANIFEST                                                                              \
	"{\"schemaVersion\":2,\"mediaType\":\"application/vnd.oci.image.manifest.v1+json\","       \
	"\"config\":{\"mediaType\":\"application/vnd.oci.image.config.v1+json\","                  \
	"\"digest\":\"%s\",\"size\":%zu},\"layers\":[]}"

struct test_store {
	char path[64];
	struct store *store;
};

#define OK(call)                                                                                   \
	do {                                                                                       \
		struct hw_err e = { 0 };                                                           \
		int result_ = (call);                                                              \
		if (result_ < 0)                                                                   \
			fail_msg("%s: %s", #call, e.msg);                                          \
	} while (0)

static inline void test_store_open(struct test_store *p)
{
	OK(store_open(p->path, &p->store, &e));
}

static inline void test_store_close(struct test_store *p)
{
	store_close(take_ptr(p->store));
}

static inline int test_store_new(void **state)
{
	struct test_store *p = mem_new(sizeof(*p));

	*state = p;
	snprintf(p->path, sizeof(p->path), "%.40s/store.XXXXXX", str_or(getenv("TMPDIR"), "/tmp"));
	if (!mkdtemp(p->path))
		return -1;
	test_store_open(p);
	return 0;
}

static inline int test_store_delete(void **state)
{
	struct test_store *p = *state;
	struct hw_err e;
	int r;

	test_store_close(p);
	umount2(p->path, MNT_DETACH); /* some tests mount a tmpfs there */
	r = remove_tree(AT_FDCWD, p->path, &e);
	free(p);
	return r;
}

/* Number of entries in a directory of the store. */
static inline int count_in(const struct test_store *p, const char *dir)
{
	autofree char *path = str_printf("%s/%s", p->path, dir);
	DIR *d = opendir(path);
	int n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n - 2; /* . and .. */
}

/* ---- layers ------------------------------------------------------------------- */

/* A layer with one file, "f". */
struct test_layer {
	struct store_stage *stage;
	struct unpacked unpacked;
	char chain[DIGEST_TEXT];
};

static inline void test_layer_write(struct test_layer *l, const char *text)
{
	OK(file_replace(l->stage->dir, "root/f", text, strlen(text), 0644, 0, &e));
	OK(file_replace(l->stage->dir, "recipe", "recipe", 6, 0600, 0, &e));
}

static inline void test_layer_begin(struct test_store *p, const char *below, const char *text,
				    struct test_layer *ret)
{
	char diff_id[DIGEST_TEXT];

	*ret = (struct test_layer){ 0 };
	digest_of(text, strlen(text), diff_id);
	digest_chain(below, diff_id, ret->chain);
	ret->unpacked = (struct unpacked){ .diff_id = str_copy(diff_id),
					   .archive = 1024,
					   .content = (int64_t)strlen(text),
					   .disk = 4096,
					   .inodes = 1,
					   .rebuildable = true };
	OK(store_layer_begin(p->store, &ret->stage, &e));
	test_layer_write(ret, text);
}

static inline struct store_new_layer test_layer_commit_arg(struct test_layer *l)
{
	return (struct store_new_layer){ .stage = l->stage,
					 .chain_id = l->chain,
					 .unpacked = &l->unpacked,
					 .blob = l->unpacked.diff_id,
					 .blob_size = 77 };
}

static inline void test_layer_done(struct test_layer *l)
{
	store_stage_free(take_ptr(l->stage));
	unpacked_done(&l->unpacked);
}

static inline void add_layer(struct test_store *p, const char *below, const char *text,
			     char ret_chain[DIGEST_TEXT])
{
	struct test_layer l;
	struct store_new_layer layer;

	test_layer_begin(p, below, text, &l);
	layer = test_layer_commit_arg(&l);
	OK(store_add(p->store, &(struct store_addition){ .layers = &layer, .n_layers = 1 }, NULL,
		     &e));
	memcpy(ret_chain, l.chain, DIGEST_TEXT);
	test_layer_done(&l);
}

static inline bool has_layer(struct test_store *p, const char *chain)
{
	autofree char *file = str_printf("%s/layers/%s/root/f", p->path, chain + 7);
	struct store_layer layer;
	struct hw_err e = { 0 };
	int r = store_layer_get(p->store, chain, &layer, &e);

	assert_true(r >= 0);
	assert_int_equal(access(file, F_OK) == 0, r > 0); /* row and file: both or neither */
	return r > 0;
}

/* ---- images ------------------------------------------------------------------- */

/* Configuration of an image whose layers contain these texts. */
static inline char *make_config(const char *user, const char *const *texts)
{
	AUTO(buf_done) struct buf b = { 0 };

	buf_printf(&b,
		   "{\"architecture\":\"amd64\",\"os\":\"linux\",\"config\":{\"User\":\"%s\"},"
		   "\"rootfs\":{\"type\":\"layers\",\"diff_ids\":[",
		   user);
	for (size_t i = 0; texts[i]; i++) {
		char diff_id[DIGEST_TEXT];

		digest_of(texts[i], strlen(texts[i]), diff_id);
		buf_printf(&b, "%s\"%s\"", i > 0 ? "," : "", diff_id);
	}
	buf_puts(&b, "]}}");
	return buf_take(&b);
}

static inline char *make_manifest(const char *config)
{
	char digest[DIGEST_TEXT];

	digest_of(config, strlen(config), digest);
	return str_printf(TEST_MANIFEST, digest, strlen(config));
}

static inline int store_image(struct test_store *p, const char *user, const char *const *texts,
			      const char *const *names, char ret_id[DIGEST_TEXT], struct hw_err *e)
{
	autofree char *config = make_config(user, texts), *manifest = make_manifest(config);
	struct store_new_image image = { .manifest = manifest,
					 .manifest_len = strlen(manifest),
					 .config = config,
					 .config_len = strlen(config),
					 .names = names };

	while (names && names[image.n_names])
		image.n_names++;
	return store_add(p->store, &(struct store_addition){ .images = &image, .n_images = 1 },
			 (char(*)[DIGEST_TEXT])ret_id, e);
}

/* Stores the layers and then the image. */
static inline void add_image(struct test_store *p, const char *user, const char *const *texts,
			     const char *const *names, char ret_id[DIGEST_TEXT])
{
	char chain[DIGEST_TEXT], below[DIGEST_TEXT];

	for (size_t i = 0; texts[i]; i++) {
		add_layer(p, i > 0 ? below : NULL, texts[i], chain);
		memcpy(below, chain, sizeof(below));
	}
	OK(store_image(p, user, texts, names, ret_id, &e));
}

#define LIST(...)                                                                                  \
	(const char *const[])                                                                      \
	{                                                                                          \
		__VA_ARGS__, NULL                                                                  \
	}

static inline size_t count_images(struct test_store *p)
{
	AUTO(store_snapshot_put) const struct store_snapshot *snap = store_snapshot_get(p->store);

	return snap->n;
}

static inline int find_image(struct test_store *p, const char *text, char ret_id[DIGEST_TEXT])
{
	AUTO(store_snapshot_put) const struct store_snapshot *snap = store_snapshot_get(p->store);
	const struct store_image *image = NULL;
	struct hw_err e = { 0 };
	int r = store_snapshot_find(snap, text, &image, &e);

	if (r > 0)
		memcpy(ret_id, image->id, DIGEST_TEXT);
	return r;
}

/* Asserts that @text finds the image with this ID. */
static inline void assert_finds(struct test_store *p, const char *text, const char *id)
{
	char found[DIGEST_TEXT] = "";

	assert_int_equal(find_image(p, text, found), 1);
	assert_string_equal(found, id);
}

#endif
