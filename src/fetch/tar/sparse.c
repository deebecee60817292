/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/tar/sparse.c - maps of sparse files: which pieces of a file an archive contains
 */
#include "fetch/tar/sparse.h"

#include <errno.h>
#include <string.h>

#include "fetch/tar/number.h"

/* Offsets in a header of type 'S' and in the blocks that follow it. */
#define PAIR_LEN    24
#define NUMBER_LEN  12
#define FIRST_AT    386
#define FIRST_PAIRS 4
#define FIRST_MORE  482
#define REAL_SIZE   483
#define BLOCK_PAIRS 21
#define BLOCK_MORE  504

void sparse_add(struct tar_entry *entry, int64_t offset, int64_t len)
{
	entry->pieces = mem_resize(entry->pieces, entry->n_pieces + 1, sizeof(*entry->pieces));
	entry->pieces[entry->n_pieces++] = (struct tar_piece){ offset, len };
}

int sparse_check(const struct tar_entry *entry, struct hw_err *e)
{
	int64_t end = 0, sum = 0;

	for (size_t i = 0; i < entry->n_pieces; i++) {
		const struct tar_piece *p = &entry->pieces[i];

		if (p->offset < end || p->len < 0 || p->offset > entry->size ||
		    p->len > entry->size - p->offset)
			return err_text(e, -EINVAL,
					"invalid sparse map: piece at offset %lld with %lld bytes, "
					"file has %lld bytes",
					(long long)p->offset, (long long)p->len,
					(long long)entry->size);
		end = p->offset + p->len;
		sum += p->len;
	}
	if (sum != entry->stored)
		return err_text(e, -EINVAL,
				"sparse map does not match the data: map has %lld bytes, "
				"archive has %lld",
				(long long)sum, (long long)entry->stored);
	return 0;
}

/* ---- numbers in blocks ----------------------------------------------------- */

/* Adds pieces up to the first empty pair. */
static int parse_pairs(struct tar_entry *entry, const uint8_t *p, size_t n, struct hw_err *e)
{
	for (size_t i = 0; i < n; i++, p += PAIR_LEN) {
		int64_t offset, len;

		if (p[0] == '\0' && p[NUMBER_LEN] == '\0')
			break;
		if (!tar_number(p, NUMBER_LEN, &offset) ||
		    !tar_number(p + NUMBER_LEN, NUMBER_LEN, &len))
			return err_text(e, -EINVAL, "malformed sparse map");
		if (entry->n_pieces == TAR_HOLES_MAX)
			return err_text(e, -EINVAL, "sparse map has more than %d pieces",
					TAR_HOLES_MAX);
		sparse_add(entry, offset, len);
	}
	return 0;
}

int sparse_parse_header(struct tar_entry *entry, const uint8_t block[TAR_BLOCK], struct hw_err *e)
{
	int r;

	r = parse_pairs(entry, block + FIRST_AT, FIRST_PAIRS, e);
	if (r < 0)
		return r;
	if (!tar_number(block + REAL_SIZE, NUMBER_LEN, &entry->size))
		return err_text(e, -EINVAL, "malformed size of a sparse file");
	return block[FIRST_MORE] != '\0';
}

int sparse_parse_block(struct tar_entry *entry, const uint8_t block[TAR_BLOCK], struct hw_err *e)
{
	int r;

	r = parse_pairs(entry, block, BLOCK_PAIRS, e);
	return r < 0 ? r : block[BLOCK_MORE] != '\0';
}

/* ---- lines of text --------------------------------------------------------- */

void sparse_text_init(struct sparse_text *s)
{
	*s = (struct sparse_text){ .want = -1 };
}

void sparse_text_done(struct sparse_text *s)
{
	buf_done(&s->text);
}

/* Parses the number on a line, and moves *p behind the line. */
static bool parse_line(const char **p, const char *end, int64_t *ret_n)
{
	const char *newline;

	newline = memchr(*p, '\n', (size_t)(end - *p));
	if (!newline || !tar_decimal(*p, (size_t)(newline - *p), ret_n))
		return false;
	*p = newline + 1;
	return true;
}

/* The first line is the number of pieces. Two lines follow for each piece: its offset and its
 * length. */
int sparse_parse_text(struct sparse_text *s, struct tar_entry *entry,
		      const uint8_t block[TAR_BLOCK], struct hw_err *e)
{
	const char *p, *end;
	int64_t n = 0, offset, len;

	if (entry->stored < TAR_BLOCK || s->text.len >= TAR_MAP_MAX)
		return err_text(e, -EINVAL, "unterminated sparse map");
	entry->stored -= TAR_BLOCK;
	buf_add(&s->text, block, TAR_BLOCK);
	for (size_t i = 0; i < TAR_BLOCK; i++)
		s->lines += block[i] == '\n';
	p = s->text.data;
	end = p + s->text.len;
	if (s->want < 0 && s->lines > 0) {
		if (!parse_line(&p, end, &n) || n > TAR_HOLES_MAX)
			return err_text(e, -EINVAL, "invalid number of pieces in a sparse map");
		s->want = 1 + 2 * n;
	}
	if (s->want < 0 || s->lines < s->want)
		return 1;
	p = s->text.data;
	if (!parse_line(&p, end, &n))
		return err_text(e, -EINVAL, "malformed sparse map");
	for (int64_t i = 0; i < n; i++) {
		if (!parse_line(&p, end, &offset) || !parse_line(&p, end, &len))
			return err_text(e, -EINVAL, "malformed sparse map");
		sparse_add(entry, offset, len);
	}
	return 0;
}
