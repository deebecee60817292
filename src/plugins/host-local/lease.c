/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/host-local/lease.c - the leases of host-local, in upstream's files
 *
 * How:   a lease is the file of its address, made with O_EXCL and then written;
 *        "ID\r\nIFNAME" is what it holds, or only the ID where a version of
 *        upstream's before 0.7 made it. Texts are compared as upstream does:
 *        without the white space around them.
 *        A killed writer can leave an empty file. To others it counts as taken,
 *        as upstream has it, until a walk under the lock comes by and removes it.
 *        Whether upstream's plugin may have made a lease the directory's own time
 *        of modification tells: while the index has all of them it is set to one
 *        that no clock says, and whoever adds a file there changes it.
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

#define LEASE_LOCK_MS 60000
#define LEASE_BREAK   "\r\n"
#define LEASE_INDEXED 77777777 /* the directory's time: no clock says 1972 */

/* ---- the directory -------------------------------------------------------------- */

/* Return: 1 when it was made */
static int open_dir(const char *path, bool make, int *ret_fd, struct hw_err *e)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool made = fd < 0 && errno == ENOENT && make;

	if (made) {
		int r = file_mkdirs(AT_FDCWD, path, 0755, e);
		if (r < 0)
			return r;
		fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	if (fd < 0)
		return err_set(e, -errno, "open %s", path);
	*ret_fd = fd;
	return made;
}

/**
 * lease_open() - a network's leases
 * @store: starts as LEASE_STORE; to be closed in any case
 */
int lease_open(struct lease_store *store, const char *data_dir, const char *network,
	       enum lease_open how, struct hw_err *e)
{
	store->path = str_printf("%s/%s", data_dir, network);
	int made = open_dir(store->path, how == LEASE_MAKE, &store->dir, e);
	int r = made < 0 ? made : index_open(store, e);
	if (r >= 0 && how != LEASE_LOOK)
		r = lease_lock(store, e);
	if (r >= 0 && made)
		r = lease_look_at_index(store, e); /* upstream's plugin may have been faster */
	return r;
}

static bool is_indexed(const struct lease_store *store)
{
	struct stat st;

	return fstat(store->dir, &st) == 0 && st.st_mtim.tv_sec == LEASE_INDEXED;
}

static void note_indexed(const struct lease_store *store)
{
	struct timespec at = { .tv_sec = LEASE_INDEXED };
	struct timespec times[2] = { at, at };

	(void)futimens(store->dir, times);
}

/**
 * lease_lock() - keep others, upstream's plugin too, from changing it until lease_close()
 */
int lease_lock(struct lease_store *store, struct hw_err *e)
{
	int r = file_lock(store->dir, "lock", true, time_deadline(LEASE_LOCK_MS), &store->lock, e);

	if (r == -ETIMEDOUT)
		return err_cni(e, HW_CNI_TRY_AGAIN, "gave up waiting for the lock of %s",
			       store->path);
	if (r < 0)
		return err_ctx(e, "%s", store->path);
	store->indexed = is_indexed(store);
	return 0;
}

/**
 * lease_close() - and let others change it
 */
void lease_close(struct lease_store *store)
{
	if (store->lock >= 0 && store->indexed)
		note_indexed(store);
	mem_close_fd(&store->index);
	mem_close_fd(&store->lock);
	mem_close_fd(&store->dir);
	free(store->path);
	*store = (struct lease_store)LEASE_STORE;
}

/* ---- one lease -------------------------------------------------------------------- */

static void split(struct lease_text *t, size_t len)
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

/**
 * lease_read() - who has an address
 * @ret: of what is no file, or is too long for a lease, nobody's
 *
 * Return: 1, 0 when nobody has it, or a negative errno when that cannot be told now
 */
int lease_read(const struct lease_store *store, const struct hw_ip *ip, struct lease_text *ret,
	       struct stat *ret_st)
{
	char name[HW_IP_TEXT];
	autoclose int fd = -1;

	ret->owner = (struct lease_owner){ 0 };
	if (!ip->family)
		return 0;
	fd = openat(store->dir, hw_ip_format(ip, name),
		    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 && (errno == ENOENT || errno == ELOOP || errno == ENXIO))
		return errno != ENOENT;
	if (fd < 0)
		return -errno;
	ssize_t len = read(fd, ret->text, sizeof(ret->text));
	if (len < 0 && errno != EISDIR)
		return -errno;
	if (ret_st && fstat(fd, ret_st) < 0)
		return -errno;
	if (len >= 0 && (size_t)len < sizeof(ret->text))
		split(ret, (size_t)len);
	return 1;
}

static enum lease_match match(const struct lease_text *t, const struct lease_owner *owner)
{
	if (!t->owner.container_id)
		return LEASE_OTHER;
	if (str_empty(t->owner.container_id) && !t->owner.ifname)
		return LEASE_EMPTY;
	if (!str_equal(t->owner.container_id, owner->container_id))
		return LEASE_OTHER;
	if (!t->owner.ifname)
		return LEASE_ID_ONLY;
	return str_equal(t->owner.ifname, owner->ifname) ? LEASE_WHOLE : LEASE_OTHER;
}

/**
 * lease_match() - has the owner that address?
 */
int lease_match(const struct lease_store *store, const struct hw_ip *ip,
		const struct lease_owner *owner)
{
	struct lease_text t;

	int r = lease_read(store, ip, &t, NULL);
	if (r < 0)
		return r;
	return r ? (int)match(&t, owner) : LEASE_NONE;
}

/**
 * lease_is_agreed() - is the lease of the owner whose hash an entry of the index has?
 */
int lease_is_agreed(const struct lease_store *store, const char *entry, const struct hw_ip *ip)
{
	char hex[INDEX_HASH + 1];
	struct lease_text t;

	int r = lease_read(store, ip, &t, NULL);
	if (r <= 0 || !t.owner.container_id || !t.owner.ifname)
		return r < 0 ? r : 0;
	index_hash(&t.owner, hex);
	return strncmp(entry, hex, INDEX_HASH) == 0;
}

/**
 * lease_unlink() - end a lease, whoever has it
 */
int lease_unlink(const struct lease_store *store, const struct hw_ip *ip, struct hw_err *e)
{
	char name[HW_IP_TEXT];

	if (unlinkat(store->dir, hw_ip_format(ip, name), 0) < 0 && errno != ENOENT)
		return err_set(e, -errno, "end lease %s in %s", name, store->path);
	return 0;
}

static int write_lease(int fd, const struct lease_owner *owner, struct hw_err *e)
{
	autofree char *text = str_printf("%s" LEASE_BREAK "%s", owner->container_id, owner->ifname);

	if (strlen(text) >= LEASE_TEXT_MAX) /* nobody could end it */
		return err_text(e, -ENAMETOOLONG, "the container's ID is too long");
	return file_write_fd(fd, text, strlen(text), e);
}

/**
 * lease_take() - lease an address, unless somebody has it
 */
int lease_take(struct lease_store *store, const struct lease_owner *owner, const struct hw_ip *ip,
	       struct hw_err *e)
{
	char name[HW_IP_TEXT];
	struct hw_err again;
	autoclose int fd = openat(store->dir, hw_ip_format(ip, name),
				  O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0 && errno == EEXIST)
		return 1;
	if (fd < 0)
		return err_set(e, -errno, "lease %s in %s", name, store->path);
	int r = write_lease(fd, owner, e);
	if (r >= 0 && close(take_fd(fd)) < 0)
		r = err_set(e, -errno, "close");
	if (r < 0)
		err_ctx(e, "lease %s in %s", name, store->path);
	else
		r = index_add(store, owner, ip, e);
	if (r < 0 && lease_unlink(store, ip, &again) < 0)
		store->indexed = false;
	return r;
}

/**
 * lease_finish() - all that the owner took is taken
 */
int lease_finish(struct lease_store *store, const struct lease_owner *owner, struct hw_err *e)
{
	int r = 1;

	for (unsigned n = 0; r > 0; n++)
		r = index_stamp(store->index, owner, n, e);
	return r;
}

/**
 * lease_find() - the owner's leases of this boot, by the index alone
 */
int lease_find(const struct lease_store *store, const struct lease_owner *owner,
	       struct ip_list *ret_list, struct hw_err *e)
{
	struct hw_ip ip;
	int r;

	for (unsigned n = 0; (r = index_get(store->index, owner, n, &ip)) > 0; n++)
		if (lease_match(store, &ip, owner) == LEASE_WHOLE)
			ip_list_add(ret_list, &ip);
	return r < 0 ? err_set(e, r, "read the index of %s", store->path) : 0;
}

/* ---- all of them ------------------------------------------------------------------- */

/**
 * lease_list() - all addresses that are taken, ascending
 *
 * Not file_walk(): with 65,000 names its copies and its sorting are most of the time.
 */
int lease_list(const struct lease_store *store, struct ip_list *ret_list, struct hw_err *e)
{
	int fd = openat(store->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	struct hw_err none;
	struct hw_ip ip;

	if (!d)
		return err_set(e, -errno, "read %s", store->path);
	for (errno = 0; (entry = readdir(d)); errno = 0)
		if (isxdigit((unsigned char)entry->d_name[0]) || entry->d_name[0] == ':')
			if (hw_ip_parse(entry->d_name, &ip, &none) == 0)
				ip_list_add(ret_list, &ip);
	int r = errno ? err_set(e, -errno, "read %s", store->path) : 0;
	closedir(d);
	ip_list_sort(ret_list);
	return r;
}

/* ---- which address was last -------------------------------------------------------- */

static void last_name(size_t set, char name[40])
{
	snprintf(name, 40, "last_reserved_ip.%zu", set);
}

/**
 * lease_last() - the address handed out last from a set
 */
struct hw_ip lease_last(const struct lease_store *store, size_t set)
{
	char name[40], text[HW_IP_TEXT + 1] = "";
	struct hw_ip ip = { 0 };
	struct hw_err e;

	last_name(set, name);
	autoclose int fd = openat(store->dir, name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd >= 0 && read(fd, text, HW_IP_TEXT) > 0)
		(void)hw_ip_parse(text, &ip, &e);
	return ip;
}

/**
 * lease_set_last() - remember it
 *
 * Written over what is there, so that a full disk is no obstacle.
 */
int lease_set_last(const struct lease_store *store, size_t set, const struct hw_ip *ip,
		   struct hw_err *e)
{
	char name[40], text[HW_IP_TEXT];

	last_name(set, name);
	autoclose int fd =
		openat(store->dir, name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_set(e, -errno, "open %s/%s", store->path, name);
	size_t len = strlen(hw_ip_format(ip, text));
	int r = file_write_fd(fd, text, len, e);
	if (r >= 0 && ftruncate(fd, (off_t)len) < 0)
		r = err_set(e, -errno, "truncate");
	return r < 0 ? err_ctx(e, "%s/%s", store->path, name) : 0;
}

/* ---- the end of leases ----- */

/*
 * How:   the lease first, then its place in the index: killed in between, the
 *        next DEL finds the place and nothing behind it.
 *        Where the caller does not know the leases one look into all files tells,
 *        because upstream's plugin may have made some, or a killed ADD of ours; it
 *        also removes what killed writers left empty. Not where the index is known
 *        to have all, which such a look finds out. And where the index says that
 *        the ADD was never done: it may have been killed between a lease and its
 *        entry.
 */

/**
 * lease_end() - end one lease, if it is the owner's
 *
 * Return: 1 when it was
 */
int lease_end(struct lease_store *store, const struct lease_owner *owner, const struct hw_ip *ip,
	      struct hw_err *e)
{
	int r = lease_match(store, ip, owner);
	if (r < 0)
		return err_set(e, r, "read a lease in %s", store->path);
	if (r != LEASE_WHOLE)
		return 0;
	r = lease_unlink(store, ip, e);
	if (r < 0)
		return r;
	r = index_remove(store->index, owner, ip);
	return r < 0 ? err_set(e, r, "end a lease in the index of %s", store->path) : 1;
}

/* All that one folder of the index knows of the owner, from the end. */
static int end_indexed(const struct lease_store *store, int folder, const struct lease_owner *owner,
		       bool *ret_unfinished, struct hw_err *e)
{
	char name[INDEX_NAME];
	struct hw_ip ip;
	unsigned n = 0;
	int ended = 0, r;

	while ((r = index_get(folder, owner, n, &ip)) > 0)
		n++;
	if (r < 0)
		return err_set(e, r, "read the index of %s", store->path);
	while (n-- > 0) {
		if (!index_is_finished(folder, owner, n))
			*ret_unfinished = true;
		r = index_get(folder, owner, n, &ip);
		if (r >= 0)
			r = lease_match(store, &ip, owner);
		if (r < 0)
			return err_set(e, r, "read a lease in %s", store->path);
		if (r == LEASE_WHOLE || r == LEASE_EMPTY) {
			r = lease_unlink(store, &ip, e);
			if (r < 0)
				return r;
			ended++;
		}
		index_name(owner, n, name);
		if (unlinkat(folder, name, 0) < 0 && errno != ENOENT)
			return err_set(e, -errno, "end a lease in the index of %s", store->path);
	}
	return ended;
}

static int end_in_folders(const struct lease_store *store, const struct lease_owner *owner,
			  bool *ret_unfinished, struct hw_err *e)
{
	AUTO(index_close_all) struct index_folders folders = { 0 };
	int ended = 0, r = index_open_all(store, &folders, e);

	for (size_t i = 0; r >= 0 && i < folders.n; i++) {
		r = end_indexed(store, folders.v[i].fd, owner, ret_unfinished, e);
		ended += r > 0 ? r : 0;
	}
	if (ended)
		index_tidy(store, &folders);
	return r < 0 ? r : ended;
}

/* Those of a list that match as well as asked. */
static int end_matching(const struct lease_store *store, const struct lease_owner *owner,
			const struct ip_list *list, enum lease_match want, struct hw_err *e)
{
	int ended = 0;

	for (size_t i = 0; i < list->n; i++) {
		int r = lease_match(store, &list->v[i], owner);
		if (r < 0)
			return err_set(e, r, "read a lease in %s", store->path);
		if (r != (int)want)
			continue;
		r = lease_unlink(store, &list->v[i], e);
		if (r < 0)
			return r;
		ended++;
	}
	return ended;
}

/* As upstream: those of the container alone only where there is none of the interface. */
static int end_listed(const struct lease_store *store, const struct lease_owner *owner,
		      const struct ip_list *list, struct hw_err *e)
{
	int r = end_matching(store, owner, list, LEASE_WHOLE, e);

	return r ? r : end_matching(store, owner, list, LEASE_ID_ONLY, e);
}

/* One look into all files sorts the few that matter out. */
static int look_for(const struct lease_store *store, const struct lease_owner *owner,
		    struct ip_list *ret_owners, struct ip_list *ret_empty, struct hw_err *e)
{
	AUTO(ip_list_done) struct ip_list all = { 0 };
	int r = lease_list(store, &all, e);

	for (size_t i = 0; r >= 0 && i < all.n; i++) {
		int m = lease_match(store, &all.v[i], owner);

		if (m < 0)
			return err_set(e, m, "read a lease in %s", store->path);
		if (m == LEASE_WHOLE || m == LEASE_ID_ONLY)
			ip_list_add(ret_owners, &all.v[i]);
		else if (m == LEASE_EMPTY)
			ip_list_add(ret_empty, &all.v[i]);
	}
	return r;
}

static bool is_in_folders(const struct lease_store *store, const struct index_folders *folders,
			  const struct hw_ip *ip)
{
	struct lease_text t;

	if (lease_read(store, ip, &t, NULL) <= 0 || !t.owner.ifname)
		return false;
	for (size_t i = 0; i < folders->n; i++)
		if (index_has(folders->v[i].fd, &t.owner, ip))
			return true;
	return false;
}

/**
 * lease_look_at_index() - has the index all leases?
 */
int lease_look_at_index(struct lease_store *store, struct hw_err *e)
{
	AUTO(index_close_all) struct index_folders folders = { 0 };
	AUTO(ip_list_done) struct ip_list all = { 0 };
	int r = index_open_all(store, &folders, e);

	if (r >= 0)
		r = lease_list(store, &all, e);
	if (r < 0)
		return r;
	store->indexed = true;
	for (size_t i = 0; store->indexed && i < all.n; i++)
		store->indexed = is_in_folders(store, &folders, &all.v[i]);
	return 0;
}

static int end_found(struct lease_store *store, const struct lease_owner *owner, struct hw_err *e)
{
	AUTO(ip_list_done) struct ip_list owners = { 0 }, empty = { 0 };
	int r = look_for(store, owner, &owners, &empty, e);

	if (r >= 0)
		r = end_matching(store, owner, &empty, LEASE_EMPTY, e);
	if (r >= 0)
		r = end_listed(store, owner, &owners, e);
	return r < 0 ? r : lease_look_at_index(store, e);
}

/**
 * lease_end_all() - end all the owner's leases
 * @known: addresses that the owner had, as a result says
 */
int lease_end_all(struct lease_store *store, const struct lease_owner *owner,
		  const struct ip_list *known, struct hw_err *e)
{
	bool unfinished = false;
	int ended = end_in_folders(store, owner, &unfinished, e);
	if (ended < 0)
		return ended;
	int r = ended ? end_matching(store, owner, known, LEASE_WHOLE, e)
		      : end_listed(store, owner, known, e);
	if (r >= 0 && (unfinished || (known->n == 0 && !store->indexed)))
		r = end_found(store, owner, e);
	return r < 0 ? r : 0;
}

/**
 * lease_has_any() - has the owner any lease?
 */
int lease_has_any(const struct lease_store *store, const struct lease_owner *owner,
		  struct hw_err *e)
{
	AUTO(ip_list_done) struct ip_list owners = { 0 }, empty = { 0 };

	int r = lease_find(store, owner, &owners, e);
	if (r >= 0 && !owners.n)
		r = look_for(store, owner, &owners, &empty, e);
	return r < 0 ? r : owners.n > 0;
}

/* ---- earlier boots ------------------------------------------------------------------ */

struct stale {
	const struct lease_store *store;
	int folder;
	struct ip_list *list;
};

/* Has its owner leased it anew since the boot? A DEL that was killed may have left the old entry. */
static bool is_leased_anew(const struct lease_store *store, const struct hw_ip *ip)
{
	struct lease_text t;

	return lease_read(store, ip, &t, NULL) > 0 && t.owner.ifname &&
	       index_stamped(store->index, &t.owner, ip) > 0;
}

static int add_stale(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	struct stale *s = ctx;
	struct hw_ip ip;

	(void)e;
	if (index_read(s->folder, entry->name, &ip) > 0 &&
	    lease_is_agreed(s->store, entry->name, &ip) > 0 && !is_leased_anew(s->store, &ip))
		ip_list_add(s->list, &ip);
	return 0;
}

/**
 * lease_list_stale() - what this machine leased before it was booted
 */
int lease_list_stale(const struct lease_store *store, struct ip_list *ret_list, struct hw_err *e)
{
	AUTO(index_close_all) struct index_folders folders = { 0 };
	int r = index_open_all(store, &folders, e);

	for (size_t i = 0; r >= 0 && i < folders.n; i++) {
		struct stale s = { store, folders.v[i].fd, ret_list };

		if (folders.v[i].time == INDEX_EARLIER)
			r = file_walk(s.folder, ".", add_stale, &s, e);
	}
	ip_list_sort(ret_list);
	return r;
}

static int remove_entry(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	(void)ctx;
	return file_remove(entry->dir, entry->name, e) < 0 ? e->code : 0;
}

/**
 * lease_end_stale() - end what this machine leased before it was booted
 *
 * No pod lives through that.
 */
int lease_end_stale(struct lease_store *store, struct hw_err *e)
{
	AUTO(index_close_all) struct index_folders folders = { 0 };
	AUTO(ip_list_done) struct ip_list list = { 0 };
	int r = lease_list_stale(store, &list, e);

	for (size_t i = 0; r >= 0 && i < list.n; i++)
		r = lease_unlink(store, &list.v[i], e);
	if (r >= 0)
		r = index_open_all(store, &folders, e);
	for (size_t i = 0; r >= 0 && i < folders.n; i++)
		if (folders.v[i].time == INDEX_EARLIER)
			r = file_walk(folders.v[i].fd, ".", remove_entry, NULL, e);
	index_tidy(store, &folders);
	return r < 0 ? r : (int)list.n;
}
