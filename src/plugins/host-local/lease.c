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
#include "plugins/host-local/lease-file.h"
#include "plugins/host-local/lease-index.h"

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
	       struct lease_list *ret_list, struct hw_err *e)
{
	struct hw_ip ip;
	int r;

	for (unsigned n = 0; (r = index_get(store->index, owner, n, &ip)) > 0; n++)
		if (lease_match(store, &ip, owner) == LEASE_WHOLE)
			lease_list_add(ret_list, &ip);
	return r < 0 ? err_set(e, r, "read the index of %s", store->path) : 0;
}

/* ---- all of them ------------------------------------------------------------------- */

/**
 * lease_list() - all addresses that are taken, ascending
 *
 * Not file_walk(): with 65,000 names its copies and its sorting are most of the time.
 */
int lease_list(const struct lease_store *store, struct lease_list *ret_list, struct hw_err *e)
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
				lease_list_add(ret_list, &ip);
	int r = errno ? err_set(e, -errno, "read %s", store->path) : 0;
	closedir(d);
	lease_list_sort(ret_list);
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
