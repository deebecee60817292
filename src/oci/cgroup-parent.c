/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/cgroup-parent.c - the cgroup of a pod, and the names of the cgroups below it
 */
#include "oci/cgroup-parent.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "oci/cgroup.h"

#define SLICE	  ".slice"
#define SLICE_MAX 255  /* systemd's limit of unit names */
#define GIVEN_MAX 1024 /* leaves room below CGROUP_PATH_MAX for the cgroup of a container */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Return: false if systemd would reject it: each dash separates two names, which must not be empty */
static bool is_slice(const char *name)
{
	size_t len = strlen(name);

	if (len > SLICE_MAX || len <= strlen(SLICE) || !str_ends(name, SLICE))
		return false;
	len -= strlen(SLICE);
	if (name[0] == '-' || name[len - 1] == '-')
		return false;
	for (size_t i = 0; i < len; i++)
		if (!(isalnum((unsigned char)name[i]) || strchr(":_.\\-", name[i])) ||
		    (name[i] == '-' && name[i + 1] == '-'))
			return false;
	return true;
}

/* a-b.slice → /a.slice/a-b.slice. Return: allocated */
static char *expand_slice(const char *name)
{
	size_t len = strlen(name) - strlen(SLICE);
	AUTO(buf_done) struct buf path = { 0 };

	for (size_t i = 1; i <= len; i++)
		if (i == len || name[i] == '-')
			buf_printf(&path, "/%.*s" SLICE, (int)i, name);
	return buf_take(&path);
}

static int init_systemd(const char *given, char **ret_path, struct hw_err *e)
{
	const char *name = base_name(given), *relative;
	autofree char *path = NULL;

	if (!is_slice(name))
		return err_text(
			e, -EINVAL,
			"cgroup parent \"%s\" is not a slice, but the cgroup driver is systemd",
			given);
	path = expand_slice(name);
	if (strlen(path) > GIVEN_MAX)
		return err_text(e, -EINVAL, "cgroup parent \"%s\" is nested too deeply", given);
	/* the slice alone, or its whole path; both with or without the first slash */
	relative = given + (*given == '/');
	if (!str_equal(relative, name) && !str_equal(relative, path + 1))
		return err_text(e, -EINVAL, "cgroup parent \"%s\": the path of %s is %s", given,
				name, path);
	*ret_path = take_ptr(path);
	return 0;
}

static int init_cgroupfs(const char *given, char **ret_path, struct hw_err *e)
{
	autofree char *path = str_printf("%s%s", *given == '/' ? "" : "/", given);

	if (str_ends(given, SLICE))
		return err_text(
			e, -EINVAL,
			"cgroup parent \"%s\" is a slice, but the cgroup driver is cgroupfs",
			given);
	if (!str_equal(path, "/") && !cgroup_path_is_valid(path))
		return err_text(e, -EINVAL, "cgroup parent \"%s\" is not a valid path", given);
	*ret_path = take_ptr(path);
	return 0;
}

int cgroup_parent_init(struct cgroup_parent *ret_parent, enum cgroup_driver driver,
		       const char *given, const char *pod, struct hw_err *e)
{
	autofree char *ours = NULL, *path = NULL;
	bool own = str_empty(given);
	int r;

	if (own)
		ours = str_printf(driver == CGROUP_SYSTEMD ? "hawser-%s" SLICE : "/hawser/%s", pod);
	else if (strlen(given) > GIVEN_MAX)
		return err_text(e, -EINVAL, "cgroup parent \"%.40s...\" has more than %d bytes",
				given, GIVEN_MAX);
	r = driver == CGROUP_SYSTEMD ? init_systemd(own ? ours : given, &path, e)
				     : init_cgroupfs(own ? ours : given, &path, e);
	if (r < 0)
		return r;
	*ret_parent =
		(struct cgroup_parent){ .driver = driver, .path = take_ptr(path), .own = own };
	return 0;
}

void cgroup_parent_done(struct cgroup_parent *parent)
{
	free(take_ptr(parent->path));
}

char *cgroup_parent_child(const struct cgroup_parent *parent, const char *id)
{
	if (parent->driver == CGROUP_SYSTEMD)
		return str_printf("%s/hawser-%s.scope", parent->path, id);
	return str_printf("%s/%s", str_equal(parent->path, "/") ? "" : parent->path, id);
}

char *cgroup_parent_oci_path(const struct cgroup_parent *parent, const char *id)
{
	if (parent->driver == CGROUP_SYSTEMD)
		return str_printf("%s:hawser:%s", base_name(parent->path), id);
	return cgroup_parent_child(parent, id);
}
