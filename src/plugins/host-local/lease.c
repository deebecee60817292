/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/host-local/lease.c - the leases of host-local, in the same files as upstream
 *
 * How:   the file of a lease is created with O_EXCL and then written. It contains
 *        "ID\r\nIFNAME", or only the ID if a version of upstream before 0.7 wrote
 *        it. White space around the text is ignored, as in upstream.
 *        A writer that is killed can leave an empty file. As in upstream, its
 *        address is treated as leased. A scan under the lock removes the file.
 *        The modification time of the directory shows whether upstream's plugin
 *        may have added a lease: as long as every lease has an index entry, we
 *        set it to a time in the past that no clock shows; any process that adds
 *        a file changes it.
 *
 *        A release deletes the lease before its index entry: if the process is
 *        killed after the first step, the next DEL finds the entry.
 *        If the caller does not know the owner's addresses, a scan of all files
 *        is needed: there may be leases without an index entry, written by
 *        upstream's plugin, or by an ADD of ours that was killed before it wrote
 *        the entry. The scan also removes empty leases, and checks whether the
 *        index is complete. As long as the index is complete, no scan is needed.
 */
#include "plugins/host-local/lease.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/os/file.h"
#include "base/str.h"
#include "base/time.h"
#include "plugins/host-local/index.h"

#define LEASE_LOCK_MS	     60000
#define LEASE_BREAK	     "\r\n"
#define INDEX_COMPLETE_MTIME 77777777 /* modification time of the directory: in 1972 */

/* ---- the directory -------------------------------------------------------------- */

static bool is_in_index(const struct lease_store *store, const struct index_dirs *dirs,
			const struct hw_ip *ip)
{
	struct lease_text t;

	if (lease_read(store, ip, &t, NULL) <= 0 || !t.owner.ifname)
		return false;
	for (size_t i = 0; i < dirs->n; i++)
		if (index_has(dirs->v[i].fd, &t.owner, ip))
			return true;
	return false;
}

/* Checks whether the index is complete, by reading all leases. */
static int check_index(struct lease_store *store, struct hw_err *e)
{
	AUTO(index_close_all) struct index_dirs dirs = { 0 };
	AUTO(ip_list_done) struct ip_list all = { 0 };
	int r;

	r = index_open_all(store, &dirs, e);
	if (r < 0)
		return r;
	r = lease_list_all(store, &all, e);
	if (r < 0)
		return r;
	store->index_complete = true;
	for (size_t i = 0; store->index_complete && i < all.n; i++)
		store->index_complete = is_in_index(store, &dirs, &all.v[i]);
	return 0;
}

int lease_open(struct lease_store *store, const char *data_dir, const char *network,
	       enum lease_mode mode, struct hw_err *e)
{
	bool created;
	int r;

	store->path = str_printf("%s/%s", data_dir, network);
	store->dir = open(store->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	created = store->dir < 0 && errno == ENOENT;
	if (created && mode != LEASE_CREATE)
		return 0;
	if (created) {
		r = file_mkdirs(AT_FDCWD, store->path, 0755, e);
		if (r < 0)
			return r;
		store->dir = open(store->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	if (store->dir < 0)
		return err_set(e, -errno, "open %s", store->path);
	r = index_open(store, e);
	if (r >= 0 && mode != LEASE_READ)
		r = lease_lock(store, e);
	if (r >= 0 && created)
		r = check_index(store, e); /* upstream's plugin may already have added leases */
	return r < 0 ? r : 1;
}

int lease_lock(struct lease_store *store, struct hw_err *e)
{
	struct stat st;
	int r;

	r = file_lock(store->dir, "lock", true, time_deadline(LEASE_LOCK_MS), &store->lock, e);
	if (r == -ETIMEDOUT)
		return err_cni(e, HW_CNI_TRY_AGAIN, "%s: timed out waiting for the lock",
			       store->path);
	if (r < 0)
		return err_ctx(e, "%s", store->path);
	store->index_complete =
		fstat(store->dir, &st) == 0 && st.st_mtim.tv_sec == INDEX_COMPLETE_MTIME;
	return 0;
}

void lease_set_incomplete(struct lease_store *store)
{
	store->index_complete = false;
	(void)futimens(store->dir, NULL);
}

void lease_close(struct lease_store *store)
{
	static const struct timespec complete[2] = { { .tv_sec = INDEX_COMPLETE_MTIME },
						     { .tv_sec = INDEX_COMPLETE_MTIME } };

	if (store->lock >= 0 && store->index_complete)
		(void)futimens(store->dir, complete);
	mem_close_fd(&store->index);
	mem_close_fd(&store->lock);
	mem_close_fd(&store->dir);
	free(store->path);
	*store = (struct lease_store)LEASE_STORE_INIT;
}

/* ---- one lease -------------------------------------------------------------------- */

static void parse_owner(struct lease_text *t, size_t len)
{
	char *text = t->text, *end;

	t->text[len] = '\0';
	while (isspace((unsigned char)*text))
		text++;
	for (end = text + strlen(text); end > text && isspace((unsigned char)end[-1]);)
		*--end = '\0';
	t->owner = (struct lease_owner){ .container_id = text };
	end = strstr(text, LEASE_BREAK);
	if (!end)
		return;
	*end = '\0';
	t->owner.ifname = end + strlen(LEASE_BREAK);
}

int lease_read(const struct lease_store *store, const struct hw_ip *ip, struct lease_text *ret,
	       struct stat *ret_st)
{
	char name[HW_IP_TEXT];
	autoclose int fd = -1;
	ssize_t len;

	ret->owner = (struct lease_owner){ 0 };
	if (!ip->family)
		return 0;
	fd = openat(store->dir, hw_ip_format(ip, name),
		    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 && (errno == ENOENT || errno == ELOOP || errno == ENXIO))
		return errno != ENOENT;
	if (fd < 0)
		return -errno;
	len = read(fd, ret->text, sizeof(ret->text));
	if (len < 0 && errno != EISDIR)
		return -errno;
	if (ret_st && fstat(fd, ret_st) < 0)
		return -errno;
	if (len >= 0 && (size_t)len < sizeof(ret->text))
		parse_owner(ret, (size_t)len);
	return 1;
}

int lease_match(const struct lease_store *store, const struct hw_ip *ip,
		const struct lease_owner *owner)
{
	struct lease_text t;
	int r;

	r = lease_read(store, ip, &t, NULL);
	if (r <= 0)
		return r < 0 ? r : LEASE_FREE;
	if (!t.owner.container_id)
		return LEASE_OTHER;
	if (str_empty(t.owner.container_id) && !t.owner.ifname)
		return LEASE_EMPTY;
	if (!str_equal(t.owner.container_id, owner->container_id))
		return LEASE_OTHER;
	if (!t.owner.ifname)
		return LEASE_ID_ONLY;
	return str_equal(t.owner.ifname, owner->ifname) ? LEASE_OWNED : LEASE_OTHER;
}

int lease_matches_entry(const struct lease_store *store, const char *entry, const struct hw_ip *ip)
{
	char hex[INDEX_HASH + 1];
	struct lease_text t;
	int r;

	r = lease_read(store, ip, &t, NULL);
	if (r <= 0 || !t.owner.container_id || !t.owner.ifname)
		return r < 0 ? r : 0;
	index_hash(&t.owner, hex);
	return strncmp(entry, hex, INDEX_HASH) == 0;
}

int lease_allocate(struct lease_store *store, const struct lease_owner *owner,
		   const struct hw_ip *ip, struct hw_err *e)
{
	autofree char *text = str_printf("%s" LEASE_BREAK "%s", owner->container_id, owner->ifname);
	char name[HW_IP_TEXT];
	struct hw_err ignored;
	autoclose int fd = -1;
	int r;

	fd = openat(store->dir, hw_ip_format(ip, name), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
		    0600);
	if (fd < 0 && errno == EEXIST)
		return 1;
	if (fd < 0)
		return err_set(e, -errno, "create lease %s in %s", name, store->path);
	/* A longer text could not be read by lease_read(), and DEL would not find the lease. */
	if (strlen(text) >= LEASE_TEXT_MAX)
		r = err_text(e, -ENAMETOOLONG, "container ID is too long");
	else
		r = file_write_fd(fd, text, strlen(text), e);
	if (r >= 0 && close(take_fd(fd)) < 0)
		r = err_set(e, -errno, "close");
	if (r < 0)
		err_ctx(e, "create lease %s in %s", name, store->path);
	else
		r = index_add(store, owner, ip, e);
	if (r < 0 && lease_unlink(store, ip, &ignored) < 0)
		store->index_complete = false;
	return r;
}

int lease_finish(struct lease_store *store, const struct lease_owner *owner, struct hw_err *e)
{
	int r = 1;

	for (unsigned n = 0; r > 0; n++)
		r = index_set_finished(store->index, owner, n, e);
	return r;
}

int lease_unlink(const struct lease_store *store, const struct hw_ip *ip, struct hw_err *e)
{
	char name[HW_IP_TEXT];

	if (unlinkat(store->dir, hw_ip_format(ip, name), 0) < 0 && errno != ENOENT)
		return err_set(e, -errno, "release lease %s in %s", name, store->path);
	return 0;
}

static int read_failed(const struct lease_store *store, const struct hw_ip *ip, int r,
		       struct hw_err *e)
{
	char name[HW_IP_TEXT];

	return err_set(e, r, "read lease %s in %s", hw_ip_format(ip, name), store->path);
}

int lease_release(struct lease_store *store, const struct lease_owner *owner,
		  const struct hw_ip *ip, struct hw_err *e)
{
	int r;

	r = lease_match(store, ip, owner);
	if (r < 0)
		return read_failed(store, ip, r, e);
	if (r != LEASE_OWNED)
		return 0;
	r = lease_unlink(store, ip, e);
	if (r < 0)
		return r;
	r = index_remove(store->index, owner, ip);
	return r < 0 ? err_set(e, r, "remove an entry from the index of %s", store->path) : 1;
}

/* ---- lists of leases ----------------------------------------------------------------- */

/* Does not use file_walk(), which copies and sorts the names: with 65,000 names that would take
 * most of the time. */
int lease_list_all(const struct lease_store *store, struct ip_list *ret_list, struct hw_err *e)
{
	DIR *d;
	const struct dirent *entry;
	struct hw_err not_ip;
	struct hw_ip ip;
	int fd;

	fd = openat(store->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	d = fd < 0 ? NULL : fdopendir(fd);
	if (!d)
		return err_set(e, -errno, "read %s", store->path);
	for (errno = 0; (entry = readdir(d)); errno = 0)
		if (isxdigit((unsigned char)entry->d_name[0]) || entry->d_name[0] == ':')
			if (hw_ip_parse(entry->d_name, &ip, &not_ip) == 0)
				ip_list_add(ret_list, &ip);
	int r = errno ? err_set(e, -errno, "read %s", store->path) : 0;
	closedir(d);
	ip_list_sort(ret_list);
	return r;
}

int lease_list_owned(const struct lease_store *store, const struct lease_owner *owner,
		     struct ip_list *ret_list, struct hw_err *e)
{
	struct hw_ip ip;
	int r;

	for (unsigned n = 0; (r = index_get(store->index, owner, n, &ip)) > 0; n++)
		if (lease_match(store, &ip, owner) == LEASE_OWNED)
			ip_list_add(ret_list, &ip);
	return r < 0 ? err_set(e, r, "read the index of %s", store->path) : 0;
}

/* Reads all leases, and lists those of the owner and the empty ones. */
static int scan(const struct lease_store *store, const struct lease_owner *owner,
		struct ip_list *ret_owned, struct ip_list *ret_empty, struct hw_err *e)
{
	AUTO(ip_list_done) struct ip_list all = { 0 };
	int r;

	r = lease_list_all(store, &all, e);
	for (size_t i = 0; r >= 0 && i < all.n; i++) {
		int m;

		m = lease_match(store, &all.v[i], owner);
		if (m < 0)
			return read_failed(store, &all.v[i], m, e);
		if (m == LEASE_OWNED || m == LEASE_ID_ONLY)
			ip_list_add(ret_owned, &all.v[i]);
		else if (m == LEASE_EMPTY)
			ip_list_add(ret_empty, &all.v[i]);
	}
	return r;
}

int lease_has_any(const struct lease_store *store, const struct lease_owner *owner,
		  struct hw_err *e)
{
	AUTO(ip_list_done) struct ip_list owned = { 0 }, empty = { 0 };
	int r;

	r = lease_list_owned(store, owner, &owned, e);
	if (r >= 0 && !owned.n)
		r = scan(store, owner, &owned, &empty, e);
	return r < 0 ? r : owned.n > 0;
}

/* ---- release of an owner's leases ------------------------------------------------------- */

/* Releases the owner's leases that one directory of the index lists, starting with the last entry.
 * @ret_unfinished: set to true if the ADD of one of them did not finish
 * Return: the number of released leases */
static int release_indexed(const struct lease_store *store, int dir,
			   const struct lease_owner *owner, bool *ret_unfinished, struct hw_err *e)
{
	char name[INDEX_NAME];
	struct hw_ip ip;
	unsigned n = 0;
	int released = 0, r;

	while ((r = index_get(dir, owner, n, &ip)) > 0)
		n++;
	if (r < 0)
		return err_set(e, r, "read the index of %s", store->path);
	while (n-- > 0) {
		if (!index_is_finished(dir, owner, n))
			*ret_unfinished = true;
		r = index_get(dir, owner, n, &ip);
		if (r >= 0)
			r = lease_match(store, &ip, owner);
		if (r < 0)
			return err_set(e, r, "read a lease of container %s in %s",
				       owner->container_id, store->path);
		if (r == LEASE_OWNED || r == LEASE_ID_ONLY || r == LEASE_EMPTY) {
			r = lease_unlink(store, &ip, e);
			if (r < 0)
				return r;
			released++;
		}
		index_name(owner, n, name);
		if (unlinkat(dir, name, 0) < 0 && errno != ENOENT)
			return err_set(e, -errno, "remove an entry from the index of %s",
				       store->path);
	}
	return released;
}

static int release_in_all_dirs(const struct lease_store *store, const struct lease_owner *owner,
			       bool *ret_unfinished, struct hw_err *e)
{
	AUTO(index_close_all) struct index_dirs dirs = { 0 };
	int released = 0;
	int r;

	r = index_open_all(store, &dirs, e);
	for (size_t i = 0; r >= 0 && i < dirs.n; i++) {
		r = release_indexed(store, dirs.v[i].fd, owner, ret_unfinished, e);
		released += r > 0 ? r : 0;
	}
	if (released)
		index_remove_empty(store, &dirs);
	return r < 0 ? r : released;
}

/* Is the lease that of another interface of the container? If it names only the container, the index may
 * still know the interface. Entries of earlier boots are ignored: their containers no longer exist.
 * Return: 1 if so, 0 if not */
static int is_of_other_interface(const struct lease_store *store, const struct lease_owner *owner,
				 const struct hw_ip *ip, struct hw_err *e)
{
	AUTO(index_close_all) struct index_dirs dirs = { 0 };
	int r;

	r = index_open_all(store, &dirs, e);
	for (size_t i = 0; r == 0 && i < dirs.n; i++)
		if (dirs.v[i].origin != INDEX_EARLIER_BOOT)
			r = index_has_other(dirs.v[i].fd, owner, ip, e);
	return r;
}

/* Releases those leases of a list for which lease_match() returns @want.
 * Return: the number of released leases */
static int release_matching(const struct lease_store *store, const struct lease_owner *owner,
			    const struct ip_list *list, enum lease_match want, struct hw_err *e)
{
	int released = 0;

	for (size_t i = 0; i < list->n; i++) {
		int r;

		r = lease_match(store, &list->v[i], owner);
		if (r < 0)
			return read_failed(store, &list->v[i], r, e);
		if (r != (int)want)
			continue;
		r = want == LEASE_ID_ONLY ? is_of_other_interface(store, owner, &list->v[i], e) : 0;
		if (r > 0)
			continue;
		if (r == 0)
			r = lease_unlink(store, &list->v[i], e);
		if (r < 0)
			return r;
		released++;
	}
	return released;
}

/* Releases the owner's leases among a list. As in upstream, leases that name only the container are
 * released only if no lease names the interface too; those of another interface are kept.
 * @released: number of leases that were already released; updated */
static int release_listed(const struct lease_store *store, const struct lease_owner *owner,
			  const struct ip_list *list, int *released, struct hw_err *e)
{
	int r;

	r = release_matching(store, owner, list, LEASE_OWNED, e);
	if (r < 0)
		return r;
	*released += r;
	if (*released)
		return 0;
	r = release_matching(store, owner, list, LEASE_ID_ONLY, e);
	*released += r > 0 ? r : 0;
	return r < 0 ? r : 0;
}

int lease_release_all(struct lease_store *store, const struct lease_owner *owner,
		      const struct ip_list *known, struct hw_err *e)
{
	AUTO(ip_list_done) struct ip_list owned = { 0 }, empty = { 0 };
	bool unfinished = false;
	int released, r;

	released = release_in_all_dirs(store, owner, &unfinished, e);
	if (released < 0)
		return released;
	r = release_listed(store, owner, known, &released, e);
	if (r < 0)
		return r;
	if (!unfinished && (store->index_complete || (known->n > 0 && released)))
		return 0;
	r = scan(store, owner, &owned, &empty, e);
	if (r < 0)
		return r;
	r = release_matching(store, owner, &empty, LEASE_EMPTY, e);
	if (r < 0)
		return r;
	r = release_listed(store, owner, &owned, &released, e);
	return r < 0 ? r : check_index(store, e);
}

/* ---- stale leases: of earlier boots ----------------------------------------------------- */

struct stale_walk {
	const struct lease_store *store;
	int dir;
	struct ip_list *list;
};

static int add_stale(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	struct stale_walk *w = ctx;
	struct lease_text t;
	struct hw_ip ip;

	(void)e;
	if (index_read(w->dir, entry->name, &ip) <= 0 ||
	    lease_matches_entry(w->store, entry->name, &ip) <= 0)
		return 0;
	/* The entry may be left from a DEL that was killed, and the owner may have leased the same
	 * address again since the boot. */
	if (lease_read(w->store, &ip, &t, NULL) > 0 && t.owner.ifname &&
	    index_finished_at(w->store->index, &t.owner, &ip) > 0)
		return 0;
	ip_list_add(w->list, &ip);
	return 0;
}

int lease_list_stale(const struct lease_store *store, struct ip_list *ret_list, struct hw_err *e)
{
	AUTO(index_close_all) struct index_dirs dirs = { 0 };
	int r;

	r = index_open_all(store, &dirs, e);
	for (size_t i = 0; r >= 0 && i < dirs.n; i++) {
		struct stale_walk w = { store, dirs.v[i].fd, ret_list };

		if (dirs.v[i].origin == INDEX_EARLIER_BOOT)
			r = file_walk(w.dir, ".", add_stale, &w, e);
	}
	ip_list_sort(ret_list);
	return r;
}

static int remove_entry(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	(void)ctx;
	return file_remove(entry->dir, entry->name, e);
}

int lease_release_stale(struct lease_store *store, struct hw_err *e)
{
	AUTO(index_close_all) struct index_dirs dirs = { 0 };
	AUTO(ip_list_done) struct ip_list list = { 0 };
	int r;

	r = lease_list_stale(store, &list, e);
	for (size_t i = 0; r >= 0 && i < list.n; i++)
		r = lease_unlink(store, &list.v[i], e);
	if (r >= 0)
		r = index_open_all(store, &dirs, e);
	for (size_t i = 0; r >= 0 && i < dirs.n; i++)
		if (dirs.v[i].origin == INDEX_EARLIER_BOOT)
			r = file_walk(dirs.v[i].fd, ".", remove_entry, NULL, e);
	index_remove_empty(store, &dirs);
	return r < 0 ? r : (int)list.n;
}

/* ---- the address last allocated -------------------------------------------------------- */

struct hw_ip lease_last_reserved(const struct lease_store *store, size_t set)
{
	char name[40], text[HW_IP_TEXT + 1] = "";
	struct hw_ip ip = { 0 };
	struct hw_err e;
	autoclose int fd = -1;

	snprintf(name, sizeof(name), "last_reserved_ip.%zu", set);
	fd = openat(store->dir, name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd >= 0 && read(fd, text, HW_IP_TEXT) > 0)
		(void)hw_ip_parse(text, &ip, &e);
	return ip;
}

/* Overwrites the file instead of replacing it: that also works on a full disk. */
int lease_set_last_reserved(const struct lease_store *store, size_t set, const struct hw_ip *ip,
			    struct hw_err *e)
{
	char name[40], text[HW_IP_TEXT];
	autoclose int fd = -1;
	int r;

	snprintf(name, sizeof(name), "last_reserved_ip.%zu", set);
	fd = openat(store->dir, name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_set(e, -errno, "open %s/%s", store->path, name);
	size_t len = strlen(hw_ip_format(ip, text));
	r = file_write_fd(fd, text, len, e);
	if (r >= 0 && ftruncate(fd, (off_t)len) < 0)
		r = err_set(e, -errno, "truncate");
	return r < 0 ? err_ctx(e, "%s/%s", store->path, name) : 0;
}
