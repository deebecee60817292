/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/protocol/layer-report.c - reports about a layer: after unpacking, after verifying
 */
#include "image/protocol/layer-report.h"

#include <errno.h>

#include "base/buf.h"
#include "base/str.h"
#include "image/digest.h"
#include "image/protocol/job.h"

#define COUNT(member, text)                                                                        \
	{                                                                                          \
#member, HW_INT64, HW_AT(struct unpacked, member), .flags = HW_ALWAYS, .min = 0,   \
								   .max = INT64_MAX, .help = text  \
	}

const struct hw_field unpacked_fields[] = {
	{ "diff_id", HW_STRING, HW_AT(struct unpacked, diff_id), .flags = HW_REQUIRED,
	  .help = "digest of the uncompressed archive" },
	COUNT(archive, "bytes of the uncompressed archive"),
	COUNT(content, "bytes of all files"),
	COUNT(disk, "bytes on disk, approximately"),
	COUNT(inodes, "number of files, directories and other entries"),
	COUNT(skipped, "extended attributes that were not restored"),
	{ "rebuildable", HW_BOOL, HW_AT(struct unpacked, rebuildable), .flags = HW_ALWAYS,
	  .help = "the archive can be rebuilt from the recipe" },
	{ "opaque", HW_BOOL, HW_AT(struct unpacked, opaque), .flags = HW_ALWAYS,
	  .help = "hides all layers below" },
	{ "implied", HW_STRINGS, HW_AT(struct unpacked, implied), .flags = HW_ALWAYS,
	  .help = "directories that are not members of the archive" },
	{ 0 },
};

/* ---- escaped paths --------------------------------------------------------- */

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

/* Return: 0..15; -1: not an upper case hex digit */
static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Works in place, because the text only gets shorter. Return: false if malformed */
static bool unescape_path(char *path)
{
	char *to = path;

	for (const char *from = path; *from; from++) {
		int high = 0, low = 0;

		*to = *from;
		if (*from == '%') {
			high = hex_digit(from[1]);
			low = high < 0 ? -1 : hex_digit(from[2]);
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

/* ---- encoding and decoding ------------------------------------------------- */

int unpacked_decode(const char *json, size_t len, struct unpacked *ret_unpacked, struct hw_err *e)
{
	const struct job_message m = { .data = { (char *)json, len, 0 } };
	AUTO(unpacked_done) struct unpacked u = { 0 };
	int r;

	r = job_decode(&m, unpacked_fields, &u, e);
	if (r < 0)
		return r;
	if (!digest_is_sha256(u.diff_id))
		return err_text(e, -EBADMSG, "diff_id: expected a SHA-256 digest, got \"%.80s\"",
				u.diff_id);
	for (size_t i = 0; i < u.implied.n; i++)
		if (!unescape_path(u.implied.v[i]))
			return err_text(e, -EBADMSG, "implied[%zu]: malformed path", i);
	*ret_unpacked = u;
	u = (struct unpacked){ 0 };
	return 0;
}

char *unpacked_encode(const struct unpacked *u)
{
	AUTO(hw_strings_free) struct hw_strings escaped = { 0 };
	struct unpacked copy = *u;

	for (size_t i = 0; i < u->implied.n; i++)
		add_escaped(&escaped, u->implied.v[i]);
	copy.implied = escaped;
	return hw_field_encode(unpacked_fields, &copy, 0);
}

void unpacked_done(struct unpacked *u)
{
	hw_field_clear(unpacked_fields, u);
}

/* the sum of many reports does not overflow */
#define SUM(key, member)                                                                           \
	{                                                                                          \
		key, HW_INT64, HW_AT(struct verify_report, member), .min = 0,                      \
								    .max = INT64_C(1) << 48        \
	}

const struct hw_field verify_fields[] = {
	SUM("files", files),
	SUM("bytes", bytes),
	SUM("damaged_count", n_damaged),
	{ "damaged", HW_STRINGS, HW_AT(struct verify_report, damaged) },
	{ 0 },
};

void verify_report_done(struct verify_report *report)
{
	hw_field_clear(verify_fields, report);
}
