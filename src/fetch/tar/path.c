/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/tar/path.c - paths of a layer's members
 *
 * Rules: an absolute path is relative to the container's root. ".." removes the component before
 *        it, as in Go, and the file system is not consulted. ".." at the root is rejected.
 */
#include "fetch/tar/path.h"

#include <errno.h>
#include <string.h>

#include "base/str.h"

#define WHITEOUT ".wh."
#define META	 ".wh..wh."
#define OPAQUE	 ".wh..wh..opq"

int path_clean(const char *path, char ret_path[PATH_SIZE], struct hw_err *e)
{
	size_t len = 0;

	for (const char *p = path; *p;) {
		size_t n = strcspn(p, "/");

		if (n == 2 && memcmp(p, "..", 2) == 0) {
			const char *slash = memrchr(ret_path, '/', len);

			if (len == 0)
				return err_text(e, -EINVAL, "path escapes the root");
			len = slash ? (size_t)(slash - ret_path) : 0;
		} else if (n > 0 && !(n == 1 && *p == '.')) {
			if (len + 1 + n >= PATH_SIZE)
				return err_text(e, -ENAMETOOLONG,
						"path too long: more than %d bytes", PATH_SIZE - 1);
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

const char *path_name(const char *clean)
{
	const char *slash = strrchr(clean, '/');

	return slash ? slash + 1 : clean;
}

void path_parent(const char *clean, char ret_path[PATH_SIZE])
{
	size_t len = (size_t)(path_name(clean) - clean);

	memcpy(ret_path, clean, len);
	ret_path[len > 0 ? len - 1 : 0] = '\0';
}

enum path_kind path_kind(const char *clean)
{
	const char *name = path_name(clean);

	if (str_equal(name, OPAQUE))
		return PATH_OPAQUE;
	if (str_starts(clean, META) || strstr(clean, "/" META))
		return PATH_AUFS;
	return str_starts(name, WHITEOUT) ? PATH_WHITEOUT : PATH_PLAIN;
}

int path_hidden(const char *clean, const char **ret_name, struct hw_err *e)
{
	const char *name = path_name(clean) + strlen(WHITEOUT);

	if (!*name || str_equal(name, ".") || str_equal(name, ".."))
		return err_text(e, -EINVAL, "invalid whiteout of \"%s\"", name);
	*ret_name = name;
	return 0;
}
