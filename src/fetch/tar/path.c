/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/tar/path.c - paths of a layer's members
 *
 * Rules: absolute paths are those of the container: they count from the root.
 *        ".." takes back the part before it, as in Go; where there is none to
 *        take back the path leaves the root and is refused.
 */
#include "fetch/tar/path.h"

#include <errno.h>
#include <string.h>

#include "base/str.h"

#define WHITEOUT ".wh."
#define META	 ".wh..wh."
#define OPAQUE	 ".wh..wh..opq"

/* Cuts the last part off. Return: whether there was one. */
static bool cut(char *path, size_t *len)
{
	char *slash;

	if (*len == 0)
		return false;
	path[*len] = '\0';
	slash = strrchr(path, '/');
	*len = slash ? (size_t)(slash - path) : 0;
	return true;
}

/**
 * path_clean() - a member's path, to be looked up below a root
 * @path:     as the archive has it
 * @ret_path: "" is the root itself
 *
 * Return: 0; -EINVAL: it leaves the root; -ENAMETOOLONG
 */
int path_clean(const char *path, char ret_path[PATH_SIZE], struct hw_err *e)
{
	size_t len = 0;

	for (const char *p = path; *p;) {
		size_t n = strcspn(p, "/");

		if (n == 2 && memcmp(p, "..", 2) == 0) {
			if (!cut(ret_path, &len))
				return err_text(e, -EINVAL, "its path leaves the root");
		} else if (n > 0 && !(n == 1 && *p == '.')) {
			if (len + 1 + n >= PATH_SIZE)
				return err_text(e, -ENAMETOOLONG, "its path is longer than %d",
						PATH_SIZE - 1);
			if (len > 0)
				ret_path[len++] = '/';
			memcpy(ret_path + len, p, n);
			len += n;
		}
		p += n + (p[n] == '/');
	}
	ret_path[len] = '\0';
	return 0;
}

/** path_name() - the last part of a path that path_clean() made */
const char *path_name(const char *clean)
{
	const char *slash = strrchr(clean, '/');

	return slash ? slash + 1 : clean;
}

/** path_parent() - all but the last part; "": the root */
void path_parent(const char *clean, char ret_path[PATH_SIZE])
{
	size_t len = (size_t)(path_name(clean) - clean);

	memcpy(ret_path, clean, len);
	ret_path[len > 0 ? len - 1 : 0] = '\0';
}

/** path_kind() - is it a member, or a mark for what is below? */
enum path_kind path_kind(const char *clean)
{
	const char *name = path_name(clean);

	if (str_equal(name, OPAQUE))
		return PATH_OPAQUE;
	if (str_starts(clean, META) || strstr(clean, "/" META))
		return PATH_AUFS;
	return str_starts(name, WHITEOUT) ? PATH_WHITEOUT : PATH_PLAIN;
}

/**
 * path_hidden() - what a whiteout hides
 * @clean:    of PATH_WHITEOUT
 * @ret_name: part of @clean
 *
 * Return: 0, or -EINVAL where that is no name
 */
int path_hidden(const char *clean, const char **ret_name, struct hw_err *e)
{
	const char *name = path_name(clean) + strlen(WHITEOUT);

	if (!*name || str_equal(name, ".") || str_equal(name, ".."))
		return err_text(e, -EINVAL, "a whiteout of \"%s\" cannot be", name);
	*ret_name = name;
	return 0;
}
