/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/sysctl.c - read and write sysctls, the files under /proc/sys
 *
 * How:   a file is opened only once, for reading and writing, because the path
 *        lookup is the expensive part.
 *        The kernel caches path lookups per procfs mount, and the cached entries of
 *        all namespaces have the same names: with every new pod the lookups get
 *        slower. The files of pods are therefore looked up in a private instance
 *        of procfs, which is not attached to any directory and disappears when its
 *        last descriptor is closed.
 */
#include "net/sysctl.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/os/file.h"
#include "base/str.h"
#include "net/netns.h"
#include "net/sender.h"

#define SYSCTL_VALUE_MAX 65536 /* the longest values have one or two pages */

/* Converts a name to a path under /proc/sys, by the rules of sysctl(8). Return: NULL if the name is
 * invalid */
static char *sysctl_path(const char *name)
{
	const char *first = strpbrk(name, "./");
	autofree char *path = str_printf("/proc/sys/%s", name);
	char *key = path + strlen("/proc/sys/");
	size_t len;

	if (first && *first == '.')
		for (char *c = key; *c; c++)
			*c = *c == '.' ? '/' : *c == '/' ? '.' : *c;
	/* The parts "", "." and ".." do not lead to a subdirectory and are invalid. */
	for (const char *part = key;; part += len + 1) {
		len = strcspn(part, "/");
		if (len == 0 || (len == 1 && part[0] == '.') ||
		    (len == 2 && part[0] == '.' && part[1] == '.'))
			return NULL;
		if (part[len] == '\0')
			return take_ptr(path);
	}
}

static int sysctl_read_fd(int fd, const char *path, char **ret_value, struct hw_err *e)
{
	AUTO(buf_done) struct buf text = { 0 };
	int r;

	r = file_read_fd(fd, SYSCTL_VALUE_MAX, &text, e);
	if (r < 0)
		return err_ctx(e, "read sysctl %s", path);
	if (text.len > 0 && text.data[text.len - 1] == '\n')
		text.len--;
	*ret_value = str_ncopy(text.len ? text.data : "", text.len);
	return 0;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the variable below */
static int private_proc = -1;				 /* the private procfs, if it is mounted */

static int mount_private_proc(void)
{
	autoclose int fs = -1;

	fs = fsopen("proc", FSOPEN_CLOEXEC);
	if (fs < 0 || fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -1;
	return fsmount(fs, FSMOUNT_CLOEXEC, 0);
}

/* @pod: open the file in the private procfs, if that can be mounted */
static int sysctl_open(const char *path, bool pod, int flags)
{
	int fd = -1;

	flags |= O_CLOEXEC | O_NOFOLLOW;
	if (!pod)
		return open(path, flags);
	pthread_mutex_lock(&lock);
	if (private_proc < 0)
		private_proc = mount_private_proc();
	fd = private_proc < 0 ? open(path, flags)
			      : openat(private_proc, path + strlen("/proc/"), flags);
	pthread_mutex_unlock(&lock);
	return fd;
}

void sysctl_release(void)
{
	pthread_mutex_lock(&lock);
	if (private_proc >= 0)
		sender_hold(private_proc);
	mem_close_fd(&private_proc);
	pthread_mutex_unlock(&lock);
}

static int sysctl_read_file(const char *path, bool pod, char **ret_value, struct hw_err *e)
{
	autoclose int fd = -1;

	fd = sysctl_open(path, pod, O_RDONLY);
	if (fd < 0)
		return err_set(e, -errno, "read sysctl %s", path);
	return sysctl_read_fd(fd, path, ret_value, e);
}

/* Writes the value with one write() at offset 0: the kernel does not accept it in pieces. */
static int sysctl_write_fd(int fd, const char *path, const char *value, struct hw_err *e)
{
	if (fd < 0 || pwrite(fd, value, strlen(value), 0) < 0)
		return err_set(e, -errno, "write \"%s\" to sysctl %s", value, path);
	return 0;
}

/* Handles a file that cannot be opened for both reading and writing. A file that cannot be read is
 * written without a comparison. */
static int sysctl_write_fallback(const char *path, bool pod, const char *value, struct hw_err *e)
{
	autofree char *old = NULL;
	autoclose int fd = -1;
	struct hw_err why;
	int r;

	r = sysctl_read_file(path, pod, &old, &why);
	if (r < 0 && r != -EACCES && r != -EPERM) {
		*e = why;
		return r;
	}
	if (old && sysctl_equal(old, value))
		return 1;
	fd = sysctl_open(path, pod, O_WRONLY);
	return sysctl_write_fd(fd, path, value, e);
}

int sysctl_read(int netns_fd, const char *name, char **ret_value, struct hw_err *e)
{
	AUTO(netns_leave) struct netns_home home = NETNS_HOME;
	autofree char *path = NULL;
	int r;

	path = sysctl_path(name);
	if (!path)
		return err_text(e, -EINVAL, "invalid sysctl name \"%s\"", name);
	r = netns_fd < 0 ? 0 : netns_enter(netns_fd, &home, e);
	return r < 0 ? r : sysctl_read_file(path, netns_fd != -1, ret_value, e);
}

int sysctl_write(int netns_fd, const char *name, const char *value, struct hw_err *e)
{
	AUTO(netns_leave) struct netns_home home = NETNS_HOME;
	autofree char *path = NULL, *old = NULL;
	autoclose int fd = -1;
	bool pod = netns_fd != -1;
	int r;

	path = sysctl_path(name);
	if (!path)
		return err_text(e, -EINVAL, "invalid sysctl name \"%s\"", name);
	r = netns_fd < 0 ? 0 : netns_enter(netns_fd, &home, e);
	if (r < 0)
		return r;
	fd = sysctl_open(path, pod, O_RDWR);
	if (fd < 0)
		return sysctl_write_fallback(path, pod, value, e);
	r = sysctl_read_fd(fd, path, &old, e);
	if (r < 0)
		return r;
	return sysctl_equal(old, value) ? 1 : sysctl_write_fd(fd, path, value, e);
}

static const char *sysctl_skip_space(const char *s)
{
	while (isspace((unsigned char)*s))
		s++;
	return s;
}

bool sysctl_equal(const char *a, const char *b)
{
	a = sysctl_skip_space(a);
	b = sysctl_skip_space(b);
	while (*a && *b) {
		size_t len = strcspn(a, " \t\n");

		if (strcspn(b, " \t\n") != len || memcmp(a, b, len) != 0)
			return false;
		a = sysctl_skip_space(a + len);
		b = sysctl_skip_space(b + len);
	}
	return *a == *b;
}

/* The first separator is a slash, so dots in the link's name are not swapped. */
static char *sysctl_conf_name(int family, const char *link, const char *key)
{
	return str_printf("net/%s/conf/%s/%s", family == AF_INET ? "ipv4" : "ipv6", link, key);
}

int sysctl_read_conf(int netns_fd, int family, const char *link, const char *key, char **ret_value,
		     struct hw_err *e)
{
	autofree char *name = sysctl_conf_name(family, link, key);

	return sysctl_read(netns_fd, name, ret_value, e);
}

int sysctl_write_conf(int netns_fd, int family, const char *link, const char *key,
		      const char *value, struct hw_err *e)
{
	autofree char *name = sysctl_conf_name(family, link, key);

	return sysctl_write(netns_fd, name, value, e);
}
