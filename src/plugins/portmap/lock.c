/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/portmap/lock.c - one change at a time to the ports of a container
 *
 * What:  attachments of one container share host ports (share.c). They are
 *        of different networks, and the locks of networks do not keep them apart.
 * How:   flock() of one of 64 files, chosen by a hash of the container's id; it ends
 *        with the process that holds it.
 *        One more, for chains, is for all containers, and taken only where one
 *        has to be made.
 * Rules: the innermost locks, the one for chains last. The files stay: removing one
 *        that somebody waits for would split the lock in two.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/os/file.h"
#include "base/str.h"
#include "base/time.h"
#include "cni/lock.h"
#include "plugins/portmap/portmap.h"

#define LOCKS 64

static int lock(const char *name, const char *what, int *ret_fd, struct hw_err *e)
{
	autofree char *state = lock_state_dir();
	autofree char *path = str_printf("%s/locks/portmap-%s", state, name);

	int r = file_lock(AT_FDCWD, path, true, time_deadline(LOCK_TIMEOUT_MS), ret_fd, e);
	if (r == -ETIMEDOUT)
		return err_cni(e, HW_CNI_TRY_AGAIN,
			       "%s are busy: gave up waiting for another ADD or DEL to end", what);
	return r < 0 ? err_ctx(e, "lock %s", what) : 0;
}

/**
 * portmap_lock() - keep other attachments of this container from changing their ports
 * @ret_fd: the lock; closing it, or dying, releases it
 *
 * Return: 0, or a negative errno; CNI code 11 when others do not end
 */
int portmap_lock(const struct hw_call *call, int *ret_fd, struct hw_err *e)
{
	autofree char *what = str_printf("the host ports of container %s", call->container_id);
	char hash[9], name[16];

	hash_hex(call->container_id, sizeof(hash) - 1, hash);
	snprintf(name, sizeof(name), "container-%02lu", strtoul(hash, NULL, 16) % LOCKS);
	return lock(name, what, ret_fd, e);
}

/**
 * portmap_lock_chains() - keep everybody else from making chains
 */
int portmap_lock_chains(int *ret_fd, struct hw_err *e)
{
	return lock("chains", "nftables chains for host ports", ret_fd, e);
}
