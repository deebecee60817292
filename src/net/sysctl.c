/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/sysctl.c - the files under /proc/sys
 *
 * What:  read a value, write one unless it is there already.
 * How:   the file is opened inside the namespace, and once for both: to look it up
 *        is the expensive part. Only what cannot be read and written is opened
 *        twice.
 *        The kernel keeps what was looked up below a /proc, those of all namespaces
 *        under the same names: every pod would make it slower for the next. So
 *        pods' files are looked up below a procfs of our own, which is mounted
 *        nowhere and goes with us.
 */
#include "net/sysctl.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/os/file.h"
#include "base/str.h"
#include "net/netns.h"

#define SYSCTL_VALUE_MAX 65536 /* the longest are a page or two */
#define NOT_TRIED	 (-2)  /* to have a procfs of our own */

/* Parts that lead somewhere else than down are refused. */
static bool sysctl_is_name(const char *name)
{
	for (const char *part = name;; part++) {
		size_t len = strcspn(part, "/");

		if (len == 0 || (len == 1 && part[0] == '.') ||
		    (len == 2 && part[0] == '.' && part[1] == '.'))
			return false;
		part += len;
		if (*part == '\0')
			return true;
	}
}

/* The path under /proc/sys, as sysctl(8) reads a name; NULL when it is none. */
static char *sysctl_path(const char *name)
{
	const char *first = strpbrk(name, "./");
	char *path = str_printf("/proc/sys/%s", name), *key = path + strlen("/proc/sys/");

	if (first && *first == '.')
		for (char *c = key; *c; c++)
			*c = *c == '.' ? '/' : *c == '/' ? '.' : *c;
	if (sysctl_is_name(key))
		return path;
	free(path);
	return NULL;
}

static int sysctl_read_fd(int fd, const char *path, char **ret_value, struct hw_err *e)
{
	AUTO(buf_done) struct buf text = { 0 };
	int r = file_read_fd(fd, SYSCTL_VALUE_MAX, &text, e);

	if (r < 0)
		return err_ctx(e, "read sysctl %s", path);
	if (text.len > 0 && text.data[text.len - 1] == '\n')
		text.len--;
	*ret_value = str_ncopy(text.len ? text.data : "", text.len);
	return 0;
}

static int sysctl_make_proc(void)
{
	autoclose int fs = fsopen("proc", FSOPEN_CLOEXEC);

	if (fs < 0 || fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -1;
	return fsmount(fs, FSMOUNT_CLOEXEC, 0);
}

/* @pod: below our own procfs, where we may have one */
static int sysctl_open(const char *path, bool pod, int flags)
{
	static int proc = NOT_TRIED;

	if (pod && proc == NOT_TRIED)
		proc = sysctl_make_proc();
	flags |= O_CLOEXEC | O_NOFOLLOW;
	return pod && proc >= 0 ? openat(proc, path + strlen("/proc/"), flags) : open(path, flags);
}

static int sysctl_read_file(const char *path, bool pod, char **ret_value, struct hw_err *e)
{
	autoclose int fd = sysctl_open(path, pod, O_RDONLY);

	if (fd < 0)
		return err_set(e, -errno, "read sysctl %s", path);
	return sysctl_read_fd(fd, path, ret_value, e);
}

/* One write(), at the start: the kernel takes a value whole. */
static int sysctl_write_fd(int fd, const char *path, const char *value, struct hw_err *e)
{
	if (fd < 0 || pwrite(fd, value, strlen(value), 0) < 0)
		return err_set(e, -errno, "write \"%s\" to sysctl %s", value, path);
	return 0;
}

/* Some files can be written only; then there is nothing to compare with. */
static int sysctl_update_apart(const char *path, bool pod, const char *value, struct hw_err *e)
{
	autofree char *old = NULL;
	autoclose int fd = -1;
	struct hw_err why;
	int r = sysctl_read_file(path, pod, &old, &why);

	if (r < 0 && r != -EACCES && r != -EPERM) {
		*e = why;
		return r;
	}
	if (old && sysctl_equal(old, value))
		return 1;
	fd = sysctl_open(path, pod, O_WRONLY);
	return sysctl_write_fd(fd, path, value, e);
}

static int sysctl_update_file(const char *path, bool pod, const char *value, struct hw_err *e)
{
	autoclose int fd = sysctl_open(path, pod, O_RDWR);
	autofree char *old = NULL;
	int r;

	if (fd < 0)
		return sysctl_update_apart(path, pod, value, e);
	r = sysctl_read_fd(fd, path, &old, e);
	if (r < 0)
		return r;
	return sysctl_equal(old, value) ? 1 : sysctl_write_fd(fd, path, value, e);
}

static int sysctl_enter(int netns_fd, struct netns_home *home, struct hw_err *e)
{
	return netns_fd < 0 ? 0 : netns_enter(netns_fd, home, e);
}

/**
 * sysctl_read() - the value of a sysctl
 * @netns_fd:  the namespace to look in; -1 is where we are, SYSCTL_POD too
 * @name:      "net/ipv4/ip_forward" or "net.ipv4.ip_forward"
 * @ret_value: without its line end; to be freed by the caller
 */
int sysctl_read(int netns_fd, const char *name, char **ret_value, struct hw_err *e)
{
	AUTO(netns_leave) struct netns_home home = NETNS_HOME;
	autofree char *path = sysctl_path(name);
	int r;

	if (!path)
		return err_text(e, -EINVAL, "invalid sysctl name \"%s\"", name);
	r = sysctl_enter(netns_fd, &home, e);
	return r < 0 ? r : sysctl_read_file(path, netns_fd != -1, ret_value, e);
}

/**
 * sysctl_write() - set a sysctl
 * @netns_fd: the namespace to set it in; -1 is where we are, SYSCTL_POD too
 * @name:     as for sysctl_read()
 *
 * Return: 0; 1 when it had that value and was not written; or a negative errno
 */
int sysctl_write(int netns_fd, const char *name, const char *value, struct hw_err *e)
{
	AUTO(netns_leave) struct netns_home home = NETNS_HOME;
	autofree char *path = sysctl_path(name);
	int r;

	if (!path)
		return err_text(e, -EINVAL, "invalid sysctl name \"%s\"", name);
	r = sysctl_enter(netns_fd, &home, e);
	return r < 0 ? r : sysctl_update_file(path, netns_fd != -1, value, e);
}

static const char *sysctl_skip_space(const char *s)
{
	while (isspace((unsigned char)*s))
		s++;
	return s;
}

/** sysctl_equal() - are two values the same, word by word? */
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

/* Starts with "net/", so a dot in the link's name stays one. */
static char *sysctl_conf_name(int family, const char *link, const char *key)
{
	return str_printf("net/%s/conf/%s/%s", family == AF_INET ? "ipv4" : "ipv6", link, key);
}

/** sysctl_read_conf() - sysctl_read() of a link's IPv4 or IPv6 setting */
int sysctl_read_conf(int netns_fd, int family, const char *link, const char *key, char **ret_value,
		     struct hw_err *e)
{
	autofree char *name = sysctl_conf_name(family, link, key);

	return sysctl_read(netns_fd, name, ret_value, e);
}

/** sysctl_write_conf() - sysctl_write() of a link's IPv4 or IPv6 setting */
int sysctl_write_conf(int netns_fd, int family, const char *link, const char *key,
		      const char *value, struct hw_err *e)
{
	autofree char *name = sysctl_conf_name(family, link, key);

	return sysctl_write(netns_fd, name, value, e);
}
