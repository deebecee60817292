/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/store/store.h - image store: images and layers on disk
 *
 * What:  layers, by chain ID and shared between images; images, by image ID; the
 *        names of images.
 *
 *	ROOT/lock                  locked by the process that has the store open
 *	ROOT/images.db             database: layers, images, names, documents
 *	ROOT/layers/HEX/root/      files of a layer, in the format of an overlayfs layer
 *	ROOT/layers/HEX/recipe     recipe to rebuild its archive (fetch/recipe/recipe.h)
 *	ROOT/layers/HEX/blob       its archive as received, if blobs are kept
 *	ROOT/layers/HEX/layer      its row in the database (backup.c)
 *	ROOT/images/HEX/           manifest, configuration and names of an image (backup.c)
 *	ROOT/tmp/N/                stage: a layer that is being unpacked
 *	ROOT/gone/N/               directory that is being deleted
 *	ROOT/reserve               occupies disk space for the database (state.h)
 *	ROOT/empty/                empty directory, for mounts (mount.h)
 *	ROOT/needs-recovery        exists while rows are lost (see store_recover())
 *	ROOT/images.db.damaged     the database before that; with ".N" those of earlier losses
 *	ROOT/unrecovered/          directories that store_recover() could not use
 *
 * Rules: incomplete data is never visible. A layer is written to disk (syncfs())
 *        before it is moved into place; it is in place before its row is added to
 *        the database; an image is added with its last layers, or after them. Removal is
 *        in the reverse order. Layers without a row are incomplete and are removed when
 *        the store is opened; this reads only the directory names.
 *        If the database is new, empty or damaged although there are layers or images, or
 *        lacks an image that has files, nothing is removed, and store_recover() rebuilds it.
 *        All functions are thread-safe. Changes are serialized, but slow
 *        operations (writing to disk, deleting trees) run outside the lock.
 *        Readers use the published snapshot and never wait for a change.
 */
#ifndef IMAGE_STORE_STORE_H
#define IMAGE_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hawser/field.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/shared.h"
#include "image/digest.h"
#include "image/protocol/layer-report.h"

struct store;

/* Open a store; missing directories are created. Return: 0; -EBUSY: another process has it open;
 * -ENOTSUP: written by a newer version */
int store_open(const char *root, struct store **ret_store, struct hw_err *e);
/* All holds, stages and snapshots must have been released, or left. NULL is allowed. */
void store_close(struct store *s);

/* Delete the data that was incomplete when the store was opened, layers that no image has and nothing
 * holds, and layers that were left by failed pulls more than a day ago (see holds below); write the files
 * of images and layers that an older version has stored, or that are damaged (backup.c). Tries everything,
 * and returns the first error. May take long. To be called once. */
int store_sweep(struct store *s, struct hw_err *e);

const char *store_root(const struct store *s); /* an absolute path */

/*
 * A store whose database was lost or damaged can be opened, and has no images. Until store_recover()
 * images can be pulled and removed, but no layer is removed: a pull uses the layers that it finds.
 */

/* Return: why store_recover() is needed, to be freed by the caller; NULL: it is not needed. Never
 * waits for the disk. */
char *store_loss(struct store *s);

struct store_recovery {
	bool lost;	       /* false: nothing was lost, so nothing was done */
	size_t layers;	       /* layers that are in the store now */
	size_t unknown_layers; /* directories without a valid file "layer" */
	char *unrecovered; /* directory to which unusable layers and images were moved; or NULL */
	struct hw_strings missing; /* names of images that were lost, or that lack a layer */
};

void store_recovery_done(struct store_recovery *r);

AUTO_VALUE_DEFINE(store_recovery_done, struct store_recovery);

/* Rebuild the database from the files of layers and images. If it is interrupted, call it again. If a
 * file cannot be read, the others are recovered nevertheless; call it again when the file can be read, or
 * was deleted. Return: 0 and a result, to be released with store_recovery_done(); or negative errno */
int store_recover(struct store *s, struct store_recovery *ret, struct hw_err *e);

/* Mark the images with these complete names as pinned, now and later, and no other images. */
void store_pin(struct store *s, const struct hw_strings *names);

/* ---- snapshots for readers --------------------------------------------------- */

/* Immutable. */
struct store_image {
	struct shared shared;
	char id[DIGEST_TEXT];	    /* digest of the configuration */
	char manifest[DIGEST_TEXT]; /* digest of the manifest of the last pull */
	struct hw_strings tags;	    /* "docker.io/library/busybox:latest", sorted */
	struct hw_strings digests;  /* "docker.io/library/busybox@sha256:...", sorted */
	int64_t size;		    /* bytes on disk of layers, manifest and configuration */
	bool has_uid;		    /* the configuration has a numeric user */
	int64_t uid;
	char *username; /* user name of the configuration; "" if numeric or not set */
	bool pinned;
	bool damaged; /* a layer was lost: the image must be pulled again */
};

/* Immutable. */
struct store_snapshot {
	struct shared shared;
	size_t n;
	const struct store_image *images[]; /* sorted by ID */
};

const struct store_snapshot *store_snapshot_get(struct store *s);
void store_snapshot_put(const struct store_snapshot *snap); /* NULL is allowed */

AUTO_DEFINE(store_snapshot_put, const struct store_snapshot);

/*
 * Find an image by its ID with or without "sha256:", by an unambiguous prefix of the ID, or by a
 * name, which is completed (image/reference.h). If a name has both a tag and a digest, the tag is
 * ignored. Damaged images are not found, so that they are pulled again. The image belongs to the
 * snapshot. Return: 1 if found; 0 if not; -EINVAL: ambiguous prefix
 */
int store_snapshot_find(const struct store_snapshot *snap, const char *text,
			const struct store_image **ret_image, struct hw_err *e);
/* Like store_snapshot_find(), but damaged images are found too. */
int store_snapshot_find_any(const struct store_snapshot *snap, const char *text,
			    const struct store_image **ret_image, struct hw_err *e);

/* ---- images ------------------------------------------------------------------ */

struct store_new_image {
	const char *manifest; /* bytes as received */
	size_t manifest_len;
	const char *config; /* bytes as received: their digest is the image ID */
	size_t config_len;
	const char *const *names; /* complete: NAME:TAG or NAME@DIGEST */
	size_t n_names;
};

/* Remove an image with all its names, and all layers that no other image has and that are not held.
 * @text is the same as for store_snapshot_find(), but damaged images are found too. Return: 1 if
 * removed; 0: not found; -EINVAL: ambiguous prefix of an ID */
int store_image_remove(struct store *s, const char *text, struct hw_err *e);

/* Read the documents of an image; each pointer may be NULL. Return: 1; 0: not found */
int store_image_read(struct store *s, const char *id, struct buf *ret_manifest,
		     struct buf *ret_config, struct hw_err *e);

/* ---- layers ------------------------------------------------------------------ */

struct store_layer {
	char chain_id[DIGEST_TEXT];
	char diff_id[DIGEST_TEXT];
	char blob[DIGEST_TEXT_MAX + 1]; /* digest of the archive as received */
	int64_t blob_size;
	int64_t archive; /* bytes of the uncompressed archive */
	int64_t content; /* bytes of all files */
	int64_t disk;	 /* bytes on disk, with recipe and blob */
	int64_t inodes;
	bool rebuildable, opaque; /* see image/protocol/layer-report.h */
	bool blob_kept;
};

/* Return: 1; 0: not found */
int store_layer_get(struct store *s, const char *chain_id, struct store_layer *ret_layer,
		    struct hw_err *e);
/* List the layers of an image, the lowest first; the caller frees *ret_layers. Return: 1; 0: no
 * such image, or one of its layers was lost */
int store_image_layers(struct store *s, const char *id, struct store_layer **ret_layers,
		       size_t *ret_n, struct hw_err *e);
/* Open the directory of a layer, which contains root/, recipe and blob. Return: a descriptor opened
 * with O_PATH, or negative errno */
int store_layer_open(struct store *s, const char *chain_id, struct hw_err *e);

/*
 * Mark a layer as suspect: its files may be damaged. Images need the layer, so it stays until the
 * next commit of the same layer replaces it. Until then, or until the mark is cleared,
 * store_hold_layer() reports that it does not exist. Return: 1 if marked; 0: not found; -EBUSY: held
 */
int store_layer_mark_suspect(struct store *s, const char *chain_id, struct hw_err *e);
void store_layer_clear_suspect(struct store *s, const char *chain_id);

/* A layer that is being unpacked. */
struct store_stage {
	struct store *store;
	char name[16]; /* name of the directory in tmp/ */
	int dir;       /* contains root/, an empty directory with mode 0755 for the files of the
			* layer; the files "recipe" and "blob" are created beside it */
};

int store_layer_begin(struct store *s, struct store_stage **ret_stage, struct hw_err *e);
/* Deletes the files, unless they were committed. NULL is allowed. */
void store_stage_free(struct store_stage *stage);

AUTO_DEFINE(store_stage_free, struct store_stage);

struct store_new_layer {
	struct store_stage *stage; /* still owned by the caller */
	const char *chain_id;
	const struct unpacked *unpacked;
	const char *blob; /* digest of the archive as received */
	int64_t blob_size;
};

/* ---- adding ------------------------------------------------------------------ */

struct store_addition {
	const struct store_new_layer *layers;
	size_t n_layers;
	const struct store_new_image *images;
	size_t n_images;
};

/*
 * Add complete layers, and add images or add names to existing images: all layers and images, or on
 * failure nothing. On success they are on disk, and readers see the images. One sync covers all layers, and the
 * unpacker need not sync.
 * It is not an error if another pull has already added a layer. A layer that is suspect or has lost
 * its files is replaced. The layers of an image must be in the store, or be added with it. If a name
 * belongs to another image, the name is moved; the other image keeps its remaining names.
 * @ret_ids: the IDs of the images; may be NULL without images. Return: 0; -ENOENT: a layer is
 * missing; -EBADMSG: a configuration is malformed; -EINVAL: a name is not complete
 */
int store_add(struct store *s, const struct store_addition *what, char (*ret_ids)[DIGEST_TEXT],
	      struct hw_err *e);

/* ---- holds: layers in use ---------------------------------------------------- */

/*
 * A pull holds the layers that it finds and adds until its image is stored; a container holds the
 * layers of its image. A held layer stays even if its image is removed; it is then removed when
 * the last hold is released. Holds are not persistent: at start the daemon must hold the layers of
 * its containers again before it removes anything.
 * Layers of a failed pull stay, also after a restart, so that the next attempt finds them. They are
 * removed when any image is removed, or by store_trim(), for example when the disk is full. When
 * they are a day old, the next release of a hold or store_sweep() removes them.
 */
struct store_hold;

struct store_hold *store_hold_new(struct store *s); /* holds no layer yet */
/* Hold a layer from now on, whether or not it exists. Return: 1 if it exists; 0 if it does not
 * exist yet, is suspect, or its files were deleted by another program: then the next commit of the
 * layer replaces it */
int store_hold_layer(struct store_hold *h, const char *chain_id, struct hw_err *e);
/* Hold all layers that are in the store now: for a container of which it is not known which layers it uses. */
int store_hold_all(struct store_hold *h, struct hw_err *e);
/* Release a hold. Removes layers whose images were removed during the hold. If that fails, they
 * stay until store_trim(). NULL is allowed. */
void store_hold_free(struct store_hold *h);
/* Free a hold, but not the layers: they stay held until the store is closed. For holds of a container that
 * outlives this process. NULL is allowed. */
void store_hold_leave(struct store_hold *h);

AUTO_DEFINE(store_hold_free, struct store_hold);

/* Remove all layers that no image has and that are not held. */
int store_trim(struct store *s, struct hw_err *e);

/* ---- disk usage -------------------------------------------------------------- */

struct store_usage {
	int64_t bytes, inodes; /* used by all layers */
	size_t layers;
};

void store_usage(struct store *s, struct store_usage *ret_usage); /* never waits for the disk */

#endif
