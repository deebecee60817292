/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/tar/header.c - parser of a tar header block
 *
 * What:  a block has numbers and names at fixed offsets, and a checksum. The magic shows whether it
 *        also has device numbers and a prefix of the name: POSIX headers have both, GNU headers
 *        have device numbers only, headers of the oldest format (v7) have neither.
 */
#include "fetch/tar/header.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "fetch/tar/number.h"

#define NAME	   0
#define SUM	   148
#define SUM_LEN	   8
#define FLAG	   156
#define LINK	   157
#define MAGIC	   257
#define PREFIX	   345
#define ATIME	   345
#define CTIME	   357
#define PREFIX_LEN 155
#define NAME_LEN   100

static const struct {
	const char *name;
	size_t at, len; /* offset and length in the block */
	size_t member;	/* offset in struct tar_header */
	bool of_device;
} numbers[] = {
	{ "mode", 100, 8, offsetof(struct tar_header, mode), false },
	{ "uid", 108, 8, offsetof(struct tar_header, uid), false },
	{ "gid", 116, 8, offsetof(struct tar_header, gid), false },
	{ "size", 124, 12, offsetof(struct tar_header, size), false },
	{ "mtime", 136, 12, offsetof(struct tar_header, mtime), false },
	{ "major number", 329, 8, offsetof(struct tar_header, major), true },
	{ "minor number", 337, 8, offsetof(struct tar_header, minor), true },
};

bool tar_header_is_zero(const uint8_t block[TAR_BLOCK])
{
	static const uint8_t zero[TAR_BLOCK];

	return memcmp(block, zero, TAR_BLOCK) == 0;
}

/* For the sum, the checksum field itself is taken as spaces. Old programs added signed bytes. */
static bool checksum_matches(const uint8_t *block)
{
	int64_t sum = 0, sum_signed = 0, want;

	for (size_t i = 0; i < TAR_BLOCK; i++) {
		uint8_t c = i >= SUM && i < SUM + SUM_LEN ? ' ' : block[i];

		sum += c;
		sum_signed += (int8_t)c;
	}
	return tar_number(block + SUM, SUM_LEN, &want) && (want == sum || want == sum_signed);
}

static void copy_text(const uint8_t *field, size_t len, char *ret)
{
	size_t n = strnlen((const char *)field, len);

	memcpy(ret, field, n);
	ret[n] = '\0';
}

/* Go before 1.8 wrote a name prefix into GNU headers, in place of atime and ctime. A prefix is
 * recognized because it is not a number. */
static bool has_stray_prefix(const uint8_t *block)
{
	int64_t n;

	return (block[ATIME] && !tar_number(block + ATIME, 12, &n)) ||
	       (block[CTIME] && !tar_number(block + CTIME, 12, &n));
}

int tar_header_decode(const uint8_t block[TAR_BLOCK], struct tar_header *ret_header,
		      struct hw_err *e)
{
	struct tar_header h = { .flag = (char)block[FLAG] };
	char name[NAME_LEN + 1], prefix[PREFIX_LEN + 1] = "";
	bool is_posix = memcmp(block + MAGIC, "ustar\0", 6) == 0;
	bool is_gnu = memcmp(block + MAGIC, "ustar  \0", 8) == 0;

	if (!checksum_matches(block))
		return err_text(e, -EINVAL, "not a tar header: checksum mismatch");
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		if (numbers[i].of_device && !is_posix && !is_gnu)
			continue;
		if (!tar_number(block + numbers[i].at, numbers[i].len,
				(int64_t *)((char *)&h + numbers[i].member)))
			return err_text(e, -EINVAL, "malformed %s in a tar header",
					numbers[i].name);
	}
	copy_text(block + NAME, NAME_LEN, name);
	copy_text(block + LINK, TAR_LINK_MAX, h.target);
	if (is_posix || (is_gnu && has_stray_prefix(block)))
		copy_text(block + PREFIX, PREFIX_LEN, prefix);
	snprintf(h.path, sizeof(h.path), "%s%s%s", prefix, *prefix ? "/" : "", name);
	*ret_header = h;
	return 0;
}
