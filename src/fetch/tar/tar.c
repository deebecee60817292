/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/tar/tar.c - streaming tar reader without I/O: bytes in, members out
 *
 * How:   the state determines how the next bytes are interpreted; each state consumes as many bytes
 *        as it can.
 *
 *	state     next bytes                      next state
 *	HEADER    a block                         EXTRA, MAP_BLOCK, MAP_TEXT, DATA, HEADER, or
 *	                                          TRAILER after two zero blocks
 *	EXTRA     a PAX header or GNU long name   HEADER
 *	MAP_BLOCK more of an 'S' file's map       MAP_BLOCK or DATA
 *	MAP_TEXT  the map of a sparse 1.0 file    MAP_TEXT or DATA
 *	DATA      file data                       PADDING
 *	PADDING   up to the end of the block      HEADER
 *	TRAILER   any bytes, not interpreted      TRAILER
 */
#include "fetch/tar/tar.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "fetch/tar/header.h"
#include "fetch/tar/pax.h"
#include "fetch/tar/sparse.h"

#define SIZE_LIMIT (INT64_MAX / 4) /* so that sums of a few sizes cannot overflow */

enum state { HEADER, EXTRA, MAP_BLOCK, MAP_TEXT, DATA, PADDING, TRAILER };

struct tar {
	const struct tar_sink *sink;
	void *ctx;
	enum state state;
	int64_t at; /* bytes consumed so far */
	uint8_t block[TAR_BLOCK];
	size_t fill;	   /* bytes in block */
	bool had_zeros;	   /* a zero block was read */
	int64_t left;	   /* bytes left in EXTRA, DATA or PADDING */
	struct buf extra;  /* body of a PAX header or long name */
	char extra_flag;   /* type of the extra header: 'x', 'g', 'L', 'K' */
	size_t extra_len;  /* length of its body without padding */
	bool pending;	   /* extra headers were read, but not yet the member after them */
	char *long_path;   /* from a header of type 'L'; NULL: none */
	char *long_target; /* from a header of type 'K'; NULL: none */
	struct pax pax;
	struct tar_entry entry;
	size_t piece;	  /* index of the current piece in entry.pieces */
	int64_t piece_at; /* bytes consumed of the current piece */
	struct sparse_text map;
};

struct tar *tar_new(const struct tar_sink *sink, void *ctx)
{
	struct tar *t = mem_new(sizeof(*t));

	t->sink = sink;
	t->ctx = ctx;
	pax_init(&t->pax);
	sparse_text_init(&t->map);
	return t;
}

/* Clears the current member and the extra headers that belong to it. */
static void reset_member(struct tar *t)
{
	free(take_ptr(t->long_path));
	free(take_ptr(t->long_target));
	free(t->entry.path);
	free(t->entry.target);
	free(t->entry.pieces);
	t->entry = (struct tar_entry){ 0 };
	t->pending = false;
	pax_done(&t->pax);
	sparse_text_done(&t->map);
	sparse_text_init(&t->map);
}

void tar_free(struct tar *t)
{
	if (!t)
		return;
	reset_member(t);
	buf_done(&t->extra);
	free(t);
}

/* ---- members --------------------------------------------------------------- */

static const struct {
	char flag;
	enum tar_type type;
} types[] = {
	{ '0', TAR_FILE },     { '\0', TAR_FILE },   { '7', TAR_FILE }, { 'S', TAR_FILE },
	{ '1', TAR_HARDLINK }, { '2', TAR_SYMLINK }, { '3', TAR_CHAR }, { '4', TAR_BLOCKDEV },
	{ '5', TAR_DIR },      { '6', TAR_FIFO },
};

/* UINT32_MAX is -1, which chown() takes as "leave unchanged". */
static int check_owner(const char *name, int64_t id, struct hw_err *e)
{
	if (id >= 0 && id < UINT32_MAX)
		return 0;
	return err_text(e, -EINVAL, "invalid %s ID %lld", name, (long long)id);
}

static int check_size(int64_t size, struct hw_err *e)
{
	if (size >= 0 && size <= SIZE_LIMIT)
		return 0;
	return err_text(e, -EINVAL, "invalid size %lld", (long long)size);
}

/* A number in a PAX header takes precedence over the one in the member's own header. */
static int64_t pax_or(int64_t from_pax, int64_t from_header)
{
	return from_pax >= 0 ? from_pax : from_header;
}

/* Combines the header with the extra headers before it. */
static int fill_entry(struct tar *t, const struct tar_header *h, struct hw_err *e)
{
	struct tar_entry *entry = &t->entry;
	int64_t uid = pax_or(t->pax.uid, h->uid), gid = pax_or(t->pax.gid, h->gid);
	const char *path = t->pax.path ? t->pax.path : h->path;
	const char *target = t->pax.target ? t->pax.target : h->target;
	size_t i = 0;
	int r;

	entry->path = str_copy(t->long_path ? t->long_path : path);
	entry->target = str_copy(t->long_target ? t->long_target : target);
	while (i < ARRAY_SIZE(types) && types[i].flag != h->flag)
		i++;
	if (i == ARRAY_SIZE(types))
		return err_text(e, -EOPNOTSUPP, "unsupported member type 0x%02x", (uint8_t)h->flag);
	/* the oldest archives mark a directory only by the slash after its name */
	entry->type = h->flag == '\0' && str_ends(entry->path, "/") ? TAR_DIR : types[i].type;
	r = check_owner("user", uid, e);
	if (r < 0)
		return r;
	r = check_owner("group", gid, e);
	if (r < 0)
		return r;
	if ((entry->type == TAR_CHAR || entry->type == TAR_BLOCKDEV) &&
	    (h->major < 0 || h->major >= 1 << 12 || h->minor < 0 || h->minor >= 1 << 20))
		return err_text(e, -EINVAL, "invalid device number %lld:%lld", (long long)h->major,
				(long long)h->minor);
	entry->mode = (mode_t)(h->mode & 07777);
	entry->uid = (uid_t)uid;
	entry->gid = (gid_t)gid;
	entry->mtime = t->pax.has_mtime ? t->pax.mtime : (struct timespec){ .tv_sec = h->mtime };
	entry->major = (unsigned int)h->major;
	entry->minor = (unsigned int)h->minor;
	entry->xattrs = t->pax.xattrs;
	entry->n_xattrs = t->pax.n_xattrs;
	return h->size < 0 ? check_size(h->size, e) : 0;
}

static int64_t padding(int64_t size)
{
	return (TAR_BLOCK - size % TAR_BLOCK) % TAR_BLOCK;
}

static int end_entry(struct tar *t, struct hw_err *e)
{
	int r;

	r = t->sink->end(t->ctx, e);
	if (r < 0)
		return r;
	t->left = padding(t->entry.stored);
	t->state = t->left > 0 ? PADDING : HEADER;
	reset_member(t);
	return 0;
}

/* Called when the entry is complete, including its sparse map. */
static int begin_entry(struct tar *t, struct hw_err *e)
{
	int r;

	r = t->sink->entry(t->ctx, &t->entry, e);
	if (r < 0)
		return r;
	t->piece = 0;
	t->piece_at = 0;
	t->left = t->entry.stored;
	t->state = DATA;
	return t->left > 0 ? 0 : end_entry(t, e);
}

/* ---- sparse files ---------------------------------------------------------- */

/* @r: result of a sparse_parse_ function: an error, 0, or 1 if the map continues in the next
 * block */
static int begin_sparse(struct tar *t, int r, struct hw_err *e)
{
	if (r == 1)
		return 0;
	if (r == 0)
		r = check_size(t->entry.size, e);
	if (r == 0)
		r = sparse_check(&t->entry, e);
	if (r < 0)
		return err_ctx(e, "tar member \"%.256s\"", t->entry.path);
	return begin_entry(t, e);
}

static int parse_map_block(struct tar *t, const uint8_t *block, struct hw_err *e)
{
	return begin_sparse(t, sparse_parse_block(&t->entry, block, e), e);
}

static int parse_map_text(struct tar *t, const uint8_t *block, struct hw_err *e)
{
	return begin_sparse(t, sparse_parse_text(&t->map, &t->entry, block, e), e);
}

/* ---- headers --------------------------------------------------------------- */

static int begin_file(struct tar *t, const struct tar_header *h, const uint8_t *block,
		      struct hw_err *e)
{
	enum pax_sparse format = pax_sparse(&t->pax);
	int r;

	t->entry.stored = pax_or(t->pax.size, h->size);
	t->entry.size = t->entry.stored;
	r = check_size(t->entry.stored, e);
	if (r < 0)
		return err_ctx(e, "tar member \"%.256s\"", t->entry.path);
	if (h->flag == 'S') {
		t->state = MAP_BLOCK;
		return begin_sparse(t, sparse_parse_header(&t->entry, block, e), e);
	}
	if (format == PAX_SPARSE_NONE) {
		if (t->entry.stored > 0)
			sparse_add(&t->entry, 0, t->entry.stored);
		return begin_entry(t, e);
	}
	if (t->pax.sparse_path) {
		free(t->entry.path);
		t->entry.path = str_copy(t->pax.sparse_path);
	}
	t->entry.size = pax_or(t->pax.real_size, t->entry.stored);
	if (format == PAX_SPARSE_0) {
		t->entry.n_pieces = t->pax.n_pieces;
		t->entry.pieces = take_ptr(t->pax.pieces);
		t->pax.n_pieces = 0;
		return begin_sparse(t, 0, e);
	}
	t->state = MAP_TEXT;
	return 0;
}

/* An empty GNU long name clears an earlier one. */
static void set_long_name(const struct buf *extra, size_t len, char **name)
{
	free(take_ptr(*name));
	if (len > 0 && extra->data[0])
		*name = str_ncopy(extra->data, len);
}

/* Called at the end of an extra header. A second PAX header replaces the first one. */
static int end_extra(struct tar *t, struct hw_err *e)
{
	int r = 0;

	if (t->extra_flag == 'x') {
		pax_done(&t->pax);
		r = pax_decode(&t->pax, t->extra.data, t->extra_len, e);
	} else if (t->extra_flag == 'L') {
		set_long_name(&t->extra, t->extra_len, &t->long_path);
	} else if (t->extra_flag == 'K') {
		set_long_name(&t->extra, t->extra_len, &t->long_target);
	}
	buf_done(&t->extra);
	t->state = HEADER;
	return r < 0 ? err_ctx(e, "tar archive at byte %lld", (long long)t->at) : 0;
}

static int begin_extra(struct tar *t, const struct tar_header *h, struct hw_err *e)
{
	if (h->size < 0 || h->size > TAR_EXTRA_MAX)
		return err_text(e, -EINVAL,
				"tar header at byte %lld: invalid size %lld: at most %d bytes "
				"are allowed",
				(long long)t->at, (long long)h->size, TAR_EXTRA_MAX);
	buf_done(&t->extra);
	t->extra_flag = h->flag;
	t->pending = h->flag != 'g';
	t->extra_len = (size_t)h->size;
	t->left = h->size + padding(h->size);
	t->state = EXTRA;
	return t->left > 0 ? 0 : end_extra(t, e);
}

static int parse_header(struct tar *t, const uint8_t *block, struct hw_err *e)
{
	struct tar_header h;

	if (tar_header_is_zero(block)) {
		t->state = t->had_zeros ? TRAILER : HEADER;
		t->had_zeros = true;
		return 0;
	}
	if (t->had_zeros)
		return err_text(e, -EINVAL,
				"tar archive at byte %lld: unexpected data after a zero block",
				(long long)t->at);
	if (tar_header_decode(block, &h, e) < 0)
		return err_ctx(e, "tar archive at byte %lld", (long long)t->at - TAR_BLOCK);
	if (h.flag == 'x' || h.flag == 'g' || h.flag == 'L' || h.flag == 'K')
		return begin_extra(t, &h, e);
	if (fill_entry(t, &h, e) < 0)
		return err_ctx(e, "tar member \"%.256s\"", t->entry.path);
	if (t->entry.type == TAR_FILE)
		return begin_file(t, &h, block, e);
	return begin_entry(t, e);
}

/* ---- bytes ----------------------------------------------------------------- */

static size_t min_size(int64_t left, size_t len)
{
	return (uint64_t)left < len ? (size_t)left : len;
}

/* For states that parse whole blocks. Return: bytes consumed, or negative errno */
static ssize_t feed_block(struct tar *t, const uint8_t *data, size_t len,
			  int (*parse)(struct tar *t, const uint8_t *block, struct hw_err *e),
			  struct hw_err *e)
{
	size_t n = min_size((int64_t)(TAR_BLOCK - t->fill), len);
	int r;

	r = t->sink->other(t->ctx, data, n, e);
	if (r < 0)
		return r;
	memcpy(t->block + t->fill, data, n);
	t->fill += n;
	t->at += (int64_t)n;
	if (t->fill == TAR_BLOCK) {
		t->fill = 0;
		r = parse(t, t->block, e);
	}
	return r < 0 ? r : (ssize_t)n;
}

static ssize_t feed_extra(struct tar *t, const uint8_t *data, size_t len, struct hw_err *e)
{
	size_t n = min_size(t->left, len);
	int r;

	r = t->sink->other(t->ctx, data, n, e);
	if (r < 0)
		return r;
	buf_add(&t->extra, data, n);
	t->at += (int64_t)n;
	t->left -= (int64_t)n;
	if (t->left == 0)
		r = end_extra(t, e);
	return r < 0 ? r : (ssize_t)n;
}

static ssize_t feed_data(struct tar *t, const uint8_t *data, size_t len, struct hw_err *e)
{
	const struct tar_piece *p = &t->entry.pieces[t->piece];
	size_t n = min_size(p->len - t->piece_at, len);
	int r = 0;

	if (n > 0)
		r = t->sink->data(t->ctx, p->offset + t->piece_at, data, n, e);
	if (r < 0)
		return r;
	t->at += (int64_t)n;
	t->left -= (int64_t)n;
	t->piece_at += (int64_t)n;
	if (t->piece_at == p->len) {
		t->piece++;
		t->piece_at = 0;
	}
	if (t->left == 0)
		r = end_entry(t, e);
	return r < 0 ? r : (ssize_t)n;
}

/* For the states PADDING and TRAILER. */
static ssize_t feed_padding(struct tar *t, const uint8_t *data, size_t len, struct hw_err *e)
{
	size_t n = t->state == TRAILER ? len : min_size(t->left, len);
	int r;

	r = t->sink->other(t->ctx, data, n, e);
	if (r < 0)
		return r;
	t->at += (int64_t)n;
	if (t->state == PADDING) {
		t->left -= (int64_t)n;
		t->state = t->left > 0 ? PADDING : HEADER;
	}
	return (ssize_t)n;
}

int tar_feed(struct tar *t, const void *data, size_t len, struct hw_err *e)
{
	const uint8_t *p = data;

	while (len > 0) {
		ssize_t n;

		switch (t->state) {
		case HEADER:
			n = feed_block(t, p, len, parse_header, e);
			break;
		case MAP_BLOCK:
			n = feed_block(t, p, len, parse_map_block, e);
			break;
		case MAP_TEXT:
			n = feed_block(t, p, len, parse_map_text, e);
			break;
		case EXTRA:
			n = feed_extra(t, p, len, e);
			break;
		case DATA:
			n = feed_data(t, p, len, e);
			break;
		default:
			n = feed_padding(t, p, len, e);
		}
		if (n < 0)
			return (int)n;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

int tar_skip(struct tar *t, struct hw_err *e)
{
	if (t->state != DATA || t->left != t->entry.stored)
		return err_text(e, -EINVAL,
				"tar archive at byte %lld: not at the start of a member's data",
				(long long)t->at);
	t->at += t->left;
	return end_entry(t, e);
}

int tar_finish(struct tar *t, struct hw_err *e)
{
	if (t->state == TRAILER || t->state == PADDING ||
	    (t->state == HEADER && t->fill == 0 && !t->pending))
		return 0;
	return err_text(e, -EINVAL, "truncated tar archive: ends at byte %lld, inside %.256s",
			(long long)t->at, t->entry.path ? t->entry.path : "a header");
}
