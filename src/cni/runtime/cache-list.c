/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/runtime/cache-list.c - all cached attachments, and the public way to the cache
 *
 * What:  list the entries of a cache folder; know later which files were there.
 * Rules: what is not an entry is reported to who asks, and passed over: others
 *        write into this folder too.
 */
#include "cni/runtime/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/json/value.h"
#include "base/map.h"
#include "base/os/file.h"
#include "base/str.h"
#include "cni/runtime/cni.h"
#include "cni/runtime/conf.h"

struct listing {
	const char *results;
	const char *container_id; /* NULL: any */
	void (*damaged)(void *ctx, const char *file, const struct hw_err *why);
	void *ctx;
	struct hw_cached_list list;
};

static bool is_cache_file(const struct file_entry *entry)
{
	return (entry->type == DT_REG || entry->type == DT_LNK) && !file_is_temporary(entry->name);
}

/* By its name alone, which is NETWORK-CONTAINER-IFNAME: could it be of this container? */
static bool may_be_of(const char *name, const char *container_id)
{
	autofree char *middle = NULL;
	const char *at;

	if (str_empty(container_id))
		return true;
	middle = str_printf("-%s-", container_id);
	at = strstr(name + 1, middle);
	return at && at[strlen(middle)] != '\0';
}

/* Return: 1, 0 when the file is gone, negative when it is not an entry */
static int listing_read(const struct file_entry *file, struct hw_cached *ret_entry,
			struct hw_err *e)
{
	AUTO(cache_entry_done) struct hw_cached entry = { 0 };
	AUTO(buf_done) struct buf text = { 0 };
	int r;

	r = file_read(file->dir, file->name, VALUE_SIZE_MAX, &text, e);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	if (text.len == 0)
		return err_text(e, -EINVAL, "the file is empty, as after a power cut");
	r = cache_entry_parse(&text, file->name, &entry, e);
	if (r < 0)
		return r;
	if (str_empty(entry.ifname) || str_empty(entry.network) || str_empty(entry.container_id))
		return err_text(e, -EINVAL, "networkName, containerId or ifName is missing");
	*ret_entry = entry;
	entry = (struct hw_cached){ 0 };
	return 1;
}

static void listing_report(const struct listing *l, const char *name, const struct hw_err *why)
{
	autofree char *path = str_printf("%s/%s", l->results, name);

	if (l->damaged)
		l->damaged(l->ctx, path, why);
}

static int listing_add(void *ctx, const struct file_entry *file, struct hw_err *e)
{
	AUTO(cache_entry_done) struct hw_cached entry = { 0 };
	struct listing *l = ctx;
	struct hw_cached_list *list = &l->list;
	struct hw_err why;
	int r;

	(void)e;
	if (!is_cache_file(file) || !may_be_of(file->name, l->container_id))
		return 0;
	r = listing_read(file, &entry, &why);
	if (r < 0)
		listing_report(l, file->name, &why);
	if (r <= 0)
		return 0;
	if (!str_empty(l->container_id) && !str_equal(entry.container_id, l->container_id))
		return 0;
	list->v = mem_resize(list->v, list->n + 1, sizeof(*list->v));
	list->v[list->n++] = entry;
	entry = (struct hw_cached){ 0 };
	return 0;
}

/**
 * hw_cached_attachments() - every cached attachment
 * @container_id: of this container only; NULL or "": all
 * @damaged:      told of each file that is not an entry; may be NULL
 *
 * Return: 0, with an empty list where the directory is missing
 */
int hw_cached_attachments(const struct hw_cni *cni, const char *container_id,
			  void (*damaged)(void *ctx, const char *file, const struct hw_err *why),
			  void *ctx, struct hw_cached_list *ret_list, struct hw_err *e)
{
	autofree char *results = cache_results_dir(cni->cache_dir);
	struct listing l = { results, container_id, damaged, ctx, { 0 } };
	int r;

	r = file_walk(AT_FDCWD, results, listing_add, &l, e);
	if (r < 0 && r != -ENOENT) {
		hw_cached_list_free(&l.list);
		return err_ctx(e, "list cached attachments");
	}
	*ret_list = l.list;
	return 0;
}

/**
 * hw_cached_list_free() - free the entries and empty the list
 */
void hw_cached_list_free(struct hw_cached_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		cache_entry_done(&list->v[i]);
	free(list->v);
	*list = (struct hw_cached_list){ 0 };
}

/**
 * hw_cached_result() - the result of the ADD, in the network's version
 *
 * Return: 1 with a result, 0 when there is none, negative on error
 */
int hw_cached_result(const struct hw_cni *cni, const struct hw_conf *conf,
		     const struct hw_attach *at, struct hw_result **ret_result, struct hw_err *e)
{
	struct hw_attach own;
	int r;

	r = cni_copy_struct(&own, sizeof(own), at, "struct hw_attach", e);
	if (r < 0)
		return r;
	r = cache_result(cni->cache_dir, conf, &own, ret_result, e);
	if (r == 0)
		*ret_result = NULL;
	return r;
}

/**
 * hw_cached_config() - the configuration and arguments that the ADD used
 *
 * Return: 1 with one entry, 0 when there is none, negative on error
 */
int hw_cached_config(const struct hw_cni *cni, const struct hw_conf *conf,
		     const struct hw_attach *at, struct hw_cached_list *ret_list, struct hw_err *e)
{
	struct hw_cached entry;
	struct hw_attach own;
	int r;

	r = cni_copy_struct(&own, sizeof(own), at, "struct hw_attach", e);
	if (r < 0)
		return r;
	r = cache_read(cni->cache_dir, conf->name, &own, &entry, e);
	if (r == 0)
		*ret_list = (struct hw_cached_list){ 0 };
	if (r > 0)
		*ret_list = (struct hw_cached_list){ mem_copy(&entry, sizeof(entry)), 1 };
	return r;
}

/**
 * cache_sweep() - clear away what writers that died left in the folder
 */
int cache_sweep(const char *dir, struct hw_err *e)
{
	autofree char *results = cache_results_dir(dir);
	int r = file_sweep(AT_FDCWD, results, e);

	return r < 0 ? err_ctx(e, "%s", results) : 0;
}

/* ---- which files there were ------------------------------------------------------------ */

struct cache_snapshot {
	int dir;	   /* -1: there was none */
	struct map *files; /* name to struct stat */
};

static int snapshot_add(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	struct cache_snapshot *snapshot = ctx;
	struct stat st;

	(void)e;
	if (!is_cache_file(entry) || fstatat(entry->dir, entry->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	map_set(snapshot->files, entry->name, mem_copy(&st, sizeof(st)));
	return 0;
}

/**
 * cache_snapshot() - note which cache files there are now
 */
int cache_snapshot(const char *dir, struct cache_snapshot **ret_snapshot, struct hw_err *e)
{
	AUTO(cache_snapshot_free) struct cache_snapshot *snapshot = mem_new(sizeof(*snapshot));
	autofree char *results = cache_results_dir(dir);
	int r;

	snapshot->files = map_new(free);
	snapshot->dir = open(results, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (snapshot->dir < 0 && errno != ENOENT)
		return err_set(e, -errno, "open %s", results);
	if (snapshot->dir >= 0) {
		r = file_walk(snapshot->dir, ".", snapshot_add, snapshot, e);
		if (r < 0)
			return err_ctx(e, "%s", results);
	}
	*ret_snapshot = take_ptr(snapshot);
	return 0;
}

/**
 * cache_snapshot_has() - was the entry's file there, and is it the same still?
 *
 * A file that was replaced has another inode; where the number came back, ctime tells.
 */
bool cache_snapshot_has(const struct cache_snapshot *snapshot, const char *network,
			const struct hw_cached *entry)
{
	autofree char *name = NULL;
	const struct stat *then;
	struct hw_err e;
	struct stat now;

	if (cache_name(network, entry->container_id, entry->ifname, &name, &e) < 0)
		return false;
	then = map_find(snapshot->files, name);
	if (!then || fstatat(snapshot->dir, name, &now, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	return then->st_dev == now.st_dev && then->st_ino == now.st_ino &&
	       then->st_ctim.tv_sec == now.st_ctim.tv_sec &&
	       then->st_ctim.tv_nsec == now.st_ctim.tv_nsec &&
	       then->st_mtim.tv_sec == now.st_mtim.tv_sec &&
	       then->st_mtim.tv_nsec == now.st_mtim.tv_nsec;
}

/** cache_snapshot_free() - end a snapshot; NULL is fine */
void cache_snapshot_free(struct cache_snapshot *snapshot)
{
	if (!snapshot)
		return;
	mem_close_fd(&snapshot->dir);
	map_free(snapshot->files);
	free(snapshot);
}
