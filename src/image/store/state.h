/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/store/state.h - the store from inside, for store*.c alone
 *
 * Three locks, in this order:
 *
 *	lock     whoever changes something has it. It is held for renames and one commit,
 *	         never while a tree is written out or deleted.
 *	reading  of whoever but reads the database, by a handle of its own: who reads
 *	         waits for nobody's commit.
 *	publish  protects the pointer to the snapshot and the usage: for a few
 *	         instructions, so readers wait for nobody's disk.
 */
#ifndef IMAGE_STORE_STATE_H
#define IMAGE_STORE_STATE_H

#include <pthread.h>

#include "base/map.h"
#include "db/db.h"
#include "image/store/store.h"

struct store {
	pthread_mutex_t lock;
	char *root;
	int lock_fd, dir, layers, tmp, gone;
	struct db *db;
	pthread_mutex_t reading;
	struct db *reads;    /* under reading; may be ahead of the snapshot by a commit */
	unsigned int next;   /* name in tmp/ and gone/ that was not used yet */
	unsigned int old;    /* those in gone/ below it were found there */
	struct map *held;    /* chain id to struct held */
	struct map *doubted; /* chain ids of layers that are to be replaced */
	struct hw_strings pinned;

	pthread_mutex_t publish;
	const struct store_snapshot *snapshot;
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

/* Until the end of the block. */
#define STORE_HAS(lock)                                                                            \
	AUTO(store_unlock) __attribute__((unused)) pthread_mutex_t *locked_ = store_lock(&(lock))
#define STORE_LOCKED(s)	 STORE_HAS((s)->lock)
#define STORE_READING(s) STORE_HAS((s)->reading)

/* All that follows is for whoever has the lock, unless it says otherwise. */

/* ---- store.c ---- */
unsigned int store_number(struct store *s);
void store_add_usage(struct store *s, int64_t bytes, int64_t inodes, int layers);
int store_check_digest(const char *digest, struct hw_err *e); /* needs no lock */

/* None of these needs the lock. */
void store_reserve(struct store *s);
bool store_unreserve(struct store *s); /* was there something to give up? then try again */

/* ---- snapshot.c ---- */
/* What readers will see once it is published: what they see now, with these images read anew. */
int store_draft(struct store *s, const struct hw_strings *ids, const struct store_snapshot **ret,
		struct hw_err *e);
int store_draft_all(struct store *s, const struct store_snapshot **ret, struct hw_err *e);
void store_publish(struct store *s, const struct store_snapshot **draft); /* takes it */
/* As store_snapshot_find(), and damaged ones if wanted. Needs no lock. */
int store_find(const struct store_snapshot *snap, const char *text, bool damaged,
	       const struct store_image **ret_image, struct hw_err *e);

/* ---- layer.c ---- */
int store_layer_exists(struct store *s, const char *chain_id, struct hw_err *e); /* 1, 0 */
bool store_is_doubted(const struct store *s, const char *chain_id);
/* The ids of the images that need it are added, each once. */
int store_layer_images(struct store *s, const char *chain_id, struct hw_strings *ids,
		       struct hw_err *e);

/* ---- prune.c ---- */
/* Folders on their way out: first out of layers/ and tmp/, under the lock; then, without it,
 * deleted. */
struct store_doomed {
	struct hw_strings chains; /* their rows are deleted; the folders are still in layers/ */
	struct hw_strings gone;	  /* names in gone/ */
	int64_t bytes, inodes;
};
void store_doomed_done(struct store_doomed *d);
AUTO_VALUE_DEFINE(store_doomed_done, struct store_doomed);

/* Delete the rows of those of these layers that are in no image and that nobody holds; in a
 * transaction of the caller's, who commits it and then calls store_evict(). */
int store_give_back(struct store *s, const struct hw_strings *chains, struct store_doomed *d,
		    struct hw_err *e);
/* What pulls that came to no image have left; only the stale: a day ago, or longer. */
int store_list_left(struct store *s, bool stale, struct hw_strings *chains, struct hw_err *e);
void store_evict(struct store *s, struct store_doomed *d);
int store_move_out(struct store *s, int from, const char *name, struct store_doomed *d,
		   struct hw_err *e);
/* Without the lock. */
int store_trim_stale(struct store *s, struct hw_err *e);
int store_delete(struct store *s, const struct store_doomed *d, struct hw_err *e);

bool store_is_held(const struct store *s, const char *chain_id);

/* ---- image.c ---- */
int store_image_chains(struct store *s, const char *id, struct hw_strings *ret_chains,
		       struct hw_err *e);

#endif
