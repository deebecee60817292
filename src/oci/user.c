/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/user.c - the user and the groups of a container, from passwd and group of its image
 *
 * How:   a symbolic link never leads out of the image. A file is opened for reading only after it is known
 *        to be regular: opening a FIFO may block, and opening a device may have an effect.
 */
#include "oci/user.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/os/file.h"
#include "base/str.h"

#define FIELDS 7 /* of a line of passwd; group has 4 */
#define ID_MAX (UINT32_MAX - 1)

/* ---- lines ----------------------------------------------------------------------------------- */

/* Fields point into the text. */
struct line {
	const char *field[FIELDS];
	size_t len[FIELDS];
	size_t n;
};

/* Splits the line at *text, and moves *text behind it. Return: false at the end of the text */
static bool next_line(const char **text, struct line *ret)
{
	const char *at = *text, *end = at + strcspn(at, "\n");

	if (!*at)
		return false;
	for (ret->n = 0; ret->n < FIELDS && at <= end; ret->n++) {
		size_t len = strcspn(at, ":\n");

		ret->field[ret->n] = at;
		ret->len[ret->n] = len;
		at += len + 1;
	}
	*text = *end ? end + 1 : end;
	return true;
}

static bool field_is(const struct line *line, size_t i, const char *text)
{
	return line->n > i && line->len[i] == strlen(text) &&
	       memcmp(line->field[i], text, line->len[i]) == 0;
}

/* Return: false if the field is not an ID */
static bool get_id(const struct line *line, size_t i, uint32_t *ret)
{
	char text[16] = "";
	long long id;

	if (line->n <= i || line->len[i] >= sizeof(text))
		return false;
	memcpy(text, line->field[i], line->len[i]);
	if (!str_to_int64(text, 0, ID_MAX, &id))
		return false;
	*ret = (uint32_t)id;
	return true;
}

/* Whether the list NAME,NAME,... of a line of group contains a name. */
static bool has_member(const struct line *line, const char *name)
{
	const char *at = line->n > 3 ? line->field[3] : NULL;
	size_t len = strlen(name);

	for (const char *end = at ? at + line->len[3] : NULL; at && at <= end;) {
		size_t n = strcspn(at, ",:\n");

		if (n == len && memcmp(at, name, n) == 0)
			return true;
		at += n + 1;
	}
	return false;
}

/* ---- users and groups ------------------------------------------------------------------------ */

struct entry {
	uint32_t uid, gid;
	char *name, *home; /* NULL: the user is not in passwd */
};

static void entry_done(struct entry *entry)
{
	free(entry->name);
	free(entry->home);
}

AUTO_VALUE_DEFINE(entry_done, struct entry);

/* @name: NULL: the entry with @uid */
static bool find_user(const char *passwd, const char *name, uint32_t uid, struct entry *ret)
{
	struct line line;

	while (next_line(&passwd, &line)) {
		struct entry found = { 0 };

		if (!get_id(&line, 2, &found.uid) || !get_id(&line, 3, &found.gid) ||
		    line.len[0] == 0 || (name ? !field_is(&line, 0, name) : found.uid != uid))
			continue;
		found.name = str_ncopy(line.field[0], line.len[0]);
		if (line.n > 5)
			found.home = str_ncopy(line.field[5], line.len[5]);
		*ret = found;
		return true;
	}
	return false;
}

static bool find_group(const char *group, const char *name, uint32_t *ret_gid)
{
	struct line line;

	while (next_line(&group, &line))
		if (field_is(&line, 0, name) && get_id(&line, 2, ret_gid))
			return true;
	return false;
}

static int add_group(struct user *u, uint32_t gid, struct hw_err *e)
{
	uint32_t *groups = u->groups.v;

	for (size_t i = 0; i < u->groups.n; i++)
		if (groups[i] == gid)
			return 0;
	if (u->groups.n == USER_GROUPS_MAX)
		return err_text(e, -EINVAL, "the user has more than %d groups", USER_GROUPS_MAX);
	groups = mem_resize(groups, u->groups.n + 1, sizeof(*groups));
	groups[u->groups.n++] = gid;
	u->groups.v = groups;
	return 0;
}

static int add_groups(struct user *u, const char *group, const char *name,
		      const struct user_request *request, struct hw_err *e)
{
	struct line line;
	int r;

	r = add_group(u, u->gid, e);
	for (size_t i = 0; r == 0 && i < request->n_groups; i++)
		r = add_group(u, request->groups[i], e);
	while (r == 0 && name && !request->strict && next_line(&group, &line)) {
		uint32_t gid;

		if (get_id(&line, 2, &gid) && has_member(&line, name))
			r = add_group(u, gid, e);
	}
	return r;
}

static bool is_of_image(const struct user_request *request)
{
	return !request->has_uid && str_empty(request->name);
}

/* @image_user: the part before the colon of the image's user; "" means 0 */
static int find_entry(const char *passwd, const struct user_request *request,
		      const char *image_user, struct entry *ret, struct hw_err *e)
{
	const char *name = is_of_image(request) ? image_user : str_or(request->name, "");
	long long id = request->has_uid ? request->uid : 0;
	bool by_name = !request->has_uid && *name;

	if (is_of_image(request) && str_to_int64(name, 0, ID_MAX, &id))
		by_name = false;
	if (find_user(passwd, by_name ? name : NULL, (uint32_t)id, ret))
		return 0;
	if (by_name)
		return err_text(e, -EINVAL, "no user \"%.200s\" in /etc/passwd of the image", name);
	ret->uid = (uint32_t)id;
	return 0;
}

/* @name: a name or a number */
static int find_gid(const char *group, const char *name, uint32_t *ret_gid, struct hw_err *e)
{
	long long id;

	if (str_to_int64(name, 0, ID_MAX, &id))
		*ret_gid = (uint32_t)id;
	else if (!find_group(group, name, ret_gid))
		return err_text(e, -EINVAL, "no group \"%.200s\" in /etc/group of the image", name);
	return 0;
}

/* A home directory is passed to the container only if it can be written to its configuration. */
static bool is_home(const char *home)
{
	if (*home != '/')
		return false;
	while (*home) {
		size_t n = str_utf8_len(home);

		if (n == 0)
			return false;
		home += n;
	}
	return true;
}

int user_resolve(const char *passwd, const char *group, const struct user_request *request,
		 struct user *ret, struct hw_err *e)
{
	const char *image = str_or(request->image, ""), *colon = strchr(image, ':');
	autofree char *image_user = str_ncopy(image, strcspn(image, ":"));
	AUTO(entry_done) struct entry entry = { 0 };
	AUTO(user_done) struct user u = { 0 };
	const char *home;
	int r;

	r = find_entry(passwd, request, image_user, &entry, e);
	if (r == 0 && request->has_gid)
		entry.gid = request->gid;
	else if (r == 0 && is_of_image(request) && colon && colon[1])
		r = find_gid(group, colon + 1, &entry.gid, e);
	if (r < 0)
		return r;
	u.uid = entry.uid;
	u.gid = entry.gid;
	r = add_groups(&u, group, entry.name, request, e);
	if (r < 0)
		return r;
	home = str_or(entry.home, "");
	u.home = str_copy(is_home(home) ? home : "/");
	*ret = u;
	u = (struct user){ 0 };
	return 0;
}

void user_done(struct user *u)
{
	free(u->groups.v);
	free(u->home);
	*u = (struct user){ 0 };
}

/* ---- files ----------------------------------------------------------------------------------- */

/* Return: 0, also if the file does not exist: then @ret is empty */
static int read_below(int root, const char *path, struct buf *ret, struct hw_err *e)
{
	autofree char *again = NULL;
	autoclose int found = -1, fd = -1;
	struct stat st;

	found = file_open_in_root(root, path, O_PATH);
	if (found == -ENOENT || found == -ENOTDIR)
		return 0;
	if (found < 0) {
		err_set(e, found, "open /%s of the image", path);
		return err_replace(e, -ELOOP, -EINVAL);
	}
	if (fstat(found, &st) < 0)
		return err_set(e, -errno, "stat /%s of the image", path);
	if (!S_ISREG(st.st_mode))
		return err_text(e, -EINVAL, "/%s of the image is not a regular file", path);
	again = str_printf("/proc/self/fd/%d", found);
	fd = open(again, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_set(e, -errno, "open /%s of the image", path);
	if (st.st_size > USER_FILE_MAX)
		return err_text(e, -EINVAL, "/%s of the image has more than %d bytes", path,
				USER_FILE_MAX);
	return file_read_fd(fd, USER_FILE_MAX, ret, e) < 0 ? err_ctx(e, "/%s of the image", path)
							   : 0;
}

int user_find(int root, const struct user_request *request, struct user *ret, struct hw_err *e)
{
	AUTO(buf_done) struct buf passwd = { 0 }, group = { 0 };
	int r;

	r = read_below(root, "etc/passwd", &passwd, e);
	if (r == 0)
		r = read_below(root, "etc/group", &group, e);
	if (r < 0)
		return r;
	return user_resolve(str_or(passwd.data, ""), str_or(group.data, ""), request, ret, e);
}
