/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/store/store.h - the images of a node, on disk
 *
 * What:  layers, by chain id and shared between images; images, by the digest of
 *        their configuration; the names that images have.
 *
 *	ROOT/lock                  one instance at a time
 *	ROOT/images.db             what there is, with manifests and configurations
 *	ROOT/layers/HEX/root/      the files of a layer, as overlayfs wants them
 *	ROOT/layers/HEX/recipe     to make its archive again (fetch/recipe/recipe.h)
 *	ROOT/layers/HEX/blob       its archive as it came, where that is kept
 *	ROOT/tmp/N/                a layer that is being made
 *	ROOT/gone/N/               what is being deleted
 *	ROOT/reserve               room for the database to shrink on a full disk
 *	ROOT/empty/                where a stack of layers needs one more
 *
 * Rules: nothing half-written is ever visible. A layer is on disk (syncfs())
 *        before it gets its place, its place before its row in the database, and
 *        all layers of an image before the image. Removal goes the other way
 *        round. Whatever is without a row is incomplete, and is cleared away when
 *        the store is opened; nothing but names of folders is looked at for that.
 *        Every function may be called from any thread. Changes take turns; what
 *        takes long (writing to disk, deleting) is done outside of the turn.
 *        Readers take the published snapshot and never wait for a change.
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
#include "image/digest.h"
#include "image/protocol/unpacked.h"

struct store;

/* -EBUSY: another process has it open. -ENOTSUP: it was written by a newer version of us. */
int store_open(const char *root, struct store **ret_store, struct hw_err *e);
void store_close(struct store *s); /* every hold, stage and snapshot of it was given back */

/* Delete what was incomplete when the store was opened, and what pulls left longer ago than a day
 * (see holds). May take long; to be called once, from a thread of its own if there is something
 * better to do. */
int store_sweep(struct store *s, struct hw_err *e);

const char *store_root(const struct store *s);

/* Names of images, complete ones, that are to be shown as pinned. */
int store_pin(struct store *s, const struct hw_strings *names, struct hw_err *e);

/* ---- the snapshot: what readers see ------------------------------------------ */

/* Never changes. */
struct store_image {
	unsigned int users;
	char id[DIGEST_TEXT];	    /* of the configuration */
	char manifest[DIGEST_TEXT]; /* of the manifest it was last pulled by */
	struct hw_strings tags;	    /* "docker.io/library/busybox:latest", sorted */
	struct hw_strings digests;  /* "docker.io/library/busybox@sha256:...", sorted */
	int64_t size;		    /* bytes on disk of its layers, manifest and configuration */
	bool has_uid;		    /* the image says who runs it, by number */
	int64_t uid;
	char *username; /* ... by name; "": it does not */
	bool pinned;
	bool damaged; /* a layer has been lost: it is to be pulled again */
};

struct store_snapshot {
	unsigned int users;
	size_t n;
	const struct store_image *images[]; /* by id */
};

const struct store_snapshot *store_snapshot_get(struct store *s);
void store_snapshot_put(const struct store_snapshot *snap); /* NULL: nothing */

AUTO_DEFINE(store_snapshot_put, const struct store_snapshot);

/* By id, with or without "sha256:", by the beginning of one, or by a name, which is made complete
 * (image/reference.h); of a name with tag and digest the digest counts. The image is the
 * snapshot's. Damaged images are not found, so that whoever needs one pulls it again.
 * Return: 1; 0: there is none; -EINVAL: several ids begin so */
int store_snapshot_find(const struct store_snapshot *snap, const char *text,
			const struct store_image **ret_image, struct hw_err *e);

/* ---- images ------------------------------------------------------------------ */

struct store_new_image {
	const char *manifest; /* bytes; its digest is what they hash to */
	size_t manifest_len;
	const char *config; /* bytes; the image's id is what they hash to */
	size_t config_len;
	const char *const *names; /* complete: NAME:TAG and NAME@DIGEST */
	size_t n_names;
};

/* All its layers are there: else -ENOENT. A name that another image had moves; that image stays,
 * with what names are left to it. An image that is there gets the names in addition.
 * On disk when it returns. @ret_id: may be NULL. */
int store_image_put(struct store *s, const struct store_new_image *image, char ret_id[DIGEST_TEXT],
		    struct hw_err *e);

/* With all its names; @text as store_snapshot_find(), and damaged ones too. Layers that no other
 * image has and nobody holds are given back before it returns.
 * Return: 0; 1: there is none; -EINVAL: several ids begin so */
int store_image_remove(struct store *s, const char *text, struct hw_err *e);

/* What it was put with; each may be NULL. Return: 1; 0: there is none */
int store_image_read(struct store *s, const char *id, struct buf *ret_manifest,
		     struct buf *ret_config, struct hw_err *e);

/* ---- layers ------------------------------------------------------------------ */

struct store_layer {
	char chain_id[DIGEST_TEXT];
	char diff_id[DIGEST_TEXT];
	char blob[DIGEST_TEXT_MAX + 1]; /* digest of the archive as it came */
	int64_t blob_size;
	int64_t archive; /* bytes, not compressed */
	int64_t content; /* bytes of its files */
	int64_t disk;	 /* bytes that all of it takes */
	int64_t inodes;
	bool rebuildable, opaque; /* see image/protocol/unpacked.h */
	bool blob_kept;
};

/* Return: 1; 0: there is none */
int store_layer_get(struct store *s, const char *chain_id, struct store_layer *ret_layer,
		    struct hw_err *e);
/* Of an image, the lowest first; *ret_layers is to be freed. Return: 1; 0: there is no such image,
 * or one of its layers has been lost */
int store_image_layers(struct store *s, const char *id, struct store_layer **ret_layers,
		       size_t *ret_n, struct hw_err *e);
/* Its folder (root/, recipe, blob), as a descriptor, O_PATH; or negative errno */
int store_layer_open(struct store *s, const char *chain_id, struct hw_err *e);

/* It is not what it should be, but images need it: it stays until the next one that is committed
 * takes its place. Till then, or till it is trusted again, whoever holds it is told that it is not
 * there. Return: 0; 1: there is none; -EBUSY: somebody holds it */
int store_layer_doubt(struct store *s, const char *chain_id, struct hw_err *e);
void store_layer_trust(struct store *s, const char *chain_id);

/* A layer that is being made. */
struct store_stage {
	struct store *store;
	char name[16]; /* in tmp/ */
	int dir;       /* for the files "recipe" and "blob"; the layer's own go below "root" in it,
			* an empty folder, 0755 */
};

int store_layer_begin(struct store *s, struct store_stage **ret_stage, struct hw_err *e);
void store_stage_free(struct store_stage *stage); /* with what is in it, if it has no place yet */

AUTO_DEFINE(store_stage_free, struct store_stage);

struct store_new_layer {
	struct store_stage *stage; /* still to be freed by the caller */
	const char *chain_id;
	const struct unpacked *unpacked;
	const char *blob; /* digest of the archive as it came */
	int64_t blob_size;
};

/* They are complete: on disk and in their places when it returns, all or (but for those that were
 * there) none. Many at once cost one wait for the disk; the unpacker need not wait for it too.
 * A layer that somebody else has put there meanwhile is no error; one that is doubted is
 * replaced. */
int store_layers_commit(struct store *s, const struct store_new_layer *layers, size_t n,
			struct hw_err *e);

/* ---- holds: layers that are in use ------------------------------------------- */

/*
 * A pull holds the layers that it finds and makes until its image is there; a container holds
 * those of its image. A held layer stays, also when its image is removed; it is given back when
 * the last hold goes. Holds end with the process: at start the daemon takes those of its containers
 * again, before it removes anything.
 * Layers of a pull that came to no image stay, so that the next try finds them, also after a
 * restart. They are given back when an image is removed; when they have been there for a day, at
 * the end of the next hold or by store_sweep(); or by store_trim(), as when a pull finds no room.
 */
struct store_hold;

struct store_hold *store_hold_new(struct store *s);
/* Held from now on, there or not. Return: 1: it is there; 0: it is not (yet) */
int store_hold_layer(struct store_hold *h, const char *chain_id, struct hw_err *e);
void store_hold_free(struct store_hold *h);

AUTO_DEFINE(store_hold_free, struct store_hold);

/* Give back every layer that belongs to no image and is not held. */
int store_trim(struct store *s, struct hw_err *e);

/* ---- how much there is ------------------------------------------------------- */

struct store_usage {
	int64_t bytes, inodes; /* of all layers */
	size_t layers;
};

void store_usage(struct store *s, struct store_usage *ret_usage); /* does not wait */

#endif
