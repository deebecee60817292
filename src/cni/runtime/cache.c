/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/runtime/cache.c - the cache of attachments, in libcni's files
 *
 * What:  writes, reads, lists and removes DIR/results/NETWORK-CONTAINER-IFNAME.
 * How:   a field table gives the keys in libcni's order. The configuration is
 *        in base64, CNI_ARGS are pairs, the result is in the version that the
 *        last plugin printed. Files of older libcni versions contain only a
 *        result.
 * Rules: files are replaced atomically, without fsync: containers do not
 *        survive a power cut. An empty file, which a power cut leaves on some file
 *        systems, is treated as missing.
 *        Names with a slash are rejected: DEL does not validate names, and the
 *        path must stay inside the directory.
 *        Listing skips and reports damaged and foreign files, because other
 *        programs write to this directory too.
 */
#include "cni/runtime/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/json/field.h"
#include "base/json/value.h"
#include "base/map.h"
#include "base/os/file.h"
#include "base/str.h"
#include "cni/result.h"
#include "cni/runtime/cni.h"
#include "cni/runtime/conf.h"

#define CACHE_KIND "cniCacheV1"

/* The content of a file; .args and .config are the encoded forms of entry.args and entry.config. */
struct cache_file {
	struct hw_cached entry;
	char *kind;
	char *config; /* base64 */
	char *args;   /* [["K","V"]] */
};

static const struct hw_field file_fields[] = {
	{ "kind", HW_STRING, HW_AT(struct cache_file, kind), .flags = HW_ALWAYS },
	{ "containerId", HW_STRING, HW_AT(struct cache_file, entry.container_id),
	  .flags = HW_ALWAYS },
	{ "config", HW_STRING, HW_AT(struct cache_file, config), .flags = HW_ALWAYS },
	{ "ifName", HW_STRING, HW_AT(struct cache_file, entry.ifname), .flags = HW_ALWAYS },
	{ "networkName", HW_STRING, HW_AT(struct cache_file, entry.network), .flags = HW_ALWAYS },
	{ "netns", HW_STRING, HW_AT(struct cache_file, entry.netns) },
	{ "cniArgs", HW_JSON, HW_AT(struct cache_file, args) },
	{ "capabilityArgs", HW_JSON, HW_AT(struct cache_file, entry.capability_args) },
	{ "result", HW_JSON, HW_AT(struct cache_file, entry.result) },
	{ 0 },
};

void cache_entry_done(struct hw_cached *entry)
{
	free(entry->network);
	free(entry->container_id);
	free(entry->ifname);
	free(entry->netns);
	free(entry->capability_args);
	free(entry->config);
	free(entry->result);
	field_map_free(&entry->args);
	*entry = (struct hw_cached){ 0 };
}

/* ---- paths --------------------------------------------------------------------- */

static char *results_dir(const char *dir)
{
	return str_printf("%s/results", dir);
}

static int file_name(const char *network, const char *container_id, const char *ifname,
		     char **ret_name, struct hw_err *e)
{
	autofree char *name = NULL;

	if (str_empty(network) || str_empty(container_id) || str_empty(ifname))
		return err_text(e, -EINVAL,
				"cache file path requires network name (\"%s\"), container ID "
				"(\"%s\"), and interface name (\"%s\")",
				str_or(network, ""), str_or(container_id, ""), str_or(ifname, ""));
	name = str_printf("%s-%s-%s", network, container_id, ifname);
	if (strchr(name, '/'))
		return err_text(e, -EINVAL,
				"cache file name \"%s\": network name, container ID and interface "
				"name must not contain a slash",
				name);
	if (strlen(name) > NAME_MAX)
		return err_text(e, -ENAMETOOLONG,
				"cache file name \"%.60s...\" too long: got %zu bytes, want at "
				"most %d: network name, container ID or interface name is too long",
				name, strlen(name), NAME_MAX);
	*ret_name = take_ptr(name);
	return 0;
}

int cache_path(const char *dir, const char *network, const struct hw_attach *at, char **ret_path,
	       struct hw_err *e)
{
	autofree char *name = NULL;
	int r;

	r = file_name(network, at->container_id, at->ifname, &name, e);
	if (r < 0)
		return r;
	*ret_path = str_printf("%s/results/%s", dir, name);
	return 0;
}

/* ---- writing -------------------------------------------------------------------- */

/* Validates a JSON object that the caller passed, before it is written. NULL and {} become NULL. */
static int format_object(const char *json, const char *what, char **ret_json, struct hw_err *e)
{
	AUTO(value_free) struct value *v = NULL;
	int r;

	*ret_json = NULL;
	if (!json)
		return 0;
	r = conf_parse_object(json, what, &v, e);
	if (r < 0)
		return r;
	if (value_count(v) > 0)
		*ret_json = value_format(v, 0);
	return 0;
}

static int format_file(const struct hw_conf *conf, const struct hw_attach *at, const char *result,
		       char **ret_text, struct hw_err *e)
{
	AUTO(value_free) struct value *pairs = value_new_array();
	autofree char *config = base64_encode(conf->bytes, strlen(conf->bytes));
	autofree char *args = NULL, *capability_args = NULL, *result_text = NULL;
	struct cache_file file = { .kind = (char *)CACHE_KIND, .config = config };
	int r;

	for (size_t i = 0; i < at->n_args; i++) {
		struct value *pair = value_new_array();

		value_append(pair, value_new_string(at->args[i][0]));
		value_append(pair, value_new_string(at->args[i][1]));
		value_append(pairs, pair);
	}
	if (at->n_args > 0)
		file.args = args = value_format(pairs, 0);
	r = format_object(at->capability_args, "capability arguments", &capability_args, e);
	if (r < 0)
		return r;
	r = format_object(result, "result", &result_text, e);
	if (r < 0)
		return r;
	file.entry = (struct hw_cached){
		.network = conf->name,
		.container_id = (char *)at->container_id,
		.ifname = (char *)at->ifname,
		.netns = (char *)at->netns,
		.capability_args = capability_args,
		.result = result_text,
	};
	*ret_text = hw_field_encode(file_fields, &file, 0);
	return 0;
}

int cache_write(const char *dir, const struct hw_conf *conf, const struct hw_attach *at,
		const char *result_json, struct hw_err *e)
{
	autofree char *path = NULL;
	autofree char *text = NULL;
	autofree char *results = results_dir(dir);
	int r;

	r = cache_path(dir, conf->name, at, &path, e);
	if (r < 0)
		return r;
	r = format_file(conf, at, result_json, &text, e);
	if (r < 0)
		return r;
	if (strlen(text) > VALUE_SIZE_MAX)
		return err_text(e, -EFBIG,
				"cache file %s: too large: got %zu bytes, want at most %d", path,
				strlen(text), VALUE_SIZE_MAX);
	r = file_replace(AT_FDCWD, path, text, strlen(text), 0600, 0, e);
	if (r != -ENOENT)
		return r;
	r = file_mkdirs(AT_FDCWD, results, 0700, e);
	if (r < 0)
		return r;
	return file_replace(AT_FDCWD, path, text, strlen(text), 0600, 0, e);
}

/* ---- parsing -------------------------------------------------------------------- */

static int parse_args(const char *text, struct hw_map *ret_args, struct hw_err *e)
{
	AUTO(value_free) struct value *args = NULL;
	struct hw_map *map = ret_args;
	int r;

	if (!text)
		return 0;
	r = value_parse(text, strlen(text), &args, e);
	if (r < 0)
		return r;
	map->keys = mem_resize(NULL, value_count(args) + 1, sizeof(*map->keys));
	map->values = mem_resize(NULL, value_count(args) + 1, sizeof(*map->values));
	for (size_t i = 0; i < value_count(args); i++) {
		const char *key, *arg;

		key = value_string(value_at(value_at(args, i), 0));
		arg = value_string(value_at(value_at(args, i), 1));
		if (!key || !arg)
			return err_text(e, -EINVAL, "cniArgs[%zu] is not a pair of strings", i);
		map->keys[map->n] = str_copy(key);
		map->values[map->n++] = str_copy(arg);
	}
	return 0;
}

static int parse_config(const char *text, char **ret_config, struct hw_err *e)
{
	AUTO(buf_done) struct buf config = { 0 };

	if (!base64_decode(str_or(text, ""), &config))
		return err_text(e, -EINVAL, "config is not base64");
	if (config.len > 0 && memchr(config.data, '\0', config.len))
		return err_text(e, -EINVAL, "config contains a NUL byte");
	*ret_config = buf_take(&config);
	return 0;
}

static int check_object(const struct value *v, const char *key, struct hw_err *e)
{
	const struct value *member;

	member = value_find(v, key);
	if (!member || value_kind(member) == VALUE_OBJECT || value_kind(member) == VALUE_NULL)
		return 0;
	return err_text(e, -EINVAL, "%s: expected an object, got %s", key,
			value_kind_name(value_kind(member)));
}

/* Return: false for a file of an old libcni version, which contains only a result */
static bool has_cache_kind(const struct value *v)
{
	return str_equal(value_string(value_find(v, "kind")), CACHE_KIND);
}

/* Return: the sandbox of the interface in a result. It replaces the netns, which libcni before
 * version 1.2 did not write. */
static char *find_sandbox(const struct value *result, const char *ifname)
{
	const struct value *ifaces = value_find(result, "interfaces");

	for (size_t i = 0; i < value_count(ifaces); i++) {
		const struct value *iface = value_at(ifaces, i);
		const char *sandbox = value_string(value_find(iface, "sandbox"));

		if (!str_empty(sandbox) &&
		    str_equal(value_string(value_find(iface, "name")), ifname))
			return str_copy(sandbox);
	}
	return NULL;
}

static int decode_entry(const struct value *v, struct hw_cached *ret_entry, struct hw_err *e)
{
	AUTO(cache_entry_done) struct hw_cached entry = { 0 };
	struct cache_file file = { 0 };
	int r;

	r = check_object(v, "capabilityArgs", e);
	if (r < 0)
		return r;
	r = check_object(v, "result", e);
	if (r < 0)
		return r;
	r = field_decode(file_fields, v, &file, e);
	if (r < 0)
		return r;
	entry = file.entry;
	file.entry = (struct hw_cached){ 0 };
	r = parse_args(file.args, &entry.args, e);
	if (r == 0)
		r = parse_config(file.config, &entry.config, e);
	hw_field_clear(file_fields, &file);
	if (r < 0)
		return r;
	if (!entry.netns)
		entry.netns = find_sandbox(value_find(v, "result"), entry.ifname);
	*ret_entry = entry;
	entry = (struct hw_cached){ 0 };
	return 0;
}

int cache_entry_parse(const struct buf *text, const char *network, struct hw_cached *ret_entry,
		      struct hw_err *e)
{
	AUTO(value_free) struct value *v = NULL;
	int r;

	r = value_parse(text->data, text->len, &v, e);
	if (r == 0 && !has_cache_kind(v))
		return err_text(e, -EINVAL, "read cached network \"%s\" config has wrong kind: %s",
				network, str_or(value_string(value_find(v, "kind")), ""));
	if (r == 0)
		r = decode_entry(v, ret_entry, e);
	if (r < 0)
		return err_ctx(e, "failed to unmarshal cached network \"%s\" config", network);
	return 0;
}

/* Names may contain '-', so the attachments ("a", "b-c") and ("a-b", "c") share one file. It
 * contains the attachment that was written last. */
static bool is_entry_of(const struct hw_cached *entry, const char *network,
			const struct hw_attach *at)
{
	return str_equal(entry->network, network) &&
	       str_equal(entry->container_id, at->container_id) &&
	       str_equal(entry->ifname, at->ifname);
}

int cache_result_parse(const struct buf *text, const struct hw_conf *conf,
		       const struct hw_attach *at, struct hw_result **ret_result, struct hw_err *e)
{
	AUTO(value_free) struct value *v = NULL;
	AUTO(cache_entry_done) struct hw_cached entry = { 0 };
	AUTO(hw_result_free) struct hw_result *result = NULL;
	autofree char *json = NULL;
	int r;

	r = value_parse(text->data, text->len, &v, e);
	if (r < 0)
		return r;
	if (has_cache_kind(v)) {
		r = decode_entry(v, &entry, e);
		if (r < 0)
			return r;
		if (is_entry_of(&entry, conf->name, at))
			json = take_ptr(entry.result);
	} else {
		json = str_ncopy(text->data, text->len);
	}
	if (!json)
		return 0;
	r = hw_result_parse(json, strlen(json), NULL, &result, e);
	if (r < 0)
		return r;
	r = result_convert(result, conf->version, ret_result, e);
	if (r < 0)
		return err_ctx(e, "failed to convert cached result to config version \"%s\"",
			       conf->version);
	return 1;
}

/* ---- reading and removing one entry ---------------------------------------------- */

/* Return: 1 with the text, 0 if the file is missing or empty */
static int read_text(const char *path, struct buf *ret_text, struct hw_err *e)
{
	int r;

	r = file_read_if_exists(AT_FDCWD, path, VALUE_SIZE_MAX, ret_text, e);
	if (r <= 0)
		return r;
	return ret_text->len > 0;
}

int cache_read(const char *dir, const char *network, const struct hw_attach *at,
	       struct hw_cached *ret_entry, struct hw_err *e)
{
	AUTO(cache_entry_done) struct hw_cached entry = { 0 };
	AUTO(buf_done) struct buf text = { 0 };
	autofree char *path = NULL;
	int r;

	r = cache_path(dir, network, at, &path, e);
	if (r < 0)
		return r;
	r = read_text(path, &text, e);
	if (r <= 0)
		return r;
	r = cache_entry_parse(&text, network, &entry, e);
	if (r < 0)
		return err_ctx(e, "cache file %s", path);
	if (!is_entry_of(&entry, network, at))
		return 0;
	*ret_entry = entry;
	entry = (struct hw_cached){ 0 };
	return 1;
}

int cache_result(const char *dir, const struct hw_conf *conf, const struct hw_attach *at,
		 struct hw_result **ret_result, struct hw_err *e)
{
	AUTO(buf_done) struct buf text = { 0 };
	autofree char *path = NULL;
	int r;

	r = cache_path(dir, conf->name, at, &path, e);
	if (r < 0)
		return r;
	r = read_text(path, &text, e);
	if (r <= 0)
		return r;
	r = cache_result_parse(&text, conf, at, ret_result, e);
	if (r < 0)
		return err_ctx(e, "cache file %s", path);
	return r;
}

int cache_remove(const char *dir, const char *network, const struct hw_attach *at, struct hw_err *e)
{
	autofree char *path = NULL;
	int r;

	r = cache_path(dir, network, at, &path, e);
	if (r < 0)
		return r;
	r = file_remove(AT_FDCWD, path, e);
	if (r < 0)
		return err_ctx(e, "cache file %s", path);
	return 0;
}

int cache_sweep(const char *dir, struct hw_err *e)
{
	autofree char *results = results_dir(dir);
	int r;

	r = file_sweep(AT_FDCWD, results, e);
	return r < 0 ? err_ctx(e, "%s", results) : 0;
}

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

/* ---- listing --------------------------------------------------------------------- */

struct cache_listing {
	const char *results;
	const char *container_id; /* NULL: all containers */
	void (*damaged)(void *ctx, const char *file, const struct hw_err *why);
	void *ctx;
	struct hw_cached_list list;
};

static bool is_cache_file(const struct file_entry *file)
{
	return (file->type == DT_REG || file->type == DT_LNK) && !file_is_temporary(file->name);
}

/* Return: false if the file name (NETWORK-CONTAINER-IFNAME) cannot be of this container */
static bool may_be_of_container(const char *name, const char *container_id)
{
	autofree char *middle = NULL;
	const char *at;

	if (str_empty(container_id))
		return true;
	middle = str_printf("-%s-", container_id);
	at = strstr(name + 1, middle);
	return at && at[strlen(middle)] != '\0';
}

/* Return: 1 with the entry; 0 if the file no longer exists; negative if it is not a valid entry */
static int read_listed_file(const struct file_entry *file, struct hw_cached *ret_entry,
			    struct hw_err *e)
{
	AUTO(cache_entry_done) struct hw_cached entry = { 0 };
	AUTO(buf_done) struct buf text = { 0 };
	int r;

	r = file_read_if_exists(file->dir, file->name, VALUE_SIZE_MAX, &text, e);
	if (r <= 0)
		return r;
	if (text.len == 0)
		return err_text(e, -EINVAL, "file is empty, possibly after a power cut");
	r = cache_entry_parse(&text, file->name, &entry, e);
	if (r < 0)
		return r;
	if (str_empty(entry.ifname) || str_empty(entry.network) || str_empty(entry.container_id))
		return err_text(e, -EINVAL, "networkName, containerId or ifName is missing");
	*ret_entry = entry;
	entry = (struct hw_cached){ 0 };
	return 1;
}

static int list_file(void *ctx, const struct file_entry *file, struct hw_err *e)
{
	AUTO(cache_entry_done) struct hw_cached entry = { 0 };
	struct cache_listing *l = ctx;
	struct hw_cached_list *list = &l->list;
	struct hw_err why;
	int r;

	(void)e;
	if (!is_cache_file(file) || !may_be_of_container(file->name, l->container_id))
		return 0;
	r = read_listed_file(file, &entry, &why);
	if (r < 0 && l->damaged) {
		autofree char *path = str_printf("%s/%s", l->results, file->name);

		l->damaged(l->ctx, path, &why);
	}
	if (r <= 0)
		return 0;
	if (!str_empty(l->container_id) && !str_equal(entry.container_id, l->container_id))
		return 0;
	list->v = mem_resize(list->v, list->n + 1, sizeof(*list->v));
	list->v[list->n++] = entry;
	entry = (struct hw_cached){ 0 };
	return 0;
}

int hw_cached_attachments(const struct hw_cni *cni, const char *container_id,
			  void (*damaged)(void *ctx, const char *file, const struct hw_err *why),
			  void *ctx, struct hw_cached_list *ret_list, struct hw_err *e)
{
	autofree char *results = results_dir(cni->cache_dir);
	struct cache_listing l = { results, container_id, damaged, ctx, { 0 } };
	int r;

	r = file_walk(AT_FDCWD, results, list_file, &l, e);
	if (r < 0 && r != -ENOENT) {
		hw_cached_list_free(&l.list);
		return err_ctx(e, "list cached attachments");
	}
	*ret_list = l.list;
	return 0;
}

void hw_cached_list_free(struct hw_cached_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		cache_entry_done(&list->v[i]);
	free(list->v);
	*list = (struct hw_cached_list){ 0 };
}

/* ---- snapshots ------------------------------------------------------------------- */

struct cache_snapshot {
	int dir;	   /* -1: the directory did not exist */
	struct map *files; /* maps a file name to its struct stat */
};

static int snapshot_file(void *ctx, const struct file_entry *file, struct hw_err *e)
{
	struct cache_snapshot *snapshot = ctx;
	struct stat st;

	(void)e;
	if (!is_cache_file(file) || fstatat(file->dir, file->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	map_set(snapshot->files, file->name, mem_copy(&st, sizeof(st)));
	return 0;
}

int cache_snapshot(const char *dir, struct cache_snapshot **ret_snapshot, struct hw_err *e)
{
	AUTO(cache_snapshot_free) struct cache_snapshot *snapshot = mem_new(sizeof(*snapshot));
	autofree char *results = results_dir(dir);
	int r;

	snapshot->files = map_new(free);
	snapshot->dir = open(results, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (snapshot->dir < 0 && errno != ENOENT)
		return err_set(e, -errno, "open %s", results);
	if (snapshot->dir >= 0) {
		r = file_walk(snapshot->dir, ".", snapshot_file, snapshot, e);
		if (r < 0)
			return err_ctx(e, "%s", results);
	}
	*ret_snapshot = take_ptr(snapshot);
	return 0;
}

/* A file that was replaced has another inode number, or, if the number was reused, other times. */
bool cache_snapshot_has(const struct cache_snapshot *snapshot, const char *network,
			const struct hw_cached *entry)
{
	autofree char *name = NULL;
	const struct stat *then;
	struct hw_err e;
	struct stat now;

	if (file_name(network, entry->container_id, entry->ifname, &name, &e) < 0)
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

void cache_snapshot_free(struct cache_snapshot *snapshot)
{
	if (!snapshot)
		return;
	mem_close_fd(&snapshot->dir);
	map_free(snapshot->files);
	free(snapshot);
}
