/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/netns.c - network namespaces by path
 *
 * What:  open a namespace safely, step into it and back.
 * How:   a namespace file lives on nsfs (a bind mount) or on procfs; anything
 *        else is refused before it is opened, as a path from outside may be a
 *        FIFO or a device.
 * Rules: a thread that cannot get home again must not go on in a pod: abort.
 */
#include "net/netns.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/log.h"
#include "base/os/file.h"

/**
 * netns_open() - a descriptor of the namespace at @path
 *
 * Texts are upstream's (facts 4.0.1).
 *
 * Return: 0, -ENOENT when there is no such path, -EINVAL when it is no namespace, or another negative
 * errno
 */
int netns_open(const char *path, int *ret_fd, struct hw_err *e)
{
	struct statfs fs;
	int fd;

	if (statfs(path, &fs) < 0)
		return err_set(e, -errno, "failed to Statfs \"%s\"", path);
	if (fs.f_type != NSFS_MAGIC && fs.f_type != PROC_SUPER_MAGIC)
		return err_text(e, -EINVAL, "unknown FS magic on \"%s\": %lx", path,
				(unsigned long)fs.f_type);

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_set(e, -errno, "open namespace \"%s\"", path);
	*ret_fd = fd;
	return 0;
}

/**
 * netns_find() - the namespace at @path, if there is still one
 *
 * A namespace is bound to an empty file: when it is unmounted, by a reboot or
 * by hand, the file may stay. Upstream's plugins then fail for ever.
 *
 * Return: 1, 0 when there is none, or a negative errno
 */
int netns_find(const char *path, int *ret_fd, struct hw_err *e)
{
	if (!*path)
		return 0;
	int r = netns_open(path, ret_fd, e);
	if (r == -ENOENT || r == -ENOTDIR || r == -EINVAL)
		return 0;
	return r < 0 ? r : 1;
}

/**
 * netns_enter() - move this thread into a network namespace
 * @fd:   the namespace
 * @home: where netns_leave() will go back to
 *
 * Return: 0, or a negative errno and the thread is where it was
 */
int netns_enter(int fd, struct netns_home *home, struct hw_err *e)
{
	autoclose int here = file_own_netns();

	if (here < 0)
		return err_set(e, -errno, "open our own network namespace");
	if (setns(fd, CLONE_NEWNET) < 0)
		return err_set(e, -errno, "enter network namespace");
	home->fd = take_fd(here);
	return 0;
}

/** netns_leave() - back to where netns_enter() was called; twice is harmless */
void netns_leave(struct netns_home *home)
{
	if (home->fd < 0)
		return;
	if (setns(home->fd, CLONE_NEWNET) < 0) {
		log_error("cannot return to our own network namespace: %m");
		abort();
	}
	mem_close_fd(&home->fd);
}
