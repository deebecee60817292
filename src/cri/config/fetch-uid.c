/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/config/fetch-uid.c - find a user ID for the process that talks to registries
 */
#include "cri/config/fetch-uid.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/os/file.h"
#include "base/str.h"

#define UID_FIRST  61184
#define UID_LAST   65519
#define FILE_BYTES (64 << 20)

/* Text of passwd(5) and group(5). */
struct id_files {
	int root;
	struct buf passwd, group;
};

static void id_files_done(struct id_files *f)
{
	mem_close_fd(&f->root);
	buf_done(&f->passwd);
	buf_done(&f->group);
}

AUTO_VALUE_DEFINE(id_files_done, struct id_files);

static int read_files(struct id_files *f, const char *root, struct hw_err *e)
{
	int r;

	f->root = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (f->root < 0)
		return err_set(e, -errno, "open %s", root);
	r = file_read_if_exists(f->root, "etc/passwd", FILE_BYTES, &f->passwd, e);
	if (r >= 0)
		r = file_read_if_exists(f->root, "etc/group", FILE_BYTES, &f->group, e);
	return r < 0 ? r : 0;
}

/* Does a line have this number in the field @at, counted from 0? */
static bool has_number(const struct buf *text, int at, const char *number)
{
	size_t len = strlen(number);

	for (const char *p = str_or(text->data, ""), *end = p + text->len; p < end;) {
		const char *newline = memchr(p, '\n', (size_t)(end - p));
		const char *stop = newline ? newline : end;

		for (int i = 0; i < at && p; i++) {
			p = memchr(p, ':', (size_t)(stop - p));
			p = p ? p + 1 : NULL;
		}
		if (p && (size_t)(stop - p) >= len && memcmp(p, number, len) == 0 &&
		    (p + len == stop || p[len] == ':'))
			return true;
		p = stop + 1;
	}
	return false;
}

/* While a user of systemd exists, there is a file with its ID. */
static bool is_free(const struct id_files *f, uint32_t id)
{
	char number[16], path[64];

	snprintf(number, sizeof(number), "%u", id);
	snprintf(path, sizeof(path), "run/systemd/dynamic-uid/%u", id);
	return !has_number(&f->passwd, 2, number) && !has_number(&f->passwd, 3, number) &&
	       !has_number(&f->group, 2, number) &&
	       faccessat(f->root, path, F_OK, AT_SYMLINK_NOFOLLOW) < 0;
}

int fetch_uid_find(const char *root, uint32_t *ret_uid, struct hw_err *e)
{
	AUTO(id_files_done) struct id_files files = { .root = -1 };
	int r;

	r = read_files(&files, root, e);
	if (r < 0)
		return r;
	for (uint32_t id = UID_FIRST; id <= UID_LAST; id++)
		if (is_free(&files, id)) {
			*ret_uid = id;
			return 0;
		}
	return err_text(e, -EUSERS, "no user ID from %d to %d is free", UID_FIRST, UID_LAST);
}
