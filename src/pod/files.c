/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/files.c - the files that the containers of a pod share: resolv.conf, hosts, hostname, /dev/shm
 */
#include "pod/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/os/file.h"
#include "base/os/mount.h"
#include "base/str.h"

#define HOST_FILE_MAX (1 << 20) /* size of a file of the host that is copied */
#define SHM_OPTIONS   "mode=1777,size=65536k"

static int write_file(const char *dir, const char *name, const struct buf *text, struct hw_err *e)
{
	autofree char *path = str_printf("%s/%s", dir, name);

	return file_replace(AT_FDCWD, path, str_or(text->data, ""), text->len, 0644, 0, e);
}

/* Return: 0 also if the host does not have the file: then *ret stays empty */
static int read_host_file(const char *path, struct buf *ret, struct hw_err *e)
{
	int r;

	r = file_read_if_exists(AT_FDCWD, path, HOST_FILE_MAX, ret, e);
	return r < 0 ? r : 0;
}

static void put_words(struct buf *b, const char *keyword, const struct hw_strings *words)
{
	if (words->n == 0)
		return;
	buf_puts(b, keyword);
	for (size_t i = 0; i < words->n; i++)
		buf_printf(b, " %s", words->v[i]);
	buf_putc(b, '\n');
}

static int write_resolv_conf(const char *dir, const struct pod_spec *spec, struct hw_err *e)
{
	AUTO(buf_done) struct buf text = { 0 };
	int r = 0;

	if (spec->has_dns) {
		put_words(&text, "search", &spec->dns.searches);
		for (size_t i = 0; i < spec->dns.servers.n; i++)
			buf_printf(&text, "nameserver %s\n", spec->dns.servers.v[i]);
		put_words(&text, "options", &spec->dns.options);
	} else {
		r = read_host_file("/etc/resolv.conf", &text, e);
	}
	return r < 0 ? r : write_file(dir, "resolv.conf", &text, e);
}

/* Return: the host name that containers of the pod see */
static const char *host_name(const struct pod_spec *spec, struct utsname *room)
{
	if (spec->namespaces.network == POD_MODE_POD && !str_empty(spec->hostname))
		return spec->hostname;
	uname(room);
	return room->nodename;
}

static int write_hostname(const char *dir, const struct pod_spec *spec, struct hw_err *e)
{
	AUTO(buf_done) struct buf text = { 0 };
	struct utsname room;

	buf_printf(&text, "%s\n", host_name(spec, &room));
	return write_file(dir, "hostname", &text, e);
}

int files_write_hosts(const char *dir, const struct pod_spec *spec, const struct hw_strings *ips,
		      struct hw_err *e)
{
	AUTO(buf_done) struct buf text = { 0 };
	struct utsname room;
	int r = 0;

	if (spec->namespaces.network == POD_MODE_NODE) {
		r = read_host_file("/etc/hosts", &text, e);
	} else {
		buf_puts(&text, "127.0.0.1\tlocalhost\n"
				"::1\tlocalhost ip6-localhost ip6-loopback\n"
				"fe00::0\tip6-localnet\n"
				"ff00::0\tip6-mcastprefix\n"
				"ff02::1\tip6-allnodes\n"
				"ff02::2\tip6-allrouters\n");
		for (size_t i = 0; i < ips->n; i++)
			buf_printf(&text, "%s\t%s\n", ips->v[i], host_name(spec, &room));
	}
	return r < 0 ? r : write_file(dir, "hosts", &text, e);
}

static int mount_shm(const char *dir, struct hw_err *e)
{
	autofree char *path = str_printf("%s/shm", dir);

	if (mkdir(path, 01777) < 0)
		return err_set(e, -errno, "create %s", path);
	if (mount("shm", path, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, SHM_OPTIONS) < 0)
		return err_set(e, -errno, "mount a tmpfs at %s", path);
	return 0;
}

int files_create(const char *dir, const struct pod_spec *spec, struct hw_err *e)
{
	int r;

	if (mkdir(dir, 0711) < 0)
		return err_set(e, -errno, "create %s", dir);
	r = write_resolv_conf(dir, spec, e);
	if (r == 0)
		r = write_hostname(dir, spec, e);
	if (r == 0 && spec->namespaces.ipc == POD_MODE_POD)
		r = mount_shm(dir, e);
	return r;
}

int files_create_logs(const struct pod_spec *spec, struct hw_err *e)
{
	int r;

	if (str_empty(spec->log_directory))
		return 0;
	r = file_mkdirs(AT_FDCWD, spec->log_directory, 0755, e);
	return r < 0 ? err_ctx(e, "log_directory") : 0;
}

int files_unmount(const char *dir, struct hw_err *e)
{
	autofree char *path = str_printf("%s/shm", dir);

	return mount_detach(path, e);
}
