/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/host-local/index.c - an owner's leases, found without reading all files
 *
 * What:  .hawser/<machine>-<boot>/<hash of the owner>.<n> -> ../../<address>, a
 *        symbolic link per lease, n counting the owner's leases from 0.
 * How:   a lease is made before its entry and ended before it, so an entry is a
 *        hint: it is believed only while the lease's own content agrees. What
 *        upstream's plugin does to the leases can therefore not make it wrong.
 *        Upstream's walk through the directory reads through these links: its
 *        DEL removes the owner's entries along with the leases, and no name here
 *        is an address, so none counts as a lease.
 *        The link's own time of modification is when the ADD was done, by the
 *        clock that counts from the boot. Before that it is the wall clock's,
 *        far in the future, which means "not done".
 * Rules: an owner's entries have no gaps, so that looking for one more finds the
 *        end: they are removed from the end, or the last one takes the place.
 *        The folder's name tells what no pod can have survived: another boot of
 *        this machine. Without both ids nothing is ever taken for that.
 */
#include "plugins/host-local/index.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/os/file.h"
#include "base/str.h"
#include "base/time.h"
#include "cni/plugin/record.h"

#define INDEX_DIR     ".hawser"
#define INDEX_UP      "../../"
#define INDEX_MACHINE 8 /* digits of the machine id's hash */

static void index_machine(char ret_hex[INDEX_MACHINE + 1])
{
	AUTO(buf_done) struct buf id = { 0 };
	struct hw_err e;

	ret_hex[0] = '\0';
	if (file_read(AT_FDCWD, "/etc/machine-id", 256, &id, &e) == 0 && id.len > 1)
		hash_hex(id.data, INDEX_MACHINE, ret_hex);
}

/**
 * index_boot() - the name of this boot's folder
 */
void index_boot(char *ret_name, size_t size)
{
	char machine[INDEX_MACHINE + 1];

	index_machine(machine);
	snprintf(ret_name, size, "%s-%s", machine, record_boot_id());
}

static int open_folder(int dir, const char *name)
{
	return openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/**
 * index_open() - this boot's folder; that there is none yet is no error
 */
int index_open(struct lease_store *store, struct hw_err *e)
{
	autofree char *path = NULL;

	index_boot(store->boot, sizeof(store->boot));
	path = str_printf(INDEX_DIR "/%s", store->boot);
	store->index = open_folder(store->dir, path);
	if (store->index < 0 && errno != ENOENT)
		return err_set(e, -errno, "open %s/%s", store->path, path);
	return 0;
}

static int index_make(struct lease_store *store, struct hw_err *e)
{
	autofree char *path = str_printf(INDEX_DIR "/%s", store->boot);

	int r = file_mkdirs(store->dir, path, 0700, e);
	if (r < 0)
		return err_ctx(e, "%s", store->path);
	return index_open(store, e);
}

/* Both are "MACHINE-BOOT", and either part may be missing; a boot's id is unique in the world. */
static enum index_time index_time(const char *name, const char *own)
{
	size_t machine = strcspn(name, "-"), own_machine = strcspn(own, "-");
	const char *boot = name[machine] ? name + machine + 1 : "";
	const char *own_boot = own[own_machine] ? own + own_machine + 1 : "";

	if (*boot && str_equal(boot, own_boot))
		return INDEX_NOW;
	if (machine == 0)
		return INDEX_UNKNOWN;
	if (machine != own_machine || strncmp(name, own, machine) != 0)
		return INDEX_FOREIGN;
	return *boot && *own_boot ? INDEX_EARLIER : INDEX_UNKNOWN;
}

struct opening {
	const struct lease_store *store;
	struct index_folders folders;
};

static int open_each(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	struct opening *o = ctx;
	struct index_folder folder = { .fd = open_folder(entry->dir, entry->name) };

	if (folder.fd < 0 && (errno == ENOTDIR || errno == ELOOP || errno == ENOENT))
		return 0;
	if (folder.fd < 0)
		return err_set(e, -errno, "open " INDEX_DIR "/%s", entry->name);
	folder.time = index_time(entry->name, o->store->boot);
	folder.name = str_copy(entry->name);
	o->folders.v = mem_resize(o->folders.v, o->folders.n + 1, sizeof(folder));
	o->folders.v[o->folders.n++] = folder;
	return 0;
}

/**
 * index_open_all() - the folders of all boots
 */
int index_open_all(const struct lease_store *store, struct index_folders *ret, struct hw_err *e)
{
	struct opening o = { .store = store };
	int r = file_walk(store->dir, INDEX_DIR, open_each, &o, e);

	if (r < 0 && r != -ENOENT) {
		index_close_all(&o.folders);
		return r;
	}
	*ret = o.folders;
	return 0;
}

/**
 * index_close_all() - close them
 */
void index_close_all(struct index_folders *folders)
{
	for (size_t i = 0; i < folders->n; i++) {
		close(folders->v[i].fd);
		free(folders->v[i].name);
	}
	free(folders->v);
	*folders = (struct index_folders){ 0 };
}

/**
 * index_tidy() - remove the empty folders of earlier boots
 */
void index_tidy(const struct lease_store *store, const struct index_folders *folders)
{
	for (size_t i = 0; i < folders->n; i++) {
		autofree char *path = str_printf(INDEX_DIR "/%s", folders->v[i].name);

		if (folders->v[i].time == INDEX_EARLIER)
			(void)unlinkat(store->dir, path, AT_REMOVEDIR);
	}
}

/**
 * index_hash() - the part of an entry's name that the owner makes
 */
void index_hash(const struct lease_owner *owner, char ret_hex[INDEX_HASH + 1])
{
	const char *parts[] = { owner->container_id, owner->ifname };

	hash_parts(parts, 2, INDEX_HASH, ret_hex);
}

/**
 * index_name() - the name of an owner's n-th entry
 */
void index_name(const struct lease_owner *owner, unsigned n, char ret_name[INDEX_NAME])
{
	char hex[INDEX_HASH + 1];

	index_hash(owner, hex);
	snprintf(ret_name, INDEX_NAME, "%s.%u", hex, n);
}

/**
 * index_read() - the address that an entry leads to
 */
int index_read(int folder, const char *name, struct hw_ip *ret_ip)
{
	char target[sizeof(INDEX_UP) + HW_IP_TEXT] = "";
	struct hw_err e;

	ssize_t len = readlinkat(folder, name, target, sizeof(target) - 1);
	if (len < 0 && errno != EINVAL) /* EINVAL: something else than a link */
		return errno == ENOENT || folder < 0 ? 0 : -errno;
	*ret_ip = (struct hw_ip){ 0 };
	if (len > 0 && str_starts(target, INDEX_UP))
		(void)hw_ip_parse(target + strlen(INDEX_UP), ret_ip, &e);
	return 1;
}

/**
 * index_get() - the address of an owner's n-th lease
 */
int index_get(int folder, const struct lease_owner *owner, unsigned n, struct hw_ip *ret_ip)
{
	char name[INDEX_NAME];

	index_name(owner, n, name);
	return index_read(folder, name, ret_ip);
}

/* The name of the owner's entry for an address. Return: 1, 0 when there is none */
static int index_find(int folder, const struct lease_owner *owner, const struct hw_ip *ip,
		      char ret_name[INDEX_NAME])
{
	struct hw_ip found;

	for (unsigned n = 0;; n++) {
		index_name(owner, n, ret_name);
		int r = index_read(folder, ret_name, &found);
		if (r <= 0 || hw_ip_equal(&found, ip))
			return r;
	}
}

/**
 * index_has() - has the owner an entry for an address?
 */
bool index_has(int folder, const struct lease_owner *owner, const struct hw_ip *ip)
{
	char name[INDEX_NAME];

	return index_find(folder, owner, ip, name) > 0;
}

/* Put an entry where there is none, or one that no lease agrees with. */
static int index_link(const struct lease_store *store, const struct lease_owner *owner,
		      const char *target)
{
	char name[INDEX_NAME];
	struct hw_ip old;

	for (unsigned n = 0;; n++) {
		index_name(owner, n, name);
		if (symlinkat(target, store->index, name) == 0)
			return 0;
		if (errno != EEXIST)
			return -errno;
		int r = index_read(store->index, name, &old);
		if (r == 0)
			continue;
		if (r > 0)
			r = lease_match(store, &old, owner);
		if (r < 0)
			return r;
		if (r == LEASE_WHOLE)
			continue;
		if (unlinkat(store->index, name, 0) == 0 &&
		    symlinkat(target, store->index, name) == 0)
			return 0;
		return -errno;
	}
}

/**
 * index_add() - remember whose a lease is
 */
int index_add(struct lease_store *store, const struct lease_owner *owner, const struct hw_ip *ip,
	      struct hw_err *e)
{
	char target[sizeof(INDEX_UP) + HW_IP_TEXT], text[HW_IP_TEXT];
	int r = store->index < 0 ? index_make(store, e) : 0;

	if (r < 0)
		return r;
	snprintf(target, sizeof(target), INDEX_UP "%s", hw_ip_format(ip, text));
	r = index_link(store, owner, target);
	if (r < 0)
		return err_set(e, r, "index lease %s in %s", text, store->path);
	return 0;
}

/**
 * index_drop() - forget an entry; the last one of the same owner takes its place
 */
int index_drop(int folder, const char *name)
{
	char last[INDEX_NAME], next[INDEX_NAME];
	struct hw_ip ip;
	long long n = 0;
	int r;

	snprintf(last, sizeof(last), "%s", name);
	if (strlen(name) > INDEX_HASH)
		(void)str_to_int64(name + INDEX_HASH + 1, 0, INT32_MAX, &n);
	for (;;) {
		snprintf(next, sizeof(next), "%.*s.%lld", INDEX_HASH, name, ++n);
		r = index_read(folder, next, &ip);
		if (r < 0)
			return r;
		if (r == 0)
			break;
		memcpy(last, next, sizeof(last));
	}
	if (str_equal(name, last) ? unlinkat(folder, name, 0)
				  : renameat(folder, last, folder, name))
		return -errno;
	return 0;
}

/**
 * index_remove() - forget an owner's entry for an address
 */
int index_remove(int folder, const struct lease_owner *owner, const struct hw_ip *ip)
{
	char name[INDEX_NAME];

	int r = index_find(folder, owner, ip, name);
	return r > 0 ? index_drop(folder, name) : r;
}

/**
 * index_stamp() - the ADD that made the owner's n-th entry is done
 *
 * Return: 1, 0 when there is no such entry, or a negative errno
 */
int index_stamp(int folder, const struct lease_owner *owner, unsigned n, struct hw_err *e)
{
	int64_t now = time_boot();
	struct timespec at = { .tv_sec = now / 1000000000, .tv_nsec = now % 1000000000 };
	struct timespec times[2] = { at, at };
	char name[INDEX_NAME];

	index_name(owner, n, name);
	if (utimensat(folder, name, times, AT_SYMLINK_NOFOLLOW) == 0)
		return 1;
	return errno == ENOENT || folder < 0 ? 0 : err_set(e, -errno, "stamp lease index %s", name);
}

/* What cannot be told was just now, so that nobody takes it for dead. */
static int64_t stamp_of(int folder, const char *name)
{
	struct stat st;

	if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : time_boot();
	int64_t at = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
	if (at > time_boot())
		return 0;
	/* Some file systems keep whole seconds: then it was during that one. */
	return st.st_mtim.tv_nsec ? at : at + 999999999;
}

/**
 * index_stamped() - when the ADD that made an entry was done
 *
 * Return: a time of this boot; 0 when it was never done, or there is no entry
 */
int64_t index_stamped(int folder, const struct lease_owner *owner, const struct hw_ip *ip)
{
	char name[INDEX_NAME];

	int r = index_find(folder, owner, ip, name);
	if (r < 0)
		return time_boot();
	return r ? stamp_of(folder, name) : 0;
}

/**
 * index_is_finished() - was the ADD that made an owner's n-th entry done?
 */
bool index_is_finished(int folder, const struct lease_owner *owner, unsigned n)
{
	char name[INDEX_NAME];

	index_name(owner, n, name);
	return stamp_of(folder, name) > 0;
}
