/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/protocol/unpacked.c - what is known of a layer once it is unpacked
 */
#include "image/protocol/unpacked.h"

#include <errno.h>

#include "base/buf.h"
#include "base/str.h"
#include "image/digest.h"

#define COUNT(member, text)                                                                        \
	{                                                                                          \
#member, HW_INT64, HW_AT(struct unpacked, member), .flags = HW_ALWAYS, .min = 0,   \
								   .max = INT64_MAX, .help = text  \
	}

const struct hw_field unpacked_fields[] = {
	{ "diff_id", HW_STRING, HW_AT(struct unpacked, diff_id), .flags = HW_REQUIRED,
	  .help = "digest of the archive" },
	COUNT(archive, "bytes of the archive"),
	COUNT(content, "bytes of its files"),
	COUNT(disk, "bytes that they take on disk, about"),
	COUNT(inodes, "files, folders and the like"),
	COUNT(skipped, "extended attributes that were left out"),
	{ "rebuildable", HW_BOOL, HW_AT(struct unpacked, rebuildable), .flags = HW_ALWAYS,
	  .help = "the archive can be written again from its recipe" },
	{ "opaque", HW_BOOL, HW_AT(struct unpacked, opaque), .flags = HW_ALWAYS,
	  .help = "nothing of the layers below is to be seen" },
	{ "implied", HW_STRINGS, HW_AT(struct unpacked, implied), .flags = HW_ALWAYS,
	  .help = "folders that no member spoke of" },
	{ 0 },
};

/* ---- paths ----------------------------------------------------------------- */

/* JSON is UTF-8, and a path may be any bytes: those beyond ASCII are %XX, and so is '%'. */
static void add_escaped(struct hw_strings *list, const char *path)
{
	AUTO(buf_done) struct buf b = { 0 };

	buf_puts(&b, "");
	for (; *path; path++) {
		if (*path < ' ' || *path > '~' || *path == '%')
			buf_printf(&b, "%%%02X", (unsigned char)*path);
		else
			buf_putc(&b, *path);
	}
	strings_add(list, b.data);
}

/* Return: 0..15; -1: it is no digit of ours */
static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* In its place, since it only gets shorter. */
static bool unescape(char *path)
{
	char *to = path;

	for (const char *from = path; *from; from++) {
		int high = 0, low = 0;

		*to = *from;
		if (*from == '%') {
			high = digit(from[1]);
			low = high < 0 ? -1 : digit(from[2]);
			if (low < 0 || high + low == 0)
				return false;
			*to = (char)(high << 4 | low);
			from += 2;
		}
		to++;
	}
	*to = '\0';
	return true;
}

/* ---- as a whole ------------------------------------------------------------ */

/**
 * unpacked_decode() - read what hawser-fetch has sent
 *
 * Return: 0, or -EINVAL, -EFBIG
 */
int unpacked_decode(const char *json, size_t len, struct unpacked *ret_unpacked, struct hw_err *e)
{
	AUTO(unpacked_done) struct unpacked u = { 0 };
	int r = hw_field_decode(unpacked_fields, json, len, &u, e);

	if (r < 0)
		return r;
	if (!digest_is_sha256(u.diff_id))
		return err_text(e, -EINVAL, "diff_id: \"%.80s\" is not a SHA-256 digest",
				u.diff_id);
	for (size_t i = 0; i < u.implied.n; i++)
		if (!unescape(u.implied.v[i]))
			return err_text(e, -EINVAL, "implied[%zu] is not a path", i);
	*ret_unpacked = u;
	u = (struct unpacked){ 0 };
	return 0;
}

/** unpacked_encode() - what is to be sent */
char *unpacked_encode(const struct unpacked *u)
{
	AUTO(hw_strings_free) struct hw_strings escaped = { 0 };
	struct unpacked told = *u;

	for (size_t i = 0; i < u->implied.n; i++)
		add_escaped(&escaped, u->implied.v[i]);
	told.implied = escaped;
	return hw_field_encode(unpacked_fields, &told, 0);
}

/** unpacked_done() - free what it holds */
void unpacked_done(struct unpacked *u)
{
	hw_field_clear(unpacked_fields, u);
}
