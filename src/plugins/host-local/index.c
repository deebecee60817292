/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/host-local/index.c - the index of leases by owner
 *
 * What:  one symbolic link per lease,
 *        .hawser/<machine>-<boot>/<hash of the owner>.<n> -> ../../<address>;
 *        n is the number of the lease, 0 for the owner's first one.
 * How:   an entry is only a hint: the lease is created before its entry and also
 *        deleted before its entry. An entry is used only if the lease names the
 *        same owner.
 *        So upstream's plugin, which does not know the index, cannot make the
 *        index wrong by changing leases.
 *        When upstream's DEL walks through the directory, it follows these links,
 *        and so removes the owner's entries together with the leases. It does not
 *        mistake an entry for a lease, because no entry has an address as its
 *        name.
 *        When an ADD finishes, it sets the modification time of the link itself
 *        to the current time by CLOCK_BOOTTIME. Before that, the modification
 *        time is that of the wall clock, which is far in the future by
 *        CLOCK_BOOTTIME; such a time means "not finished".
 * Rules: an owner's entries have no gaps, so that the list ends at the first
 *        missing number. Entries are removed from the end, or the last entry gets
 *        the name of the removed one.
 *        The directory's name shows which leases are from an earlier boot of this
 *        machine: pods do not survive a boot. If the machine ID or the boot ID is
 *        missing, no lease is treated as one from an earlier boot.
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
#include "base/os/boot.h"
#include "base/os/file.h"
#include "base/str.h"
#include "base/time.h"
#include "cni/plugin/record.h"

#define INDEX_DIR      ".hawser"
#define INDEX_TARGET   "../../" /* start of an entry's target; the address follows */
#define MACHINE_DIGITS 8	/* length of the machine ID's hash */

/* ---- directories ----------------------------------------------------------------------------- */

int index_open(struct lease_store *store, struct hw_err *e)
{
	AUTO(buf_done) struct buf id = { 0 };
	char machine[MACHINE_DIGITS + 1] = "";
	struct hw_err missing;

	if (file_read(AT_FDCWD, "/etc/machine-id", 256, &id, &missing) == 0 && id.len > 1)
		hash_hex(id.data, MACHINE_DIGITS, machine);
	snprintf(store->boot_name, sizeof(store->boot_name), "%s-%s", machine, boot_id());
	autofree char *path = str_printf(INDEX_DIR "/%s", store->boot_name);
	store->index = openat(store->dir, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (store->index < 0 && errno != ENOENT)
		return err_set(e, -errno, "open %s/%s", store->path, path);
	return 0;
}

/* Both names are "MACHINE-BOOT"; either part may be empty. Boot IDs of all machines differ. */
static enum index_origin find_origin(const char *name, const char *own)
{
	size_t machine = strcspn(name, "-"), own_machine = strcspn(own, "-");
	const char *boot = name[machine] ? name + machine + 1 : "";
	const char *own_boot = own[own_machine] ? own + own_machine + 1 : "";

	if (*boot && str_equal(boot, own_boot))
		return INDEX_THIS_BOOT;
	if (machine == 0)
		return INDEX_UNKNOWN;
	if (machine != own_machine || strncmp(name, own, machine) != 0)
		return INDEX_OTHER_MACHINE;
	return *boot && *own_boot ? INDEX_EARLIER_BOOT : INDEX_UNKNOWN;
}

struct index_walk {
	const struct lease_store *store;
	struct index_dirs dirs;
};

static int open_entry(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	struct index_walk *w = ctx;
	struct index_dir dir = { 0 };

	dir.fd = openat(entry->dir, entry->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir.fd < 0 && (errno == ENOTDIR || errno == ELOOP || errno == ENOENT))
		return 0;
	if (dir.fd < 0)
		return err_set(e, -errno, "open " INDEX_DIR "/%s", entry->name);
	dir.origin = find_origin(entry->name, w->store->boot_name);
	dir.name = str_copy(entry->name);
	w->dirs.v = mem_resize(w->dirs.v, w->dirs.n + 1, sizeof(dir));
	w->dirs.v[w->dirs.n++] = dir;
	return 0;
}

int index_open_all(const struct lease_store *store, struct index_dirs *ret, struct hw_err *e)
{
	struct index_walk w = { .store = store };
	int r;

	r = file_walk(store->dir, INDEX_DIR, open_entry, &w, e);
	if (r < 0 && r != -ENOENT) {
		index_close_all(&w.dirs);
		return r;
	}
	*ret = w.dirs;
	return 0;
}

void index_close_all(struct index_dirs *dirs)
{
	for (size_t i = 0; i < dirs->n; i++) {
		close(dirs->v[i].fd);
		free(dirs->v[i].name);
	}
	free(dirs->v);
	*dirs = (struct index_dirs){ 0 };
}

void index_remove_empty(const struct lease_store *store, const struct index_dirs *dirs)
{
	for (size_t i = 0; i < dirs->n; i++) {
		autofree char *path = str_printf(INDEX_DIR "/%s", dirs->v[i].name);

		if (dirs->v[i].origin == INDEX_EARLIER_BOOT)
			(void)unlinkat(store->dir, path, AT_REMOVEDIR);
	}
}

/* ---- entries --------------------------------------------------------------------------------- */

void index_hash(const struct lease_owner *owner, char ret_hex[INDEX_HASH + 1])
{
	const char *parts[] = { owner->container_id, owner->ifname };

	hash_parts(parts, 2, INDEX_HASH, ret_hex);
}

void index_name(const struct lease_owner *owner, unsigned n, char ret_name[INDEX_NAME])
{
	char hex[INDEX_HASH + 1];

	index_hash(owner, hex);
	snprintf(ret_name, INDEX_NAME, "%s.%u", hex, n);
}

int index_read(int dir, const char *name, struct hw_ip *ret_ip)
{
	char target[sizeof(INDEX_TARGET) + HW_IP_TEXT] = "";
	struct hw_err e;
	ssize_t len;

	len = readlinkat(dir, name, target, sizeof(target) - 1);
	if (len < 0 && errno != EINVAL) /* EINVAL: not a symbolic link */
		return errno == ENOENT || dir < 0 ? 0 : -errno;
	*ret_ip = (struct hw_ip){ 0 };
	if (len > 0 && str_starts(target, INDEX_TARGET))
		(void)hw_ip_parse(target + strlen(INDEX_TARGET), ret_ip, &e);
	return 1;
}

int index_get(int dir, const struct lease_owner *owner, unsigned n, struct hw_ip *ret_ip)
{
	char name[INDEX_NAME];

	index_name(owner, n, name);
	return index_read(dir, name, ret_ip);
}

/* Finds the name of the owner's entry for an address.
 * Return: 1 if found, 0 if not, or a negative errno */
static int find_entry(int dir, const struct lease_owner *owner, const struct hw_ip *ip,
		      char ret_name[INDEX_NAME])
{
	struct hw_ip found;

	for (unsigned n = 0;; n++) {
		int r;

		index_name(owner, n, ret_name);
		r = index_read(dir, ret_name, &found);
		if (r <= 0 || hw_ip_equal(&found, ip))
			return r;
	}
}

bool index_has(int dir, const struct lease_owner *owner, const struct hw_ip *ip)
{
	char name[INDEX_NAME];

	return find_entry(dir, owner, ip, name) > 0;
}

struct other_search {
	int dir;
	const struct hw_ip *ip;
	char own[INDEX_HASH + 1];
};

static int compare_entry(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	const struct other_search *search = ctx;
	struct hw_ip ip;

	(void)e;
	return index_read(search->dir, entry->name, &ip) > 0 && hw_ip_equal(&ip, search->ip) &&
	       !str_starts(entry->name, search->own);
}

int index_has_other(int dir, const struct lease_owner *owner, const struct hw_ip *ip,
		    struct hw_err *e)
{
	struct other_search search = { .dir = dir, .ip = ip };

	index_hash(owner, search.own);
	return file_walk(dir, ".", compare_entry, &search, e);
}

/* Creates an entry with the first number that is unused, or that is used by an entry whose lease
 * the owner no longer has. */
static int link_entry(const struct lease_store *store, const struct lease_owner *owner,
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
		if (r == LEASE_OWNED)
			continue;
		if (unlinkat(store->index, name, 0) == 0 &&
		    symlinkat(target, store->index, name) == 0)
			return 0;
		return -errno;
	}
}

int index_add(struct lease_store *store, const struct lease_owner *owner, const struct hw_ip *ip,
	      struct hw_err *e)
{
	char target[sizeof(INDEX_TARGET) + HW_IP_TEXT], text[HW_IP_TEXT];
	int r = 0;

	if (store->index < 0) {
		autofree char *path = str_printf(INDEX_DIR "/%s", store->boot_name);

		r = file_mkdirs(store->dir, path, 0700, e);
		if (r < 0)
			return err_ctx(e, "%s", store->path);
		r = index_open(store, e);
	}
	if (r < 0)
		return r;
	snprintf(target, sizeof(target), INDEX_TARGET "%s", hw_ip_format(ip, text));
	r = link_entry(store, owner, target);
	if (r < 0)
		return err_set(e, r, "add lease %s to the index of %s", text, store->path);
	return 0;
}

int index_remove_entry(int dir, const char *name)
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
		r = index_read(dir, next, &ip);
		if (r < 0)
			return r;
		if (r == 0)
			break;
		memcpy(last, next, sizeof(last));
	}
	if (str_equal(name, last) ? unlinkat(dir, name, 0) : renameat(dir, last, dir, name))
		return -errno;
	return 0;
}

int index_remove(int dir, const struct lease_owner *owner, const struct hw_ip *ip)
{
	char name[INDEX_NAME];

	int r = find_entry(dir, owner, ip, name);
	return r > 0 ? index_remove_entry(dir, name) : r;
}

/* ---- when the ADD of an entry finished ---------------------------------------------------- */

int index_set_finished(int dir, const struct lease_owner *owner, unsigned n, struct hw_err *e)
{
	int64_t now = time_boot();
	struct timespec at = { .tv_sec = now / 1000000000, .tv_nsec = now % 1000000000 };
	struct timespec times[2] = { at, at };
	char name[INDEX_NAME];

	index_name(owner, n, name);
	if (utimensat(dir, name, times, AT_SYMLINK_NOFOLLOW) == 0)
		return 1;
	return errno == ENOENT || dir < 0
		       ? 0
		       : err_set(e, -errno, "set the time of index entry %s", name);
}

/* If the time is unreadable, returns the current time, so that the entry is never mistaken for that
 * of an ADD that was killed. */
static int64_t read_finished(int dir, const char *name)
{
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : time_boot();
	int64_t at = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
	if (at > time_boot())
		return 0;
	/* Some file systems store only whole seconds: assume the end of that second. */
	return st.st_mtim.tv_nsec ? at : at + 999999999;
}

int64_t index_finished_at(int dir, const struct lease_owner *owner, const struct hw_ip *ip)
{
	char name[INDEX_NAME];
	int r;

	r = find_entry(dir, owner, ip, name);
	if (r < 0)
		return time_boot();
	return r ? read_finished(dir, name) : 0;
}

bool index_is_finished(int dir, const struct lease_owner *owner, unsigned n)
{
	char name[INDEX_NAME];

	index_name(owner, n, name);
	return read_finished(dir, name) > 0;
}
