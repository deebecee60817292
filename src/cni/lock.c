/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/lock.c - locks between GC, ADD and DEL of a network
 *
 * What:  the spec forbids a GC of a network while its ADDs and DELs run, and
 *        two calls for the same attachment at the same time. The kernel
 *        releases a lock when the process that holds it exits.
 * How:   the file is STATE/locks/HOLDER-HASH. HOLDER is "libhawser" or the
 *        plugin's name; HASH is the hash of the network's name, which may
 *        contain any character. flock() locks the network. The lock of an
 *        attachment is a lock on one byte of the same, empty file, so that
 *        attachments need no files of their own: the offset is a hash of 60
 *        bits. Two attachments with the same hash would only wait for each
 *        other.
 * Rules: lock files are never removed. Otherwise a process that waits for the
 *        removed file and a process that creates a new file could both hold
 *        the lock.
 */
#include "cni/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/os/file.h"
#include "base/str.h"

#define LOCK_HASH_DIGITS   32
#define LOCK_OFFSET_DIGITS 15 /* hexadecimal; 60 bits */

char *state_dir_default(void)
{
	const char *dir = getenv("HAWSER_STATE");

	if (!str_empty(dir))
		return str_copy(dir);
	dir = getenv("XDG_RUNTIME_DIR");
	if (geteuid() != 0 && !str_empty(dir))
		return str_printf("%s/hawser", dir);
	return str_copy("/run/hawser");
}

int lock_file(const char *state_dir, const char *name, bool exclusive, int64_t deadline,
	      int *ret_fd, struct hw_err *e)
{
	autofree char *dir = str_printf("%s/locks", state_dir);
	autofree char *path = str_printf("%s/%s", dir, name);
	int r;

	r = file_lock(AT_FDCWD, path, exclusive, deadline, ret_fd, e);
	if (r == -ENOENT) {
		r = file_mkdirs(AT_FDCWD, dir, 0700, e);
		if (r >= 0)
			r = file_lock(AT_FDCWD, path, exclusive, deadline, ret_fd, e);
	}
	return r;
}

int lock_acquire(const char *state_dir, const char *network, const char *holder, bool exclusive,
		 int64_t deadline, int *ret_fd, struct hw_err *e)
{
	autofree char *name = NULL;
	char hash[LOCK_HASH_DIGITS + 1];
	int r;

	hash_hex(network, LOCK_HASH_DIGITS, hash);
	name = str_printf("%s-%s", holder, hash);
	r = lock_file(state_dir, name, exclusive, deadline, ret_fd, e);
	if (r >= 0)
		return 0;
	if (r == -ETIMEDOUT)
		return err_cni(e, HW_CNI_TRY_AGAIN,
			       "network \"%s\" is busy: timed out waiting for %s", network,
			       exclusive ? "running ADDs and DELs" : "a running GC");
	err_ctx(e, "lock network \"%s\"", network);
	if (r == -EACCES || r == -EROFS || r == -EPERM)
		err_details(e, "set HAWSER_STATE, or state_dir in struct hw_cni_options, to a "
			       "writable directory");
	return r;
}

int lock_attachment(int fd, const char *container_id, const char *ifname, int64_t deadline,
		    struct hw_err *e)
{
	const char *parts[] = { container_id, ifname };
	char hash[LOCK_OFFSET_DIGITS + 1];
	int r;

	hash_parts(parts, ARRAY_SIZE(parts), LOCK_OFFSET_DIGITS, hash);
	r = file_lock_byte(fd, strtoll(hash, NULL, 16), deadline, e);
	if (r == -ETIMEDOUT)
		return err_cni(e, HW_CNI_TRY_AGAIN,
			       "container %s interface %s is busy: timed out waiting for a running "
			       "ADD or DEL",
			       container_id, ifname);
	return r < 0 ? err_ctx(e, "lock container %s interface %s", container_id, ifname) : 0;
}
