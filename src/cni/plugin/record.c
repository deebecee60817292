/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/plugin/record.c - attachment records on disk
 *
 * What:  one small JSON file per (plugin, network, container, interface).
 * How:   names from outside are hashed into file names, so a record is found
 *        without a walk whatever the names contain; the record itself holds
 *        them in clear and is believed only when they are the right ones.
 * Rules: files 0600, directories 0700, in a place that only its owner writes to; atomic replacement without fsync: a
 *        power cut ends the attachments too.
 * Not:   when a record is written or stale is decided in attach.c.
 */
#include "cni/plugin/record.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/os/file.h"
#include "base/str.h"

#define NAME_DIGITS 32
#define RECORD_MAX  (8 << 20) /* a configuration, escaped */
#define BOOT_ID	    40

const struct hw_field record_fields[] = {
	{ "plugin", HW_STRING, HW_AT(struct record, plugin), HW_REQUIRED },
	{ "network", HW_STRING, HW_AT(struct record, network), HW_REQUIRED },
	{ "containerID", HW_STRING, HW_AT(struct record, container_id), HW_REQUIRED },
	{ "ifname", HW_STRING, HW_AT(struct record, ifname), HW_REQUIRED },
	{ "netns", HW_STRING, HW_AT(struct record, netns) },
	{ "netnsID", HW_STRING, HW_AT(struct record, netns_id) },
	{ "netnsOverride", HW_BOOL, HW_AT(struct record, netns_override) },
	{ "args", HW_STRING, HW_AT(struct record, args) },
	{ "config", HW_JSON, HW_AT(struct record, config), HW_REQUIRED },
	{ "made", HW_JSON, HW_AT(struct record, made) },
	{ "boot", HW_STRING, HW_AT(struct record, boot) },
	{ "started", HW_INT64, HW_AT(struct record, started) },
	{ "finished", HW_INT64, HW_AT(struct record, finished) },
	{ "earlier", HW_INT64, HW_AT(struct record, earlier) },
	{ 0 },
};

/**
 * record_check_dir() - may what is found under @state_dir be believed?
 *
 * Return: 0, also when there is no such directory yet; -EPERM when it is, or can be written by,
 * somebody else's
 */
int record_check_dir(const char *state_dir, struct hw_err *e)
{
	struct stat st;

	if (stat(state_dir, &st) < 0 || !S_ISDIR(st.st_mode))
		return 0; /* whoever uses it says why not */
	if ((st.st_uid == 0 || st.st_uid == geteuid()) && !(st.st_mode & S_IWOTH))
		return 0;
	return err_text(
		e, -EPERM,
		"%s holds attachment records and can be written by others: set HAWSER_STATE "
		"to a directory of our own",
		state_dir);
}

static char boot_id[BOOT_ID];

static void read_boot_id(void)
{
	AUTO(buf_done) struct buf b = { 0 };
	struct hw_err e;

	if (file_read(AT_FDCWD, "/proc/sys/kernel/random/boot_id", 4096, &b, &e) < 0 || !b.len)
		return;
	size_t len = strcspn(b.data, "\n");
	if (len < sizeof(boot_id))
		memcpy(boot_id, b.data, len);
}

/**
 * record_boot_id() - which boot of the kernel this is
 */
const char *record_boot_id(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, read_boot_id);
	return boot_id;
}

static char *network_dir(const char *state_dir, const char *plugin, const char *network)
{
	char hex[NAME_DIGITS + 1];

	hash_parts(&network, 1, NAME_DIGITS, hex);
	return str_printf("%s/attachments/%s/%s", state_dir, plugin, hex);
}

static char *record_path(const char *dir, const char *container_id, const char *ifname)
{
	const char *parts[] = { container_id, ifname };
	char hex[NAME_DIGITS + 1];

	hash_parts(parts, 2, NAME_DIGITS, hex);
	return str_printf("%s/%s", dir, hex);
}

/**
 * record_write() - write a record down, replacing an older one
 */
int record_write(const char *state_dir, const struct record *r, struct hw_err *e)
{
	autofree char *dir = network_dir(state_dir, r->plugin, r->network);
	autofree char *path = record_path(dir, r->container_id, r->ifname);
	autofree char *json = hw_field_encode(record_fields, r, 0);

	int ret = file_replace(AT_FDCWD, path, json, strlen(json), 0600, 0, e);
	if (ret == -ENOENT) {
		ret = file_mkdirs(AT_FDCWD, dir, 0700, e);
		if (ret >= 0)
			ret = file_replace(AT_FDCWD, path, json, strlen(json), 0600, 0, e);
	}
	if (ret < 0)
		return err_ctx(e, "write the attachment record");
	return 0;
}

/* Return: 1 with the record, 0 when the file is missing or is not a whole record */
static int read_file(int dir, const char *path, struct record *ret, struct hw_err *e)
{
	AUTO(buf_done) struct buf b = { 0 };

	int r = file_read(dir, path, RECORD_MAX, &b, e);
	if (r == -ENOENT || r == -EFBIG)
		return 0;
	if (r < 0)
		return r;
	struct hw_err torn;
	return hw_field_decode(record_fields, str_or(b.data, ""), b.len, ret, &torn) < 0 ? 0 : 1;
}

/**
 * record_read() - the record of one attachment
 *
 * Return: 1 with a record, 0 when there is none or the file is torn
 */
int record_read(const char *state_dir, const char *plugin, const char *network,
		const char *container_id, const char *ifname, struct record *ret_record,
		struct hw_err *e)
{
	autofree char *dir = network_dir(state_dir, plugin, network);
	autofree char *path = record_path(dir, container_id, ifname);
	struct record found;

	int r = read_file(AT_FDCWD, path, &found, e);
	if (r < 0)
		return err_ctx(e, "read the attachment record");
	if (r == 0)
		return 0;
	if (!str_equal(found.plugin, plugin) || !str_equal(found.network, network) ||
	    !str_equal(found.container_id, container_id) || !str_equal(found.ifname, ifname)) {
		record_done(&found);
		return 0;
	}
	*ret_record = found;
	return 1;
}

/**
 * record_remove() - forget an attachment; succeeds when there is no record
 */
int record_remove(const char *state_dir, const char *plugin, const char *network,
		  const char *container_id, const char *ifname, struct hw_err *e)
{
	autofree char *dir = network_dir(state_dir, plugin, network);
	autofree char *path = record_path(dir, container_id, ifname);

	if (file_remove(AT_FDCWD, path, e) < 0)
		return err_ctx(e, "remove the attachment record");
	return 0;
}

struct elsewhere {
	char network[NAME_DIGITS + 1], attachment[NAME_DIGITS + 1];
};

static int look_in_network(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	const struct elsewhere *w = ctx;
	autofree char *path = str_printf("%s/%s", entry->name, w->attachment);

	(void)e;
	return !str_equal(entry->name, w->network) && faccessat(entry->dir, path, F_OK, 0) == 0;
}

static int look_in_plugin(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	return file_walk(entry->dir, entry->name, look_in_network, ctx, e) > 0;
}

/**
 * record_is_elsewhere() - has an attachment to another network that interface of the container?
 */
bool record_is_elsewhere(const char *state_dir, const char *network, const char *container_id,
			 const char *ifname)
{
	autofree char *dir = str_printf("%s/attachments", state_dir);
	const char *parts[] = { container_id, ifname };
	struct elsewhere w;
	struct hw_err none;

	hash_parts(&network, 1, NAME_DIGITS, w.network);
	hash_parts(parts, 2, NAME_DIGITS, w.attachment);
	return file_walk(AT_FDCWD, dir, look_in_plugin, &w, &none) > 0;
}

struct each {
	bool prune;
	int (*call)(void *ctx, const struct record *r, struct hw_err *e);
	void *ctx;
	struct errors *errors;
};

static int each_file(const struct file_entry *entry, const struct each *each, struct hw_err *e)
{
	AUTO(record_done) struct record record = { 0 };
	int r = 0;

	if (!file_is_temporary(entry->name))
		r = read_file(entry->dir, entry->name, &record, e);
	if (r > 0)
		return each->call(each->ctx, &record, e);
	if (r == 0 && each->prune)
		return file_remove(entry->dir, entry->name, e);
	return r;
}

/* Return: 1 when the callback has seen enough */
static int each_until(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	const struct each *each = ctx;

	int r = each_file(entry, each, e);
	if (r < 0)
		errors_add(each->errors, e);
	return r > 0;
}

static int each_entry(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	each_until(ctx, entry, e);
	return 0;
}

/**
 * record_each() - call back for each record of a plugin's network
 * @prune:  remove files that are no record
 * @errors: those that there were; none of them ends the walk
 */
void record_each(const char *state_dir, const char *plugin, const char *network, bool prune,
		 int (*each)(void *ctx, const struct record *r, struct hw_err *e), void *ctx,
		 struct errors *errors)
{
	autofree char *dir = network_dir(state_dir, plugin, network);
	struct each walk = { .prune = prune, .call = each, .ctx = ctx, .errors = errors };
	struct hw_err e;

	int r = file_walk(AT_FDCWD, dir, each_entry, &walk, &e);
	if (r >= 0 || r == -ENOENT)
		return;
	err_ctx(&e, "read the attachment records");
	errors_add(errors, &e);
}

/* A directory of a network */
static int each_network(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	int r = 0;

	if (entry->type == DT_DIR)
		r = file_walk(entry->dir, entry->name, each_until, ctx, e);
	if (r < 0)
		errors_add(((const struct each *)ctx)->errors, e);
	return r > 0;
}

/**
 * record_each_of() - call back for each record of a plugin, whatever its network
 * @each: a positive answer ends the walk
 */
void record_each_of(const char *state_dir, const char *plugin,
		    int (*each)(void *ctx, const struct record *r, struct hw_err *e), void *ctx,
		    struct errors *errors)
{
	autofree char *dir = str_printf("%s/attachments/%s", state_dir, plugin);
	struct each walk = { .call = each, .ctx = ctx, .errors = errors };
	struct hw_err e;

	int r = file_walk(AT_FDCWD, dir, each_network, &walk, &e);
	if (r >= 0 || r == -ENOENT)
		return;
	err_ctx(&e, "read the attachment records");
	errors_add(errors, &e);
}

/**
 * record_done() - free what a record holds
 */
void record_done(struct record *r)
{
	hw_field_clear(record_fields, r);
}
