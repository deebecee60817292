/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/pod/furniture.c - what is made once per host and stays
 *
 * How:   one small file per link, or pair of rules in a chain of iptables, in
 *        STATE/furniture, named by a hash of the name. /run is empty after a boot,
 *        and so is the kernel.
 * Rules: a link is removed only while it is of the kind that was noted, and has
 *        the hardware address; a bridge only when nothing is connected to it.
 */
#include "plugins/pod/furniture.h"

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

struct note {
	char *kind;
	char *name;
	char *mac; /* "": any */
};

static const struct hw_field note_fields[] = {
	{ "kind", HW_STRING, HW_AT(struct note, kind), HW_REQUIRED },
	{ "name", HW_STRING, HW_AT(struct note, name), HW_REQUIRED },
	{ "mac", HW_STRING, HW_AT(struct note, mac) },
	{ 0 },
};

static void note_done(struct note *note)
{
	hw_field_clear(note_fields, note);
}
AUTO_VALUE_DEFINE(note_done, struct note);

/**
 * furniture_note() - write down what is about to be made
 */
int furniture_note(const char *kind, const char *name, const struct hw_mac *mac, struct hw_err *e)
{
	char mac_text[HW_MAC_TEXT] = "";

	if (mac)
		hw_mac_format(mac, mac_text);
	struct note note = { (char *)kind, (char *)name, mac_text };
	autofree char *json = hw_field_encode(note_fields, &note, 0);
	autofree char *state = lock_state_dir();
	autofree char *dir = str_printf("%s/furniture", state);
	char hex[NAME_DIGITS + 1];

	hash_hex(name, NAME_DIGITS, hex);
	autofree char *path = str_printf("%s/%s", dir, hex);
	int r = file_mkdirs(AT_FDCWD, dir, 0700, e);
	if (r >= 0)
		r = file_replace(AT_FDCWD, path, json, strlen(json), 0600, 0, e);
	return r < 0 ? err_ctx(e, "note the %s %s", kind, name) : 0;
}

static int count_port(void *ctx, const struct nlmsghdr *answer, struct hw_err *e)
{
	(void)answer;
	(void)e;
	++*(unsigned *)ctx;
	return 0;
}

static int has_ports(struct rtnl *nl, const struct link *bridge, struct hw_err *e)
{
	struct ifinfomsg head = { 0 };
	unsigned ports = 0;
	struct nlmsghdr *m = rtnl_put(nl, RTM_GETLINK, NLM_F_DUMP, &head, sizeof(head),
				      "list the ports of %s", bridge->name);

	mnl_attr_put_u32(m, IFLA_MASTER, (uint32_t)bridge->index);
	int r = rtnl_query(nl, count_port, &ports, e);
	return r < 0 ? r : ports > 0;
}

/* Is it what was noted, or did somebody make another one of the name since? */
static bool is_noted(const struct link *link, const struct note *note)
{
	char mac[HW_MAC_TEXT];

	return str_equal(link->kind, note->kind) &&
	       (str_empty(note->mac) || str_equal(hw_mac_format(&link->mac, mac), note->mac));
}

/* Return: 1 when it was removed, 0 when it is not there any more or is somebody else's */
static int remove_link(struct rtnl *nl, const struct note *note, struct hw_err *e)
{
	struct link link;

	int r = link_get(nl, note->name, &link, e);
	if (r == -ENODEV || (r >= 0 && !is_noted(&link, note)))
		return 0;
	if (r >= 0 && str_equal(note->kind, "bridge"))
		r = has_ports(nl, &link, e);
	if (r > 0)
		return err_text(e, -EBUSY, "bridge %s still has ports", note->name);
	if (r >= 0)
		r = link_delete_now(nl, note->name, e);
	return r < 0 ? r : 1;
}

struct removal {
	struct rtnl *nl;
	int (*remove_rules)(const char *name, struct hw_err *e);
	const char *kind; /* only these now */
	int removed;
	int first; /* error */
	struct hw_err *e;
};

static int remove_one(struct removal *removal, const struct file_entry *entry, struct hw_err *e)
{
	AUTO(note_done) struct note note = { 0 };
	AUTO(buf_done) struct buf b = { 0 };
	struct hw_err torn;

	int r = file_read(entry->dir, entry->name, NOTE_MAX, &b, e);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	if (hw_field_decode(note_fields, str_or(b.data, ""), b.len, &note, &torn) < 0)
		return file_remove(entry->dir, entry->name, e);
	if (!str_equal(note.kind, removal->kind))
		return 0;
	r = str_equal(note.kind, FURNITURE_IPTABLES) ? removal->remove_rules(note.name, e)
						     : remove_link(removal->nl, &note, e);
	if (r > 0) {
		printf("%s %s removed\n", note.kind, note.name);
		removal->removed++;
	}
	return r < 0 ? r : file_remove(entry->dir, entry->name, e);
}

/* What cannot be removed does not keep the rest. */
static int remove_noted(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	struct removal *removal = ctx;

	int r = remove_one(removal, entry, e);
	if (r < 0 && removal->first == 0) {
		removal->first = r;
		*removal->e = *e;
	}
	return 0;
}

/* Remove a lock that nobody holds. */
static int remove_lock(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	autoclose int fd = -1;
	struct hw_err busy;

	(void)ctx;
	if (file_lock(entry->dir, entry->name, true, time_now(), &fd, &busy) < 0)
		return 0;
	return file_remove(entry->dir, entry->name, e);
}

/* rmdir below attachments/: PLUGIN/NETWORK, as far as empty */
static int remove_empty(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	if (entry->type != DT_DIR)
		return 0;
	(void)file_walk(entry->dir, entry->name, remove_empty, ctx, e);
	(void)unlinkat(entry->dir, entry->name, AT_REMOVEDIR);
	return 0;
}

static void remove_state(const char *state)
{
	static const char *const dirs[] = { "furniture", "locks", "attachments" };
	struct hw_err ignored;

	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
		autofree char *dir = str_printf("%s/%s", state, dirs[i]);

		if (i == 1)
			(void)file_walk(AT_FDCWD, dir, remove_lock, NULL, &ignored);
		(void)file_walk(AT_FDCWD, dir, remove_empty, NULL, &ignored);
		(void)rmdir(dir);
	}
	(void)rmdir(state);
}

/**
 * furniture_remove() - remove the links that were noted, and empty directories of ours
 *
 * Return: how many there were, or a negative errno; -EBUSY when a bridge has ports, which then stays
 */
int furniture_remove(int (*remove_rules)(const char *name, struct hw_err *e), struct hw_err *e)
{
	/* a veth may be a bridge's port */
	static const char *const order[] = { "veth", "bridge", FURNITURE_IPTABLES };
	autofree char *state = lock_state_dir();
	autofree char *dir = str_printf("%s/furniture", state);
	AUTO(rtnl_close) struct rtnl *nl = NULL;
	struct hw_err why;

	int r = rtnl_open(-1, &nl, e);
	struct removal removal = { .nl = nl, .remove_rules = remove_rules, .e = e };
	for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(order); i++) {
		removal.kind = order[i];
		(void)file_walk(AT_FDCWD, dir, remove_noted, &removal, &why);
	}
	if (r < 0 || removal.first < 0)
		return r < 0 ? r : removal.first;
	remove_state(state);
	return removal.removed;
}
