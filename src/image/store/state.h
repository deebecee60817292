/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/store/state.h - internals of the image store, for the files of this folder only
 *
 * Three locks, acquired in this order:
 *
 *	lock        serializes changes. It is held for renames and one database commit,
 *	            never while a tree is written to disk or deleted.
 *	read_lock   protects the second database handle. Functions that only read use
 *	            that handle, so readers never wait for a commit.
 *	usage_lock  protects the usage, and changes of .lost. It is held for a few
 *	            instructions, so readers never wait for the disk.
 *
 * The snapshot is published in a slot, which needs none of them.
 */
#ifndef IMAGE_STORE_STATE_H
#define IMAGE_STORE_STATE_H

#include <pthread.h>

#include "base/map.h"
#include "db/db.h"
#include "image/store/store.h"

struct image_config;

struct store {
	pthread_mutex_t lock;
	char *root;
	int lock_fd, dir, layers, images, tmp, gone;
	struct db *db;
	unsigned int next_number;    /* next unused name in tmp/ and gone/ */
	unsigned int leftover_below; /* lower numbers in gone/ existed before the start */
	struct map *held;	     /* maps a chain ID to a struct hold_count */
	struct map *suspect;	     /* chain IDs of layers that the next commit replaces */
	struct hw_strings pinned;
	char *lost; /* why the database is not complete (recover.c); NULL: it is */

	pthread_mutex_t read_lock;
	struct db *reader; /* may be ahead of the snapshot by one commit */

	struct slot snapshot; /* a struct store_snapshot */

	pthread_mutex_t usage_lock;
	struct store_usage usage;
};

static inline pthread_mutex_t *store_lock(pthread_mutex_t *lock)
{
	pthread_mutex_lock(lock);
	return lock;
}

static inline void store_unlock(pthread_mutex_t *lock)
{
	pthread_mutex_unlock(lock);
}

AUTO_DEFINE(store_unlock, pthread_mutex_t);

/* Hold a lock until the end of the block. */
#define STORE_GUARD(mutex)                                                                         \
	AUTO(store_unlock) __attribute__((unused)) pthread_mutex_t *guard_ = store_lock(&(mutex))
#define STORE_LOCKED(s)	 STORE_GUARD((s)->lock)
#define STORE_READING(s) STORE_GUARD((s)->read_lock)

struct store_removal; /* prune.c */

/* The caller of the following functions holds the lock, unless stated otherwise. */

/* ---- store.c ---- */
extern const struct db_options store_db;
int store_load_usage(struct store *s, struct hw_err *e);
unsigned int store_next_number(struct store *s);
void store_add_usage(struct store *s, int64_t bytes, int64_t inodes, int layers);
/* Needs no lock. Return: 0 or -EINVAL */
int store_check_digest(const char *digest, struct hw_err *e);

/*
 * The reserve is a file that only occupies disk space. SQLite must write a little to remove an
 * image, and even to open the database. On a full disk these writes fail, so no image could be
 * removed to free space. Therefore the reserve is deleted when the disk is full, and created again
 * later. These functions need no lock.
 */
void store_create_reserve(struct store *s);
bool store_delete_reserve(struct store *s); /* Return: true if it existed: the caller retries */

/* ---- snapshot.c ---- */
/*
 * Build the snapshot that will follow the current one: images with these IDs are read again, all
 * other images are shared. It is built before the database commit, so that nothing can fail after
 * the commit.
 */
int store_snapshot_build(struct store *s, const struct hw_strings *ids,
			 const struct store_snapshot **ret, struct hw_err *e);
/* Like store_snapshot_build(), but reads all images from the database. */
int store_snapshot_load(struct store *s, const struct store_snapshot **ret, struct hw_err *e);
/* Make @next the snapshot that readers get; takes ownership of it. */
void store_snapshot_publish(struct store *s, const struct store_snapshot **next);
/* Like store_snapshot_find(), but finds damaged images too if @damaged. Needs no lock. */
int store_find(const struct store_snapshot *snap, const char *text, bool damaged,
	       const struct store_image **ret_image, struct hw_err *e);

/* ---- image.c ---- */
/* Return: 1 if the image exists; 0 if not; or negative errno */
int store_image_exists(struct store *s, const char *id, struct hw_err *e);
/* Return: 0; -EINVAL: not complete */
int store_check_name(const char *name, struct hw_err *e);
/* Insert the rows of an image from its files: a row that exists is not changed, and a name stays with
 * the image that has it. Layers may be missing. */
int store_insert_recovered(struct store *s, const struct store_new_image *in, struct hw_err *e);

/* An image, with what follows from its documents. */
struct parsed_image {
	const struct store_new_image *in;
	char id[DIGEST_TEXT], manifest[DIGEST_TEXT];
	struct image_config *config;
};
/* Needs no lock. Release *ret also after an error. Return: 0; -EBADMSG; -EINVAL */
int store_parse_image(const struct store_new_image *in, struct parsed_image *ret, struct hw_err *e);
void store_parsed_image_done(struct parsed_image *image);
AUTO_VALUE_DEFINE(store_parsed_image_done, struct parsed_image);
/* Insert the rows of an image, and add the IDs of images that lose a name to it to @changed.
 * Return: 0; -ENOENT: a layer is missing */
int store_insert_image(struct store *s, const struct parsed_image *image,
		       struct hw_strings *changed, struct hw_err *e);

/* ---- layer.c ---- */
#define STORE_LAYER_FILE "layer"
int store_list_layers(struct store *s, struct hw_strings *ret_chains, struct hw_err *e);
int store_insert_layer(struct store *s, const struct store_layer *layer, struct hw_err *e);
/* Return: 1 if the layer exists; 0 if not; or negative errno */
int store_layer_exists(struct store *s, const char *chain_id, struct hw_err *e);
bool store_is_suspect(const struct store *s, const char *chain_id);
/* Return: false if the files of a layer do not exist. Needs no lock. */
bool store_has_directory(const struct store *s, const char *chain_id);

/* ---- prune.c ---- */
/*
 * Layers and files of images that are being removed. First their rows are deleted in a transaction, then their
 * directories are moved to gone/, both under the lock. Last, the directories are deleted without
 * the lock.
 */
struct store_removal {
	struct hw_strings chains; /* rows are deleted; directories are still in layers/ */
	struct hw_strings gone;	  /* names of directories in gone/ */
	int64_t bytes, inodes;
};
void store_removal_done(struct store_removal *removal);
AUTO_VALUE_DEFINE(store_removal_done, struct store_removal);

/* Delete the rows of layers in @chains, except layers that an image has or that are held. The
 * caller commits the transaction and then calls store_move_layers_to_gone(). */
int store_delete_layer_rows(struct store *s, const struct hw_strings *chains,
			    struct store_removal *removal, struct hw_err *e);
/* Never fails: a directory that cannot be moved has no row, so it is removed later. */
void store_move_layers_to_gone(struct store *s, struct store_removal *removal);
/* Move one directory to gone/. */
int store_move_to_gone(struct store *s, int from, const char *name, struct store_removal *removal,
		       struct hw_err *e);
/* Delete the directories in removal->gone. Called without the lock. Tries all directories, and
 * returns the first error. */
int store_delete_gone(struct store *s, const struct store_removal *removal, struct hw_err *e);

/* Add layers that have never been part of an image, because their pull failed or is running, to
 * @chains; with @stale_only, only those older than a day. */
int store_list_abandoned(struct store *s, bool stale_only, struct hw_strings *chains,
			 struct hw_err *e);
/* Remove layers that no image has any more and that are not held, and the layers of failed pulls that are
 * older than a day. Called without the lock. */
int store_trim_unused(struct store *s, struct hw_err *e);

bool store_is_held(const struct store *s, const char *chain_id);

/* ---- backup.c ---- */
/* Write the file of a layer to its stage. Needs no lock. */
int store_backup_layer(const struct store_stage *stage, const struct store_layer *layer,
		       struct hw_err *e);
/* Return: 1; 0: missing or malformed; or negative errno: cannot be read */
int store_backup_read_layer(struct store *s, const char *chain_id, struct store_layer *ret_layer,
			    struct hw_err *e);

/* The files of an image. */
struct store_backup {
	struct buf manifest, config;
	struct hw_strings names; /* complete */
};
void store_backup_done(struct store_backup *b);
AUTO_VALUE_DEFINE(store_backup_done, struct store_backup);

/* @hex: name of the directory. *ret, which is empty before, gets what can be read. Return: 1; 0:
 * manifest or configuration are missing or malformed; or negative errno: a file cannot be read. Needs
 * no lock. */
int store_backup_read(struct store *s, const char *hex, struct store_backup *ret, struct hw_err *e);
bool store_backup_exists(const struct store *s, const char *id); /* needs no lock */
/* Write the files of a new image to root/ of a new stage. @sync: they are on disk on return. Called
 * without the lock. */
int store_backup_stage(struct store *s, const struct store_new_image *image, bool sync,
		       struct store_stage **ret_stage, struct hw_err *e);
/* After the commit: move the files from the stage to images/, unless the image has files. */
int store_backup_place(struct store *s, const char *id, const struct store_stage *stage,
		       struct hw_err *e);
/* After a commit that changed an image: make its files agree with its rows. @flags: see
 * file_replace() */
int store_backup_update(struct store *s, const char *id, unsigned flags, struct hw_err *e);
/* Before a commit that removes an image: move its files to gone/. */
int store_backup_remove(struct store *s, const char *id, struct store_removal *removal,
			struct hw_err *e);
/* If that commit failed. */
void store_backup_undo_remove(struct store *s, const char *id, const struct store_removal *removal);
/* Return: 0; -ENODATA: there are files without a row, so rows were lost */
int store_backup_check(struct store *s, struct hw_err *e);
/* Write missing and damaged files of all images and layers. Tries all, and returns the first error.
 * Called without the lock. */
int store_backup_all(struct store *s, struct hw_err *e);

/* ---- recover.c ---- */
void store_read_loss(struct store *s); /* when the store is opened */
/* From now on no layer is removed. If there was a loss before, its reason stays. */
int store_set_lost(struct store *s, const char *why, struct hw_err *e);
/* Rename a damaged or empty database, which must be closed, so that a new one is created. */
int store_move_database(struct store *s, struct hw_err *e);
/* Insert the row of a layer whose files exist. Return: 1; 0: not possible; *unreadable is set if that
 * is because its file cannot be read, unless it was set before */
int store_adopt_layer(struct store *s, const char *chain_id, struct hw_err *unreadable,
		      struct hw_err *e);
/* Insert the rows of an image from its files. Return: 1; 0: not possible; *ret_backup has what could be
 * read, and *unreadable is set as by store_adopt_layer() */
int store_recover_image(struct store *s, const char *hex, struct store_backup *ret_backup,
			struct hw_err *unreadable, struct hw_err *e);

#endif
