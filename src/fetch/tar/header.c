/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/tar/header.c - the block before a member
 *
 * What:  numbers and names at fixed places, with a sum over all of it. Which
 *        magic it has says whether devices have numbers and whether a prefix
 *        goes before the name: POSIX's has both, GNU's the first, the oldest
 *        archives neither.
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
	size_t at, len, to; /* in the block, and in struct header */
	bool of_device;
} numbers[] = {
	{ "mode", 100, 8, offsetof(struct header, mode), false },
	{ "uid", 108, 8, offsetof(struct header, uid), false },
	{ "gid", 116, 8, offsetof(struct header, gid), false },
	{ "size", 124, 12, offsetof(struct header, size), false },
	{ "mtime", 136, 12, offsetof(struct header, mtime), false },
	{ "major number", 329, 8, offsetof(struct header, major), true },
	{ "minor number", 337, 8, offsetof(struct header, minor), true },
};

enum format { POSIX, GNU, OLD };

static const struct {
	const char *magic;
	size_t len;
} formats[] = {
	[POSIX] = { "ustar\0", 6 },
	[GNU] = { "ustar  \0", 8 },
};

/** header_is_zero() - is it one of the two blocks that end an archive? */
bool header_is_zero(const uint8_t block[TAR_BLOCK])
{
	static const uint8_t zero[TAR_BLOCK];

	return memcmp(block, zero, TAR_BLOCK) == 0;
}

/* The sum counts its own field as spaces. Old programs added signed bytes. */
static bool sum_is_right(const uint8_t *block)
{
	int64_t sum = 0, sum_signed = 0, want;

	for (size_t i = 0; i < TAR_BLOCK; i++) {
		uint8_t c = i >= SUM && i < SUM + SUM_LEN ? ' ' : block[i];

		sum += c;
		sum_signed += (int8_t)c;
	}
	return tar_number(block + SUM, SUM_LEN, &want) && (want == sum || want == sum_signed);
}

static void text(const uint8_t *field, size_t len, char *ret)
{
	size_t n = strnlen((const char *)field, len);

	memcpy(ret, field, n);
	ret[n] = '\0';
}

/* Go before 1.8 wrote prefixes into GNU's headers, where two times are: text that is no number. */
static bool has_stray_prefix(const uint8_t *block)
{
	int64_t n;

	return (block[ATIME] && !tar_number(block + ATIME, 12, &n)) ||
	       (block[CTIME] && !tar_number(block + CTIME, 12, &n));
}

static enum format format_of(const uint8_t *block)
{
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
		if (memcmp(block + MAGIC, formats[i].magic, formats[i].len) == 0)
			return (enum format)i;
	return OLD;
}

static int decode_numbers(const uint8_t *block, bool devices, struct header *h, struct hw_err *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		if (numbers[i].of_device && !devices)
			continue;
		if (!tar_number(block + numbers[i].at, numbers[i].len,
				(int64_t *)((char *)h + numbers[i].to)))
			return err_text(e, -EINVAL, "the %s is not a number", numbers[i].name);
	}
	return 0;
}

/**
 * header_decode() - read a block
 *
 * Return: 0, or -EINVAL
 */
int header_decode(const uint8_t block[TAR_BLOCK], struct header *ret_header, struct hw_err *e)
{
	struct header h = { .flag = (char)block[FLAG] };
	char name[NAME_LEN + 1], prefix[PREFIX_LEN + 1] = "";
	enum format format = format_of(block);
	int r;

	if (!sum_is_right(block))
		return err_text(e, -EINVAL, "it is not a tar header: its sum is wrong");
	r = decode_numbers(block, format != OLD, &h, e);
	if (r < 0)
		return r;
	text(block + NAME, NAME_LEN, name);
	text(block + LINK, HEADER_LINK_MAX, h.target);
	if (format == POSIX || (format == GNU && has_stray_prefix(block)))
		text(block + PREFIX, PREFIX_LEN, prefix);
	snprintf(h.path, sizeof(h.path), "%s%s%s", prefix, *prefix ? "/" : "", name);
	*ret_header = h;
	return 0;
}
