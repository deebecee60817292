/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/tar/sparse.h - maps of sparse files: which pieces of a file an archive contains
 *
 * What:  parses the map in GNU's two formats outside PAX records: numbers in the header and in the
 *        blocks after it (type 'S'), and lines of text before the data (version 1.0).
 */
#ifndef FETCH_TAR_SPARSE_H
#define FETCH_TAR_SPARSE_H

#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "fetch/tar/tar.h"

/* A map in text form, parsed block by block. */
struct sparse_text {
	struct buf text;
	int64_t lines; /* number of lines in text */
	int64_t want;  /* number of lines of the whole map; -1: not known yet */
};

void sparse_add(struct tar_entry *entry, int64_t offset, int64_t len); /* adds a piece */
/* Check that the pieces are in order, do not overlap, lie inside the file, and have entry->stored
 * bytes in total. Return: 0, or -EINVAL */
int sparse_check(const struct tar_entry *entry, struct hw_err *e);

/* Add the pieces in a block to @entry. Return: 0: the map is complete; 1: it continues in the next
 * block; or -EINVAL. sparse_parse_header() also sets entry->size. sparse_parse_text() subtracts the
 * size of the block from entry->stored, and ignores the rest of the last block. */
int sparse_parse_header(struct tar_entry *entry, const uint8_t block[TAR_BLOCK], struct hw_err *e);
int sparse_parse_block(struct tar_entry *entry, const uint8_t block[TAR_BLOCK], struct hw_err *e);
int sparse_parse_text(struct sparse_text *s, struct tar_entry *entry,
		      const uint8_t block[TAR_BLOCK], struct hw_err *e);

void sparse_text_init(struct sparse_text *s);
void sparse_text_done(struct sparse_text *s);

#endif
