/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/unpacked.c - what is known of a layer once it is unpacked
 */
#include "image/unpacked.h"

#include <errno.h>

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
	*ret_unpacked = u;
	u = (struct unpacked){ 0 };
	return 0;
}

/** unpacked_encode() - what is to be sent */
char *unpacked_encode(const struct unpacked *u)
{
	return hw_field_encode(unpacked_fields, u, 0);
}

/** unpacked_done() - free what it holds */
void unpacked_done(struct unpacked *u)
{
	hw_field_clear(unpacked_fields, u);
}
