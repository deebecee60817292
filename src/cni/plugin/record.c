/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/plugin/record.c - attachment records on disk
 *
 * What:  one small JSON file per plugin, network, container and interface.
 * How:   a file name is a hash of the names, because those may contain any
 *        character. A record is found by its file name, without a search. It
 *        also contains the names; if they are not the wanted ones, the record
 *        is ignored.
 * Rules: files have mode 0600, directories 0700. Records are replaced
 *        atomically, without fsync: attachments do not survive a power cut.
 * Not:   attach.c decides when a record is written and when it is stale.
 */
#include "cni/plugin/record.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/os/file.h"
#include "base/str.h"

#define NAME_DIGITS 32
#define RECORD_MAX  (8 << 20) /* enough for the largest configuration, with escapes */

const struct hw_field record_fields[] = {
	{ "plugin", HW_STRING, HW_AT(struct record, plugin), HW_REQUIRED },
	{ "network", HW_STRING, HW_AT(struct record, network), HW_REQUIRED },
	{ "containerID", HW_STRING, HW_AT(struct record, container_id), HW_REQUIRED },
	{ "ifname", HW_STRING, HW_AT(struct record, ifname), HW_REQUIRED },
	{ "entry", HW_STRING, HW_AT(struct record, entry) },
	{ "configHash", HW_STRING, HW_AT(struct record, config_hash) },
	{ "netns", HW_STRING, HW_AT(struct record, netns) },
	{ "netnsID", HW_STRING, HW_AT(struct record, netns_id) },
	{ "netnsCookie", HW_INT64, HW_AT(struct record, netns_cookie) },
	{ "netnsOverride", HW_BOOL, HW_AT(struct record, netns_override) },
	{ "args", HW_STRING, HW_AT(struct record, args) },
	{ "config", HW_JSON, HW_AT(struct record, config), HW_REQUIRED },
	{ "made", HW_JSON, HW_AT(struct record, created) },
	{ "boot", HW_STRING, HW_AT(struct record, boot) },
	{ "started", HW_INT64, HW_AT(struct record, started) },
	{ "finished", HW_INT64, HW_AT(struct record, finished) },
	{ 0 },
};

int record_check_dir(const char *state_dir, struct hw_err *e)
{
	struct stat st;

	if (stat(state_dir, &st) < 0 || !S_ISDIR(st.st_mode))
		return 0; /* the next access to the directory gives a better error */
	if ((st.st_uid == 0 || st.st_uid == geteuid()) && !(st.st_mode & S_IWOTH))
		return 0;
	return err_text(e, -EPERM,
			"%s contains attachment records but is writable by other users: set "
			"HAWSER_STATE to a private directory",
			state_dir);
}

static char *network_dir(const char *state_dir, const char *plugin, const char *network)
{
	char hex[NAME_DIGITS + 1];

	hash_parts(&network, 1, NAME_DIGITS, hex);
	return str_printf("%s/attachments/%s/%s", state_dir, plugin, hex);
}

static char *record_path(const char *dir, const char *container_id, const char *ifname,
			 const char *entry)
{
	const char *parts[] = { container_id, ifname, entry };
	char hex[NAME_DIGITS + 1];

	hash_parts(parts, str_empty(entry) ? 2 : 3, NAME_DIGITS, hex);
	return str_printf("%s/%s", dir, hex);
}

int record_write(const char *state_dir, const struct record *r, struct hw_err *e)
{
	autofree char *dir = network_dir(state_dir, r->plugin, r->network);
	autofree char *path = record_path(dir, r->container_id, r->ifname, r->entry);
	autofree char *json = hw_field_encode(record_fields, r, 0);
	int ret;

	ret = file_replace(AT_FDCWD, path, json, strlen(json), 0600, 0, e);
	if (ret == -ENOENT) {
		ret = file_mkdirs(AT_FDCWD, dir, 0700, e);
		if (ret >= 0)
			ret = file_replace(AT_FDCWD, path, json, strlen(json), 0600, 0, e);
	}
	if (ret < 0)
		return err_ctx(e, "write attachment record");
	return 0;
}

/* Return: 1 with the record; 0 if the file is missing or not a valid record; or a negative errno */
static int read_file(int dir, const char *path, struct record *ret, struct hw_err *e)
{
	AUTO(buf_done) struct buf b = { 0 };
	int r;

	r = file_read_if_exists(dir, path, RECORD_MAX, &b, e);
	if (r == -EFBIG)
		return 0;
	if (r <= 0)
		return r;
	struct hw_err invalid;
	return hw_field_decode(record_fields, str_or(b.data, ""), b.len, ret, &invalid) < 0 ? 0 : 1;
}

int record_read(const char *state_dir, const char *plugin, const char *network,
		const char *container_id, const char *ifname, const char *entry,
		struct record *ret_record, struct hw_err *e)
{
	autofree char *dir = network_dir(state_dir, plugin, network);
	autofree char *path = record_path(dir, container_id, ifname, entry);
	struct record found;
	int r;

	r = read_file(AT_FDCWD, path, &found, e);
	if (r < 0)
		return err_ctx(e, "read attachment record");
	if (r == 0)
		return 0;
	if (!str_equal(found.plugin, plugin) || !str_equal(found.network, network) ||
	    !str_equal(found.container_id, container_id) || !str_equal(found.ifname, ifname) ||
	    !str_equal(str_or(found.entry, ""), str_or(entry, ""))) {
		record_done(&found);
		return 0;
	}
	*ret_record = found;
	return 1;
}

int record_remove(const char *state_dir, const char *plugin, const char *network,
		  const char *container_id, const char *ifname, const char *entry, struct hw_err *e)
{
	autofree char *dir = network_dir(state_dir, plugin, network);
	autofree char *path = record_path(dir, container_id, ifname, entry);

	if (file_remove(AT_FDCWD, path, e) < 0)
		return err_ctx(e, "remove attachment record");
	return 0;
}

/* ---- search in other networks --------------------------------------------------- */

struct record_search {
	const char *plugin; /* NULL: any */
	char network[NAME_DIGITS + 1], attachment[NAME_DIGITS + 1];
};

static int search_network_dir(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	const struct record_search *search = ctx;
	autofree char *path = str_printf("%s/%s", entry->name, search->attachment);

	(void)e;
	return !str_equal(entry->name, search->network) &&
	       faccessat(entry->dir, path, F_OK, 0) == 0;
}

static int search_plugin_dir(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	const struct record_search *search = ctx;

	if (search->plugin && !str_equal(search->plugin, entry->name))
		return 0;
	return file_walk(entry->dir, entry->name, search_network_dir, ctx, e) > 0;
}

bool record_in_other_network(const char *state_dir, const char *plugin, const char *network,
			     const char *container_id, const char *ifname)
{
	autofree char *dir = str_printf("%s/attachments", state_dir);
	const char *parts[] = { container_id, ifname };
	struct record_search search = { .plugin = plugin };
	struct hw_err ignored;

	hash_parts(&network, 1, NAME_DIGITS, search.network);
	hash_parts(parts, 2, NAME_DIGITS, search.attachment);
	return file_walk(AT_FDCWD, dir, search_plugin_dir, &search, &ignored) > 0;
}

/* ---- all records ---------------------------------------------------------------- */

struct record_walk {
	bool prune;
	int (*each)(void *ctx, const struct record *r, struct hw_err *e);
	void *ctx;
	struct errors *errors;
};

/* Return: 1 if the callback returned a positive value, which ends the walk */
static int visit_until_stopped(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	AUTO(record_done) struct record record = { 0 };
	const struct record_walk *walk = ctx;
	int r = 0;

	if (!file_is_temporary(entry->name))
		r = read_file(entry->dir, entry->name, &record, e);
	if (r > 0)
		r = walk->each(walk->ctx, &record, e);
	else if (r == 0 && walk->prune)
		r = file_remove(entry->dir, entry->name, e);
	if (r < 0)
		errors_add(walk->errors, e);
	return r > 0;
}

static int visit_all(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	visit_until_stopped(ctx, entry, e);
	return 0;
}

static int visit_network_dir(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	const struct record_walk *walk = ctx;
	int r = 0;

	if (entry->type == DT_DIR)
		r = file_walk(entry->dir, entry->name, visit_until_stopped, ctx, e);
	if (r < 0)
		errors_add(walk->errors, e);
	return r > 0;
}

static void walk_dir(const char *dir,
		     int (*visit)(void *ctx, const struct file_entry *entry, struct hw_err *e),
		     struct record_walk *walk)
{
	struct hw_err e;
	int r;

	r = file_walk(AT_FDCWD, dir, visit, walk, &e);
	if (r >= 0 || r == -ENOENT)
		return;
	err_ctx(&e, "read attachment records");
	errors_add(walk->errors, &e);
}

void record_each_of_network(const char *state_dir, const char *plugin, const char *network,
			    bool prune,
			    int (*each)(void *ctx, const struct record *r, struct hw_err *e),
			    void *ctx, struct errors *errors)
{
	autofree char *dir = network_dir(state_dir, plugin, network);
	struct record_walk walk = { .prune = prune, .each = each, .ctx = ctx, .errors = errors };

	walk_dir(dir, visit_all, &walk);
}

void record_each_of_plugin(const char *state_dir, const char *plugin,
			   int (*each)(void *ctx, const struct record *r, struct hw_err *e),
			   void *ctx, struct errors *errors)
{
	autofree char *dir = str_printf("%s/attachments/%s", state_dir, plugin);
	struct record_walk walk = { .each = each, .ctx = ctx, .errors = errors };

	walk_dir(dir, visit_network_dir, &walk);
}

void record_done(struct record *r)
{
	hw_field_clear(record_fields, r);
}
