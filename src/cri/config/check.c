/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/config/check.c - what the table of a configuration cannot say
 *
 * How:   a row per key: a function that looks at one text. What is parsed here is
 *        parsed by the same functions when it is used.
 */
#include "cri/config/check.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/buf.h"
#include "base/ip.h"
#include "base/log.h"
#include "base/str.h"
#include "image/reference.h"

/* ---- addresses and owners ----------------------------------------------------------- */

static int socket_path(const char *text, const char **ret_path, struct hw_err *e)
{
	/* "unix:/a" as ours, "unix:///a" as kubelet's */
	const char *path = text + strlen("unix:") + (str_starts(text, "unix:///") ? 2 : 0);

	if (path[0] != '/')
		return err_text(e, -EINVAL, "%s: the path of a socket begins with /", text);
	if (strlen(path) >= sizeof(((struct sockaddr_un *)NULL)->sun_path))
		return err_text(e, -EINVAL, "%.200s: too long for a socket", path);
	*ret_path = path;
	return 0;
}

static int ip_and_port(const char *text, struct config_address *ret, struct hw_err *e)
{
	const char *colon = strrchr(text, ':');
	bool brackets = text[0] == '[' && colon > text && colon[-1] == ']';
	autofree char *host = NULL;
	long long port;

	if (!colon || !str_to_int64(colon + 1, 0, 65535, &port))
		return err_text(e, -EINVAL, "%.200s: expected unix:PATH or ADDRESS:PORT", text);
	host = str_ncopy(text + brackets, (size_t)(colon - text) - 2 * brackets);
	if (hw_ip_parse(host, &ret->ip, e) < 0)
		return e->code;
	if (brackets != (ret->ip.family == AF_INET6))
		return err_text(e, -EINVAL, "%s: brackets are for IPv6, [ADDRESS]:PORT", text);
	if (!ip_is_loopback(&ret->ip))
		return err_text(e, -EINVAL, "%s: not an address of the loopback interface", text);
	ret->path = NULL;
	ret->port = (int)port;
	return 0;
}

/**
 * config_address() - "unix:PATH", or ADDRESS:PORT of the loopback interface
 */
int config_address(const char *text, struct config_address *ret_address, struct hw_err *e)
{
	if (str_starts(text, "unix:"))
		return socket_path(text, &ret_address->path, e);
	return ip_and_port(text, ret_address, e);
}

static int find_user(const char *name, struct socket_owner *owner, struct hw_err *e)
{
	struct passwd entry, *found = NULL;
	char room[4096];
	long long n;

	if (str_to_int64(name, 0, UINT32_MAX - 1, &n)) {
		owner->uid = (uid_t)n;
		return 0;
	}
	getpwnam_r(name, &entry, room, sizeof(room), &found);
	if (!found)
		return err_text(e, -EINVAL, "there is no user %.64s", name);
	owner->uid = found->pw_uid;
	return 0;
}

static int find_group(const char *name, struct socket_owner *owner, struct hw_err *e)
{
	struct group entry, *found = NULL;
	char room[16384];
	long long n;

	if (str_to_int64(name, 0, UINT32_MAX - 1, &n)) {
		owner->gid = (gid_t)n;
		return 0;
	}
	getgrnam_r(name, &entry, room, sizeof(room), &found);
	if (!found)
		return err_text(e, -EINVAL, "there is no group %.64s", name);
	owner->gid = found->gr_gid;
	return 0;
}

/**
 * config_owner() - "USER", "USER:GROUP" or "", names or numbers
 *
 * With a group its members may call, too.
 */
int config_owner(const char *text, struct socket_owner *ret_owner, struct hw_err *e)
{
	const char *colon = strchr(text, ':');
	autofree char *user = str_ncopy(text, colon ? (size_t)(colon - text) : strlen(text));
	struct socket_owner owner = { .mode = colon ? 0660 : 0600, .uid = -1, .gid = -1 };
	int r = 0;

	if (*user)
		r = find_user(user, &owner, e);
	if (r == 0 && colon)
		r = find_group(colon + 1, &owner, e);
	if (r == 0)
		*ret_owner = owner;
	return r;
}

/* ---- checks of one text ------------------------------------------------------------- */

static int check_listen(const char *text, struct hw_err *e)
{
	struct config_address address;

	if (!str_starts(text, "unix:"))
		return err_text(e, -EINVAL, "%.200s: expected unix:PATH", text);
	return config_address(text, &address, e);
}

static int check_owner(const char *text, struct hw_err *e)
{
	struct socket_owner owner;

	return config_owner(text, &owner, e);
}

static int check_folder(const char *text, struct hw_err *e)
{
	return text[0] == '/' ? 0 : err_text(e, -EINVAL, "%.200s: a path begins with /", text);
}

static int check_path(const char *text, struct hw_err *e)
{
	return *text ? check_folder(text, e) : 0;
}

static int check_folders(const char *text, struct hw_err *e)
{
	AUTO(hw_strings_free) struct hw_strings list = { 0 };
	int r = 0;

	strings_split(text, ':', &list);
	for (size_t i = 0; r == 0 && i < list.n; i++)
		r = check_folder(list.v[i], e);
	return r;
}

static int check_host(const char *text, struct hw_err *e)
{
	AUTO(reference_done) struct reference ref = { 0 };
	autofree char *name = str_printf("%s/x/x", text);

	if (reference_parse(name, &ref, e) < 0 || !str_equal(ref.domain, text))
		return err_text(e, -EINVAL, "%.200s: not the host of a registry", text);
	return 0;
}

static int check_mirror(const char *text, struct hw_err *e)
{
	const char *equals = strchr(text, '=');
	autofree char *host = NULL;

	if (!equals || (!str_starts(equals + 1, "https://") && !str_starts(equals + 1, "http://")))
		return err_text(
			e, -EINVAL,
			"%.200s: expected HOST=URL, with https:// or http:// before the URL", text);
	host = str_ncopy(text, (size_t)(equals - text));
	return check_host(host, e);
}

static int check_image(const char *text, struct hw_err *e)
{
	AUTO(reference_done) struct reference ref = { 0 };

	return reference_parse(text, &ref, e);
}

static int check_address(const char *text, struct hw_err *e)
{
	struct config_address address;

	return *text ? config_address(text, &address, e) : 0;
}

static int check_word(const char *text, const char *const *words, struct hw_err *e)
{
	AUTO(buf_done) struct buf all = { 0 };

	for (size_t i = 0; words[i]; i++) {
		if (str_equal(words[i], text))
			return 0;
		buf_printf(&all, "%s%s", i ? ", " : "", words[i]);
	}
	return err_text(e, -EINVAL, "%.200s: not one of %s", text, all.data);
}

static int check_driver(const char *text, struct hw_err *e)
{
	return check_word(text, (const char *const[]){ "auto", "systemd", "cgroupfs", NULL }, e);
}

static int check_format(const char *text, struct hw_err *e)
{
	return check_word(text, (const char *const[]){ "auto", "text", "json", "journal", NULL },
			  e);
}

static int check_level(const char *text, struct hw_err *e)
{
	enum log_level level;

	if (log_level_parse(text, &level))
		return 0;
	return err_text(e, -EINVAL, "%.200s: not one of error, warn, info, debug", text);
}

static const struct check {
	const char *key;
	int (*check)(const char *text, struct hw_err *e);
} checks[] = {
	{ "listen", check_listen },
	{ "socket-owner", check_owner },
	{ "root", check_folder },
	{ "state", check_folder },
	{ "cni-conf-dir", check_folder },
	{ "cni-bin-dir", check_folders },
	{ "cni-cache-dir", check_folder },
	{ "cni-conf-template", check_path },
	{ "registry-mirror", check_mirror },
	{ "plain-http", check_host },
	{ "auth-file", check_path },
	{ "certs-dir", check_path },
	{ "pinned-images", check_image },
	{ "cgroup-driver", check_driver },
	{ "stream-address", check_address },
	{ "metrics-address", check_address },
	{ "log-level", check_level },
	{ "log-format", check_format },
};

static int check_list(const struct check *row, const struct hw_strings *list, struct hw_err *e)
{
	for (size_t i = 0; i < list->n; i++)
		if (row->check(list->v[i], e) < 0)
			return err_ctx(e, "%s[%zu]", row->key, i);
	return 0;
}

static int check_field(const struct check *row, const struct config *c, struct hw_err *e)
{
	const struct hw_field *f = config_fields;
	const char *member;

	while (!str_equal(f->name, row->key))
		f++;
	member = (const char *)c + f->at;
	if (f->type == HW_STRINGS)
		return check_list(row, (const struct hw_strings *)member, e);
	if (row->check(*(char *const *)member, e) < 0)
		return err_ctx(e, "%s", row->key);
	return 0;
}

/**
 * config_check() - can it be used?
 * @c: decoded by config_fields
 * @e: the error
 *
 * Return: 0 or -EINVAL
 */
int config_check(const struct config *c, struct hw_err *e)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(checks); i++)
		r = check_field(&checks[i], c, e);
	return r;
}
