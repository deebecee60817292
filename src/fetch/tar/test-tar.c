/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/tar/test-tar.c - which functions of the sink the tar reader calls
 *
 * test/image/test_unpack.py tests archives of different programs and formats.
 */
#include "fetch/tar/tar.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include "base/buf.h"

struct recorder {
	struct buf text;  /* one line for each call */
	struct buf bytes; /* passed to data() and other() */
	const char *fail; /* name of the function that fails; NULL: none */
};

static int result_of(struct recorder *s, const char *name, struct hw_err *e)
{
	if (s->fail && strcmp(s->fail, name) == 0)
		return err_text(e, -EDOM, "failed %s", name);
	return 0;
}

static int on_entry(void *ctx, const struct tar_entry *entry, struct hw_err *e)
{
	struct recorder *s = ctx;

	buf_printf(&s->text, "%d %s>%s %04o %u:%u %lld/%lld\n", entry->type, entry->path,
		   entry->target, entry->mode, entry->uid, entry->gid, (long long)entry->stored,
		   (long long)entry->size);
	return result_of(s, "entry", e);
}

static int on_data(void *ctx, int64_t offset, const void *data, size_t len, struct hw_err *e)
{
	struct recorder *s = ctx;

	buf_printf(&s->text, "%lld+%zu\n", (long long)offset, len);
	buf_add(&s->bytes, data, len);
	return result_of(s, "data", e);
}

static int on_end(void *ctx, struct hw_err *e)
{
	struct recorder *s = ctx;

	buf_puts(&s->text, "end\n");
	return result_of(s, "end", e);
}

static int on_other(void *ctx, const void *data, size_t len, struct hw_err *e)
{
	struct recorder *s = ctx;

	buf_add(&s->bytes, data, len);
	return result_of(s, "other", e);
}

static const struct tar_sink sink = { on_entry, on_data, on_end, on_other };

static void recorder_done(struct recorder *s)
{
	buf_done(&s->text);
	buf_done(&s->bytes);
}

/* Adds a header with its checksum, and the padded data. */
static void add_member(struct buf *b, char flag, const char *name, const char *target,
		       const char *data)
{
	unsigned char block[TAR_BLOCK] = { 0 };
	size_t len = strlen(data);
	unsigned int sum = 0;

	snprintf((char *)block, 100, "%s", name);
	snprintf((char *)block + 100, 8, "%07o", 0640);
	snprintf((char *)block + 108, 8, "%07o", 5);
	snprintf((char *)block + 116, 8, "%07o", 6);
	snprintf((char *)block + 124, 12, "%011o", (unsigned int)len);
	snprintf((char *)block + 136, 12, "%011o", 7);
	memset(block + 148, ' ', 8);
	block[156] = (unsigned char)flag;
	snprintf((char *)block + 157, 100, "%s", target);
	snprintf((char *)block + 257, 6, "ustar");
	block[263] = block[264] = '0';
	for (size_t i = 0; i < TAR_BLOCK; i++)
		sum += block[i];
	snprintf((char *)block + 148, 8, "%06o", sum);
	buf_add(b, block, TAR_BLOCK);
	buf_add(b, data, len);
	memset(buf_reserve(b, TAR_BLOCK), 0, TAR_BLOCK);
	buf_commit(b, (TAR_BLOCK - len % TAR_BLOCK) % TAR_BLOCK);
}

static void add_zeros(struct buf *b, size_t n)
{
	memset(buf_reserve(b, n), 0, n);
	buf_commit(b, n);
}

static int read_all(const struct buf *archive, size_t chunk, struct recorder *s, struct hw_err *e)
{
	AUTO(tar_free) struct tar *t = tar_new(&sink, s);
	int r = 0;

	for (size_t at = 0; r == 0 && at < archive->len; at += chunk)
		r = tar_feed(t, archive->data + at,
			     archive->len - at < chunk ? archive->len - at : chunk, e);
	return r < 0 ? r : tar_finish(t, e);
}

static void build_archive(struct buf *b)
{
	add_member(b, '5', "d/", "", "");
	add_member(b, 'x', "pax", "",
		   "14 path=d/pax\n28 GNU.sparse.map=0,2,600,3\n"
		   "23 GNU.sparse.size=900\n");
	add_member(b, '0', "x", "", "abcde");
	add_member(b, '2', "l", "../target", "");
	add_member(b, '0', "f", "", "content");
	add_zeros(b, 2 * TAR_BLOCK);
	buf_puts(b, "trailing bytes");
}

static void test_members(void **state)
{
	AUTO(buf_done) struct buf archive = { 0 };
	struct recorder s = { 0 };
	struct hw_err e;

	(void)state;
	build_archive(&archive);
	assert_int_equal(read_all(&archive, archive.len, &s, &e), 0);
	assert_string_equal(s.text.data, "5 d/> 0640 5:6 0/0\nend\n"
					 "0 d/pax> 0640 5:6 5/900\n0+2\n600+3\nend\n"
					 "2 l>../target 0640 5:6 0/0\nend\n"
					 "0 f> 0640 5:6 7/7\n0+7\nend\n");
	recorder_done(&s);
}

static void test_bytes(void **state)
{
	AUTO(buf_done) struct buf archive = { 0 };
	struct hw_err e;

	(void)state;
	build_archive(&archive);
	for (size_t chunk = 1; chunk < 1100; chunk += 61) {
		struct recorder s = { 0 };

		assert_int_equal(read_all(&archive, chunk, &s, &e), 0);
		assert_int_equal(s.bytes.len, archive.len);
		assert_memory_equal(s.bytes.data, archive.data, archive.len);
		recorder_done(&s);
	}
}

static void test_sink_fails(void **state)
{
	static const char *const calls[] = { "entry", "data", "end", "other" };
	AUTO(buf_done) struct buf archive = { 0 };

	(void)state;
	build_archive(&archive);
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		struct recorder s = { .fail = calls[i] };
		struct hw_err e;

		assert_int_equal(read_all(&archive, 100, &s, &e), -EDOM);
		assert_true(strncmp(e.msg, "failed ", 7) == 0);
		recorder_done(&s);
	}
}

static void test_empty(void **state)
{
	AUTO(buf_done) struct buf archive = { 0 };
	struct recorder s = { 0 };
	struct hw_err e;

	(void)state;
	assert_int_equal(read_all(&archive, 1, &s, &e), 0);
	add_zeros(&archive, 2 * TAR_BLOCK);
	assert_int_equal(read_all(&archive, 100, &s, &e), 0);
	assert_null(s.text.data);
	recorder_done(&s);
}

static void test_truncated(void **state)
{
	AUTO(buf_done) struct buf archive = { 0 };
	struct recorder s = { 0 };
	struct hw_err e;

	(void)state;
	add_member(&archive, '0', "some/file", "", "content");
	archive.len = TAR_BLOCK + 3;
	assert_int_equal(read_all(&archive, 100, &s, &e), -EINVAL);
	assert_string_equal(e.msg, "truncated tar archive: ends at byte 515, inside some/file");
	recorder_done(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "tar: entry(), data() and end() are called for each member, in order",
		  test_members },
		{ "tar: data() and other() together receive every byte of the archive",
		  test_bytes },
		{ "tar: an error of the sink stops the reader", test_sink_fails },
		{ "tar: an empty archive is read without an error and has no members", test_empty },
		{ "tar: the error for a truncated archive tells where the archive ends",
		  test_truncated },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
