/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/store/snapshot.c - snapshots: the immutable list of images that readers get
 *
 * How:   an image is read from the database once and shared (base/shared.h)
 *        between all snapshots that contain it. Before a change is committed, the
 *        images that it affects are read, and a new list is built.
 */
#include "image/store/store.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "image/reference.h"
#include "image/store/state.h"

#define SNAPSHOT_ROOM 8 /* initial capacity; a power of two */

/* ---- images ------------------------------------------------------------------- */

static void image_free(void *object)
{
	struct store_image *image = object;

	hw_strings_free(&image->tags);
	hw_strings_free(&image->digests);
	free(image->username);
	free(image);
}

static struct store_image *image_from_row(struct db_query *q)
{
	struct store_image *image = mem_new(sizeof(*image));

	shared_init(&image->shared, image_free);
	snprintf(image->id, sizeof(image->id), "%s", db_text(q, 0));
	snprintf(image->manifest, sizeof(image->manifest), "%s", db_text(q, 1));
	image->has_uid = !db_is_null(q, 2);
	image->uid = db_int(q, 2);
	image->username = str_copy(db_text(q, 3));
	image->size = db_int(q, 4) + db_int(q, 5);
	image->damaged = db_int(q, 6) > 0;
	return image;
}

static bool has_pinned_name(const struct store *s, const struct store_image *image)
{
	for (size_t i = 0; i < s->pinned.n; i++)
		if (strings_has(&image->tags, s->pinned.v[i]) ||
		    strings_has(&image->digests, s->pinned.v[i]))
			return true;
	return false;
}

static int read_names(struct store *s, struct store_image *image, struct hw_err *e)
{
	AUTO(db_query_done) struct db_query q = { 0 };
	int r;

	r = db_query(s->db, "SELECT name FROM names WHERE image = ? ORDER BY name",
		     DB_VALUES(DB_TEXT(image->id)), &q, e);
	while (r >= 0 && (r = db_step(&q, e)) > 0) {
		const char *name = db_text(&q, 0);

		strings_add(strchr(name, '@') ? &image->digests : &image->tags, name);
	}
	image->pinned = has_pinned_name(s, image);
	return r;
}

/* Another program may have deleted the files of a layer. */
static int find_lost_layers(struct store *s, struct store_image *image, struct hw_err *e)
{
	AUTO(db_query_done) struct db_query q = { 0 };
	int r;

	r = db_query(s->db, "SELECT chain FROM image_layers WHERE image = ?",
		     DB_VALUES(DB_TEXT(image->id)), &q, e);
	while (r >= 0 && (r = db_step(&q, e)) > 0)
		image->damaged = image->damaged || !store_has_directory(s, db_text(&q, 0));
	return r;
}

/* ---- snapshots ---------------------------------------------------------------- */

static void snapshot_free(void *object)
{
	struct store_snapshot *snap = object;

	for (size_t i = 0; i < snap->n; i++)
		shared_unref(snap->images[i]);
	free(snap);
}

static struct store_snapshot *snapshot_new(size_t room)
{
	struct store_snapshot *snap =
		mem_new(sizeof(*snap) + room * sizeof(const struct store_image *));

	shared_init(&snap->shared, snapshot_free);
	return snap;
}

const struct store_snapshot *store_snapshot_get(struct store *s)
{
	return slot_get(&s->snapshot);
}

void store_snapshot_put(const struct store_snapshot *snap)
{
	shared_unref(snap);
}

static int compare_ids(const void *a, const void *b)
{
	const struct store_image *const *x = a, *const *y = b;

	return strcmp((*x)->id, (*y)->id);
}

#define IMAGE_COLUMNS                                                                              \
	"id, manifest, uid, username, length(manifest_bytes) + length(config_bytes),"              \
	" (SELECT ifnull(sum(l.disk), 0) FROM image_layers i JOIN layers l USING (chain)"          \
	"  WHERE i.image = id),"                                                                   \
	" (SELECT count(*) FROM image_layers i WHERE i.image = id"                                 \
	"  AND NOT EXISTS (SELECT 1 FROM layers l WHERE l.chain = i.chain))"

/* Add the image of each row to the snapshot. */
static int read_images(struct store *s, struct db_query *q, struct store_snapshot **snap,
		       struct hw_err *e)
{
	int r;

	while ((r = db_step(q, e)) > 0) {
		struct store_image *image = image_from_row(q);
		size_t n = (*snap)->n;

		/* the capacity doubles at each power of two */
		if (n >= SNAPSHOT_ROOM && (n & (n - 1)) == 0)
			*snap = mem_resize(*snap, 1,
					   sizeof(**snap) +
						   2 * n * sizeof(const struct store_image *));
		(*snap)->images[(*snap)->n++] = image;
		r = read_names(s, image, e);
		if (r == 0)
			r = find_lost_layers(s, image, e);
		if (r < 0)
			break;
	}
	return r;
}

static void sort_images(struct store_snapshot *snap)
{
	if (snap->n > 1)
		qsort(snap->images, snap->n, sizeof(const struct store_image *), compare_ids);
}

int store_snapshot_load(struct store *s, const struct store_snapshot **ret, struct hw_err *e)
{
	AUTO(db_query_done) struct db_query q = { 0 };
	struct store_snapshot *snap = snapshot_new(SNAPSHOT_ROOM);
	int r;

	r = db_query(s->db, "SELECT " IMAGE_COLUMNS " FROM images", DB_NO_VALUES, &q, e);
	if (r == 0)
		r = read_images(s, &q, &snap, e);
	if (r < 0) {
		store_snapshot_put(snap);
		return r;
	}
	sort_images(snap);
	*ret = snap;
	return 0;
}

int store_snapshot_build(struct store *s, const struct hw_strings *ids,
			 const struct store_snapshot **ret, struct hw_err *e)
{
	AUTO(store_snapshot_put) const struct store_snapshot *now = store_snapshot_get(s);
	struct store_snapshot *snap = snapshot_new(now->n + ids->n + SNAPSHOT_ROOM);
	int r = 0;

	for (size_t i = 0; i < now->n; i++)
		if (!strings_has(ids, now->images[i]->id))
			snap->images[snap->n++] = shared_ref(now->images[i]);
	for (size_t i = 0; r == 0 && i < ids->n; i++) {
		AUTO(db_query_done) struct db_query q = { 0 };

		r = db_query(s->db, "SELECT " IMAGE_COLUMNS " FROM images WHERE id = ?",
			     DB_VALUES(DB_TEXT(ids->v[i])), &q, e);
		if (r == 0)
			r = read_images(s, &q, &snap, e);
	}
	if (r < 0) {
		store_snapshot_put(snap);
		return r;
	}
	sort_images(snap);
	*ret = snap;
	return 0;
}

void store_snapshot_publish(struct store *s, const struct store_snapshot **next)
{
	slot_publish(&s->snapshot, &take_ptr(*next)->shared);
}

static struct store_image *image_copy(const struct store_image *image)
{
	struct store_image *copy = mem_copy(image, sizeof(*image));

	shared_init(&copy->shared, image_free);
	copy->tags = copy->digests = (struct hw_strings){ 0 };
	for (size_t i = 0; i < image->tags.n; i++)
		strings_add(&copy->tags, image->tags.v[i]);
	for (size_t i = 0; i < image->digests.n; i++)
		strings_add(&copy->digests, image->digests.v[i]);
	copy->username = str_copy(image->username);
	return copy;
}

/* Reads nothing from the database, so it cannot fail. */
void store_pin(struct store *s, const struct hw_strings *names)
{
	STORE_LOCKED(s);
	AUTO(store_snapshot_put) const struct store_snapshot *now = store_snapshot_get(s);
	struct store_snapshot *snap = snapshot_new(now->n);
	const struct store_snapshot *next = snap;

	hw_strings_free(&s->pinned);
	for (size_t i = 0; i < names->n; i++)
		strings_add(&s->pinned, names->v[i]);
	for (size_t i = 0; i < now->n; i++) {
		const struct store_image *image = now->images[i];
		bool pinned = has_pinned_name(s, image);

		if (pinned == image->pinned) {
			snap->images[snap->n++] = shared_ref(image);
		} else {
			struct store_image *copy = image_copy(image);

			copy->pinned = pinned;
			snap->images[snap->n++] = copy;
		}
	}
	store_snapshot_publish(s, &next);
}

/* ---- finding ------------------------------------------------------------------ */

/* If the name has both a tag and a digest, the tag is ignored. Return: NULL also if @text is an
 * image ID, or not a reference */
static const struct store_image *find_by_name(const struct store_snapshot *snap, const char *text,
					      bool damaged)
{
	AUTO(reference_done) struct reference ref = { 0 };
	autofree char *repository = NULL, *name = NULL;
	struct hw_err ignored;

	/* this is an ID, although it could also be tag HEX of an image named "sha256" */
	if (digest_is_sha256(text))
		return NULL;
	if (reference_parse(text, &ref, &ignored) < 0)
		return NULL;
	repository = reference_name(&ref);
	name = ref.digest ? str_printf("%s@%s", repository, ref.digest)
			  : str_printf("%s:%s", repository, ref.tag);
	for (size_t i = 0; i < snap->n; i++) {
		const struct store_image *image = snap->images[i];

		if ((!image->damaged || damaged) &&
		    (strings_has(&image->tags, name) || strings_has(&image->digests, name)))
			return image;
	}
	return NULL;
}

static int find_by_id(const struct store_snapshot *snap, const char *text, bool damaged,
		      const struct store_image **ret_image, struct hw_err *e)
{
	const char *hex = str_starts(text, "sha256:") ? text + strlen("sha256:") : text;
	size_t len = strlen(hex);
	const struct store_image *found = NULL;

	for (size_t i = 0; len > 0 && i < snap->n; i++) {
		const struct store_image *image = snap->images[i];

		if (strncmp(image->id + strlen("sha256:"), hex, len) != 0 ||
		    (image->damaged && !damaged))
			continue;
		if (found)
			return err_text(e, -EINVAL,
					"ambiguous image ID: several IDs begin with \"%.80s\"",
					text);
		found = image;
	}
	*ret_image = found;
	return found ? 1 : 0;
}

int store_find(const struct store_snapshot *snap, const char *text, bool damaged,
	       const struct store_image **ret_image, struct hw_err *e)
{
	const struct store_image *image;

	image = find_by_name(snap, text, damaged);
	if (!image)
		return find_by_id(snap, text, damaged, ret_image, e);
	*ret_image = image;
	return 1;
}

int store_snapshot_find(const struct store_snapshot *snap, const char *text,
			const struct store_image **ret_image, struct hw_err *e)
{
	return store_find(snap, text, false, ret_image, e);
}

int store_snapshot_find_any(const struct store_snapshot *snap, const char *text,
			    const struct store_image **ret_image, struct hw_err *e)
{
	return store_find(snap, text, true, ret_image, e);
}
