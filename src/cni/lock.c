/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/lock.c - GC on one side, ADD and DEL on the other
 *
 * What:  the spec forbids a GC of a network during its ADDs and DELs; they are
 *        kept apart by flock(), which ends with the process that holds it.
 * How:   STATE/locks/TAKER-HASH, the hash being the network's name, which may
 *        hold anything.
 * Rules: lock files stay: removing one that somebody waits for would split the
 *        lock in two.
 */
#include "cni/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/os/file.h"
#include "base/str.h"

#define LOCK_HASH_DIGITS 32

/**
 * lock_state_dir() - where locks and records live when nobody says otherwise
 *
 * Return: $HAWSER_STATE; else $XDG_RUNTIME_DIR/hawser for others than root, who
 * cannot write below /run; else /run/hawser. To be freed.
 */
char *lock_state_dir(void)
{
	const char *dir = getenv("HAWSER_STATE");

	if (!str_empty(dir))
		return str_copy(dir);
	dir = getenv("XDG_RUNTIME_DIR");
	if (geteuid() != 0 && !str_empty(dir))
		return str_printf("%s/hawser", dir);
	return str_copy("/run/hawser");
}

static int lock_failed(int r, const char *network, bool exclusive, struct hw_err *e)
{
	if (r == -ETIMEDOUT)
		return err_cni(e, HW_CNI_TRY_AGAIN,
			       "network \"%s\" is busy: gave up waiting for %s to end", network,
			       exclusive ? "its ADDs and DELs" : "a GC");
	err_ctx(e, "lock network \"%s\"", network);
	if (r == -EACCES || r == -EROFS || r == -EPERM)
		err_details(e, "set HAWSER_STATE, or state_dir of the library, to a directory "
			       "that can be written");
	return r;
}

/**
 * lock_take() - hold a network against the other side
 * @state_dir: where the folder of locks is or will be
 * @network:   any name
 * @taker:     "libhawser", or the plugin's name
 * @exclusive: GC; else shared with other ADDs and DELs
 * @deadline:  when to give up, with CNI code 11
 * @ret_fd:    the lock; closing it, or dying, releases it
 *
 * Return: 0, or a negative errno
 */
int lock_take(const char *state_dir, const char *network, const char *taker, bool exclusive,
	      int64_t deadline, int *ret_fd, struct hw_err *e)
{
	autofree char *dir = str_printf("%s/locks", state_dir);
	autofree char *path = NULL;
	char hash[LOCK_HASH_DIGITS + 1];
	int r;

	hash_hex(network, LOCK_HASH_DIGITS, hash);
	path = str_printf("%s/%s-%s", dir, taker, hash);
	r = file_lock(AT_FDCWD, path, exclusive, deadline, ret_fd, e);
	if (r == -ENOENT) {
		r = file_mkdirs(AT_FDCWD, dir, 0700, e);
		if (r >= 0)
			r = file_lock(AT_FDCWD, path, exclusive, deadline, ret_fd, e);
	}
	return r < 0 ? lock_failed(r, network, exclusive, e) : 0;
}
