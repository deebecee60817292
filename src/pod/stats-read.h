/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/stats-read.h - reads cgroups that may not answer, for the files of this folder only
 *
 * What:  a kernel lock, or a file system in place of a cgroup, can block a reader for any time. So a
 *        thread of its own, the reader, reads the items of a list one after the other, and the caller
 *        watches its progress. An item that takes longer than a limit is *stuck*: it stays without
 *        values, its reader is abandoned, and another one continues with the next item. Until the
 *        abandoned reader returns, no other one reads that item, so that it costs a thread for each call that was
 *        reading it at that time, and none for later ones.
 * Rules: a reader uses only memory of its own: the list, and struct readers. Both live until the last
 *        reader has returned, perhaps after the daemon has closed its pods. It has no descriptors of the
 *        daemon.
 *        At most READERS_STUCK_MAX items are stuck. With so many, nothing is read until a reader returns.
 */
#ifndef POD_STATS_READ_H
#define POD_STATS_READ_H

#include "base/arena.h"
#include "base/shared.h"
#include "oci/cgroup.h"
#include "pod/stats.h"

#define READERS_STUCK_MAX 16

struct readers;

/* A pod or a container to read. The strings are in the arena of the list. */
struct read_item {
	const char *id;
	const char *cgroup; /* path; NULL: not read */
	const char *netns;  /* path; NULL: not read */
	const char *layer;  /* directory to count, unless it is large; NULL: none */
	int pid;	    /* first process; 0: none */
	enum stats_detail detail;
	struct stats result;
};

/* A list of items, to be dropped with shared_unref(). */
struct read_list {
	struct shared shared;
	struct arena arena;
	struct readers *readers;
	size_t n;
	struct read_item *items;

	/* protected by the lock of the readers */
	size_t at, end;	  /* the item that is being read; those from end on are not read */
	int64_t since;	  /* when its reader has begun; 0: not yet */
	unsigned current; /* number of the reader that works; all others were abandoned */
};

/* Reads an item. *ret is uninitialised. */
typedef void read_item_fn(const struct cgroup_fs *fs, const struct read_item *item,
			  struct stats *ret);

/* @fs: owned by the readers from now on. @limit_ms: an item that takes longer is stuck. To be dropped
 * with shared_unref(). */
struct readers *readers_new(struct cgroup_fs *fs, read_item_fn *read, int limit_ms);
/* From now on all reads end at once. */
void readers_cancel(struct readers *r);

struct read_list *read_list_new(struct readers *r, size_t n);
/* Reads all items; those that are stuck have no values. Return: 0; -ETIMEDOUT; -ECANCELED after
 * readers_cancel(); or another negative errno */
int stats_read(struct read_list *list, int64_t deadline, struct hw_err *e);

/* ---- stats-item.c ------------------------------------------------------------------- */
void stats_init(struct stats *ret); /* nothing is known */
void stats_done(struct stats *s);
read_item_fn stats_read_item;

#endif
