/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/runtime/cache.h - the cache of attachments, in libcni's files
 *
 * DIR/results/NETWORK-CONTAINER-IFNAME, replaced atomically. A damaged or
 * foreign file never makes DEL or GC fail.
 */
#ifndef CNI_RUNTIME_CACHE_H
#define CNI_RUNTIME_CACHE_H

#include <hawser/cni.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"

#define CACHE_DIR "/var/lib/cni"

/*
 * Gets the path of an attachment's file; freed by the caller.
 *
 * Return: 0; -EINVAL if the network name, container ID or interface name is missing or contains a
 * slash; -ENAMETOOLONG if the file name would be too long
 */
int cache_path(const char *dir, const char *network, const struct hw_attach *at, char **ret_path,
	       struct hw_err *e);
/*
 * Writes the entry of an attachment; creates missing directories with mode 0700.
 * @result_json: result of the last plugin; NULL: none
 */
int cache_write(const char *dir, const struct hw_conf *conf, const struct hw_attach *at,
		const char *result_json, struct hw_err *e);
/*
 * Reads the result of an attachment, converted to the network's version.
 *
 * Return: 1 if found, 0 if not, negative if it is damaged or cannot be converted
 */
int cache_result(const char *dir, const struct hw_conf *conf, const struct hw_attach *at,
		 struct hw_result **ret_result, struct hw_err *e);
/*
 * Reads the whole entry of an attachment; cache_entry_done() frees its content.
 *
 * Return: 1 if found, 0 if not, negative if it is damaged or has another format
 */
int cache_read(const char *dir, const char *network, const struct hw_attach *at,
	       struct hw_cached *ret_entry, struct hw_err *e);
/* Removes the entry of an attachment; succeeds if it does not exist. */
int cache_remove(const char *dir, const char *network, const struct hw_attach *at,
		 struct hw_err *e);
/* Removes temporary files of writers that died. */
int cache_sweep(const char *dir, struct hw_err *e);
/* Frees the content of an entry and zeroes it. */
void cache_entry_done(struct hw_cached *entry);

/*
 * Parse a file's text; exported for the fuzzer.
 * @network: used in error messages
 *
 * cache_result_parse() returns 1 with a result, or 0 if the file has no result or belongs to
 * another attachment.
 */
int cache_entry_parse(const struct buf *text, const char *network, struct hw_cached *ret_entry,
		      struct hw_err *e);
int cache_result_parse(const struct buf *text, const struct hw_conf *conf,
		       const struct hw_attach *at, struct hw_result **ret_result, struct hw_err *e);

/*
 * A snapshot contains the files that exist when it is taken. GC uses one to keep attachments that
 * were added after GC was called.
 */
struct cache_snapshot;
int cache_snapshot(const char *dir, struct cache_snapshot **ret_snapshot, struct hw_err *e);
/* Return: true if the entry's file existed when the snapshot was taken and was not replaced since */
bool cache_snapshot_has(const struct cache_snapshot *snapshot, const char *network,
			const struct hw_cached *entry);
void cache_snapshot_free(struct cache_snapshot *snapshot); /* accepts NULL */

AUTO_VALUE_DEFINE(cache_entry_done, struct hw_cached);
AUTO_VALUE_DEFINE(hw_cached_list_free, struct hw_cached_list);
AUTO_DEFINE(cache_snapshot_free, struct cache_snapshot);

#endif
