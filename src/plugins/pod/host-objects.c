/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/pod/host-objects.c - notes about host objects: objects created once per host
 *
 * How:   each note is a small file in STATE/host-objects, for one link, or for
 *        rules in an iptables chain. The file name is a hash of the object's name.
 *        STATE is below /run, so a reboot removes the notes together with the
 *        objects. A lock excludes processes that create links from each other.
 * Rules: a link is removed only if it has the kind and the index in the note; a
 *        bridge only if it also has no ports. Notes of version 0.1.0 have the MAC
 *        address instead of the index.
 */
#include "plugins/pod/host-objects.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <hawser/field.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/os/file.h"
#include "base/str.h"
#include "base/time.h"
#include "cni/lock.h"
#include "net/rtnl/link.h"
#include "net/rtnl/rtnl.h"

#define NOTE_MAX    4096
#define NAME_DIGITS 32

struct host_object {
	char *kind;
	char *name;
	int index;   /* of a link; 0: unfinished, or not a link */
	bool is_old; /* version 0.1.0 wrote the note */
	char *mac;   /* of a link, in notes of 0.1.0; "": any */
};

static const struct hw_field entry_fields[] = {
	{ "kind", HW_STRING, HW_AT(struct host_object, kind), HW_REQUIRED },
	{ "name", HW_STRING, HW_AT(struct host_object, name), HW_REQUIRED },
	{ "index", HW_INT, HW_AT(struct host_object, index) },
	{ "mac", HW_STRING, HW_AT(struct host_object, mac),
	  .has = HW_HAS(struct host_object, is_old) },
	{ 0 },
};

static void host_object_done(struct host_object *note)
{
	hw_field_clear(entry_fields, note);
}
AUTO_VALUE_DEFINE(host_object_done, struct host_object);

/* ---- write ------------------------------------------------------------------------------ */

static char *format_path(const char *name)
{
	autofree char *state = state_dir_default();
	char hex[NAME_DIGITS + 1];

	hash_hex(name, NAME_DIGITS, hex);
	return str_printf("%s/host-objects/%s", state, hex);
}

static int write_note(const struct host_object *note, struct hw_err *e)
{
	autofree char *json = hw_field_encode(entry_fields, note, 0);
	autofree char *path = format_path(note->name);
	autofree char *dir = str_ncopy(path, (size_t)(strrchr(path, '/') - path));
	int r;

	r = file_mkdirs(AT_FDCWD, dir, 0700, e);
	if (r >= 0)
		r = file_replace(AT_FDCWD, path, json, strlen(json), 0600, 0, e);
	return r < 0 ? err_ctx(e, "write note about %s %s", note->kind, note->name) : 0;
}

int host_object_record(const char *kind, const char *name, struct hw_err *e)
{
	struct host_object note = { .kind = (char *)kind, .name = (char *)name };

	return write_note(&note, e);
}

/* Return: 1 if there is a note and it is well-formed, 0 if not, or a negative errno */
static int read_note(int dir, const char *path, struct host_object *ret_note, struct hw_err *e)
{
	AUTO(buf_done) struct buf b = { 0 };
	struct hw_err malformed;
	int r;

	r = file_read_if_exists(dir, path, NOTE_MAX, &b, e);
	if (r <= 0)
		return r;
	return hw_field_decode(entry_fields, str_or(b.data, ""), b.len, ret_note, &malformed) >= 0;
}

/* ---- create links ------------------------------------------------------------------------- */

/* Is this the link in the note? A link with the same name may have been created by another program after
 * ours was deleted, or could not be created. */
static bool is_noted(const struct link *link, const struct host_object *note)
{
	char mac[HW_MAC_TEXT];

	if (!str_equal(link->kind, note->kind))
		return false;
	if (note->is_old)
		return str_empty(note->mac) || str_equal(hw_mac_format(&link->mac, mac), note->mac);
	return note->index ? link->index == note->index : !(link->flags & IFF_UP);
}

/* Finishes the note about a link whose ADD was killed. */
static int finish_note(const struct link *link, struct hw_err *e)
{
	AUTO(host_object_done) struct host_object note = { 0 };
	autofree char *path = format_path(link->name);
	int r;

	r = read_note(AT_FDCWD, path, &note, e);
	if (r <= 0 || note.index || !is_noted(link, &note))
		return r < 0 ? r : 0;
	note.index = link->index;
	return write_note(&note, e);
}

static int create_link(struct rtnl *nl, const struct link_new *new, struct link *ret_link,
		       struct hw_err *e)
{
	struct host_object note = { .kind = (char *)new->kind, .name = (char *)new->name };
	autofree char *path = format_path(new->name);
	struct hw_err ignored;
	int r;

	r = write_note(&note, e);
	if (r < 0)
		return r;
	link_put_new(nl, new);
	r = rtnl_commit(nl, e);
	if (r < 0) {
		(void)file_remove(AT_FDCWD, path, &ignored);
		return r == -EEXIST ? link_get(nl, new->name, ret_link, e) : r;
	}
	r = link_get(nl, new->name, ret_link, e);
	if (r < 0)
		return r;
	note.index = ret_link->index;
	r = write_note(&note, e);
	return r < 0 ? r : 1;
}

int host_object_create_link(struct rtnl *nl, const struct link_new *new, struct link *ret_link,
			    struct hw_err *e)
{
	autofree char *state = state_dir_default();
	autoclose int lock = -1;
	int r;

	r = lock_file(state, "host-objects", true, time_deadline(LOCK_TIMEOUT_MS), &lock, e);
	if (r < 0)
		return err_ctx(e, "lock the notes about host objects");
	r = link_find(nl, new->name, ret_link, e);
	if (r > 0)
		return finish_note(ret_link, e);
	return r < 0 ? r : create_link(nl, new, ret_link, e);
}

/* ---- remove -------------------------------------------------------------------------------- */

static int count_port(void *ctx, const struct nlmsghdr *answer, struct hw_err *e)
{
	(void)answer;
	(void)e;
	++*(unsigned *)ctx;
	return 0;
}

/* Return: 1 if removed, 0 if the link no longer exists or differs from the note */
static int remove_link(struct rtnl *nl, const struct host_object *note, struct hw_err *e)
{
	struct ifinfomsg head = { 0 };
	unsigned ports = 0;
	struct link link;
	int r;

	r = link_find(nl, note->name, &link, e);
	if (r <= 0 || !is_noted(&link, note))
		return r < 0 ? r : 0;
	if (str_equal(note->kind, "bridge")) {
		struct nlmsghdr *m = rtnl_put(nl, RTM_GETLINK, NLM_F_DUMP, &head, sizeof(head),
					      "list the ports of %s", link.name);

		mnl_attr_put_u32(m, IFLA_MASTER, (uint32_t)link.index);
		r = rtnl_query(nl, count_port, &ports, e);
		if (r < 0)
			return r;
		if (ports)
			return err_text(e, -EBUSY, "bridge %s still has ports", note->name);
	}
	r = link_delete_sync(nl, note->name, e);
	return r < 0 ? r : 1;
}

struct removal_walk {
	struct rtnl *nl;
	const char *kind; /* kind of objects to remove in this walk */
	int (*remove)(const char *name, struct hw_err *e); /* NULL: they are links */
	int removed;
	int failed;	  /* the first error; 0: none */
	struct hw_err *e; /* details of the first error */
};

static int remove_noted(struct removal_walk *w, const struct file_entry *entry, struct hw_err *e)
{
	AUTO(host_object_done) struct host_object note = { 0 };
	int r;

	r = read_note(entry->dir, entry->name, &note, e);
	if (r <= 0)
		return r < 0 ? r : file_remove(entry->dir, entry->name, e);
	if (!str_equal(note.kind, w->kind))
		return 0;
	r = w->remove ? w->remove(note.name, e) : remove_link(w->nl, &note, e);
	if (r > 0) {
		printf("%s %s removed\n", note.kind, note.name);
		w->removed++;
	}
	return r < 0 ? r : file_remove(entry->dir, entry->name, e);
}

/* Stores the first error, and continues with the remaining notes. */
static int remove_each(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	struct removal_walk *w = ctx;
	int r;

	r = remove_noted(w, entry, e);
	if (r < 0 && w->failed == 0) {
		w->failed = r;
		*w->e = *e;
	}
	return 0;
}

static int remove_unused_lock(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	autoclose int fd = -1;
	struct hw_err busy;

	(void)ctx;
	if (file_lock(entry->dir, entry->name, true, time_now(), &fd, &busy) < 0)
		return 0;
	return file_remove(entry->dir, entry->name, e);
}

/* Removes empty directories, the deepest first. */
static int remove_empty(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	if (entry->type != DT_DIR)
		return 0;
	(void)file_walk(entry->dir, entry->name, remove_empty, ctx, e);
	(void)unlinkat(entry->dir, entry->name, AT_REMOVEDIR);
	return 0;
}

static void remove_kind(struct removal_walk *w, const char *state, const char *kind,
			int (*remove)(const char *name, struct hw_err *e))
{
	/* version 0.1.0 wrote its notes to "furniture" */
	static const char *const dirs[] = { "host-objects", "furniture" };
	struct hw_err ignored;

	w->kind = kind;
	w->remove = remove;
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
		autofree char *dir = str_printf("%s/%s", state, dirs[i]);

		(void)file_walk(AT_FDCWD, dir, remove_each, w, &ignored);
	}
}

int host_objects_remove(const struct host_object_kind *kinds, struct hw_err *e)
{
	int r;

	static const char *const state_dirs[] = { "host-objects", "furniture", "locks",
						  "attachments" };
	autofree char *state = state_dir_default();
	AUTO(rtnl_close) struct rtnl *nl = NULL;
	struct hw_err ignored;

	r = rtnl_open(-1, &nl, e);
	if (r < 0)
		return r;
	struct removal_walk w = { .nl = nl, .e = e };
	/* veths first: they may be ports of a bridge */
	remove_kind(&w, state, "veth", NULL);
	remove_kind(&w, state, "bridge", NULL);
	for (; kinds->kind; kinds++)
		remove_kind(&w, state, kinds->kind, kinds->remove);
	if (w.failed < 0)
		return w.failed;

	for (size_t i = 0; i < ARRAY_SIZE(state_dirs); i++) {
		autofree char *dir = str_printf("%s/%s", state, state_dirs[i]);

		if (str_equal(state_dirs[i], "locks"))
			(void)file_walk(AT_FDCWD, dir, remove_unused_lock, NULL, &ignored);
		(void)file_walk(AT_FDCWD, dir, remove_empty, NULL, &ignored);
		(void)rmdir(dir);
	}
	(void)rmdir(state);
	return w.removed;
}
