/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/tar/fuzz-tar.c - fuzz test: the tar reader
 *
 * First the checksums are corrected. Then the archive is read twice: in one piece and in small
 * pieces. Both runs must return the same members, the bytes passed to data() and other() together
 * must be the archive, and each member must have the properties that tar.h documents.
 */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "fetch/tar/fuzz-sums.h"
#include "fetch/tar/tar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct recorder {
	struct buf bytes;   /* passed to data() and other() */
	struct buf events;  /* calls of the sink, as text */
	int64_t size, last; /* size of the member, and end of its data so far */
	bool inside;
};

static void check_entry(const struct tar_entry *entry)
{
	int64_t sum = 0;

	assert(entry->path && entry->target && (entry->mode & ~07777u) == 0);
	assert(entry->size >= 0 && entry->stored >= 0 && entry->stored <= entry->size);
	assert(entry->uid != UINT32_MAX && entry->gid != UINT32_MAX);
	assert(entry->type == TAR_FILE || entry->size == 0);
	assert(entry->mtime.tv_nsec >= 0 && entry->mtime.tv_nsec < 1000000000);
	for (size_t i = 0; i < entry->n_pieces; i++)
		sum += entry->pieces[i].len;
	assert(sum == entry->stored);
}

static int on_entry(void *ctx, const struct tar_entry *entry, struct hw_err *e)
{
	struct recorder *s = ctx;

	(void)e;
	assert(!s->inside);
	check_entry(entry);
	s->inside = true;
	s->size = entry->size;
	s->last = 0;
	buf_printf(&s->events, "%d %s %s %o %u:%u %lld %zu %zu\n", entry->type, entry->path,
		   entry->target, entry->mode, entry->uid, entry->gid, (long long)entry->size,
		   entry->n_pieces, entry->n_xattrs);
	return 0;
}

static int on_data(void *ctx, int64_t offset, const void *data, size_t len, struct hw_err *e)
{
	struct recorder *s = ctx;

	(void)e;
	assert(s->inside && len > 0 && offset >= s->last && offset + (int64_t)len <= s->size);
	s->last = offset + (int64_t)len;
	buf_add(&s->bytes, data, len);
	return 0;
}

static int on_end(void *ctx, struct hw_err *e)
{
	struct recorder *s = ctx;

	(void)e;
	assert(s->inside);
	s->inside = false;
	buf_puts(&s->events, "end\n");
	return 0;
}

static int on_other(void *ctx, const void *data, size_t len, struct hw_err *e)
{
	struct recorder *s = ctx;

	(void)e;
	assert(!s->inside);
	buf_add(&s->bytes, data, len);
	return 0;
}

static const struct tar_sink sink = { on_entry, on_data, on_end, on_other };

static int read_archive(const uint8_t *data, size_t size, size_t chunk, struct recorder *s)
{
	AUTO(tar_free) struct tar *t = tar_new(&sink, s);
	struct hw_err e = { 0 };
	int r = 0;

	for (size_t at = 0; r == 0 && at < size; at += chunk)
		r = tar_feed(t, data + at, size - at < chunk ? size - at : chunk, &e);
	if (r == 0) {
		assert(s->bytes.len == size &&
		       (size == 0 || memcmp(s->bytes.data, data, size) == 0));
		r = tar_finish(t, &e);
	}
	assert(r == 0 || (e.code == r && e.msg[0]));
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	autofree uint8_t *copy = mem_new(size + 1);
	struct recorder whole = { 0 }, pieces = { 0 };
	int r;

	if (size > 0)
		memcpy(copy, data, size);
	fix_checksums(copy, size);
	r = read_archive(copy, size, size + 1, &whole);
	assert(read_archive(copy, size, 61, &pieces) == r);
	assert(whole.events.len == pieces.events.len);
	assert(whole.events.len == 0 ||
	       memcmp(whole.events.data, pieces.events.data, whole.events.len) == 0);
	buf_done(&whole.bytes);
	buf_done(&whole.events);
	buf_done(&pieces.bytes);
	buf_done(&pieces.events);
	return 0;
}
