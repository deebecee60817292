/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/runtime/cache.h - what was attached, in libcni's own files
 *
 * DIR/results/NETWORK-CONTAINER-IFNAME, replaced atomically; a torn or foreign
 * file is reported and passed over, never fatal to DEL or GC.
 */
#ifndef CNI_RUNTIME_CACHE_H
#define CNI_RUNTIME_CACHE_H

#include <hawser/cni.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"

#define CACHE_DIR "/var/lib/cni"

/* Return: 0, or an error when one of the three names is missing or has a slash */
int cache_path(const char *dir, const char *network, const struct hw_attach *at, char **ret_path,
	       struct hw_err *e);
int cache_write(const char *dir, const struct hw_conf *conf, const struct hw_attach *at,
		const char *result_json, struct hw_err *e);
/* The result in the network's version. Return: 1 with it, 0 when there is none, negative when it is
 * damaged or cannot be converted. */
int cache_result(const char *dir, const struct hw_conf *conf, const struct hw_attach *at,
		 struct hw_result **ret_result, struct hw_err *e);
/* The whole entry. Return: 1, 0 when there is none, negative on error */
int cache_read(const char *dir, const char *network, const struct hw_attach *at,
	       struct hw_cached *ret_entry, struct hw_err *e);
int cache_remove(const char *dir, const char *network, const struct hw_attach *at,
		 struct hw_err *e);
/* Clear away what writers that died left; a GC's work. */
int cache_sweep(const char *dir, struct hw_err *e);
void cache_entry_done(struct hw_cached *entry);

int cache_entry_parse(const struct buf *text, const char *network, struct hw_cached *ret_entry,
		      struct hw_err *e);
int cache_result_parse(const struct buf *text, const struct hw_conf *conf,
		       const struct hw_attach *at, struct hw_result **ret_result, struct hw_err *e);

/* A GC must not end what was added after it was called: a snapshot knows which files there were,
 * by inode, when it was taken. */
struct cache_snapshot;
int cache_snapshot(const char *dir, struct cache_snapshot **ret_snapshot, struct hw_err *e);
bool cache_snapshot_has(
	const struct cache_snapshot *snapshot, const char *network,
	const struct hw_cached *entry); /* was there, and has not been replaced since */
void cache_snapshot_free(struct cache_snapshot *snapshot);

AUTO_VALUE_DEFINE(cache_entry_done, struct hw_cached);
AUTO_VALUE_DEFINE(hw_cached_list_free, struct hw_cached_list);
AUTO_DEFINE(cache_snapshot_free, struct cache_snapshot);

#endif
