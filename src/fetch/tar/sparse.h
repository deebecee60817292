/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/tar/sparse.h - which pieces of a sparse file an archive has
 *
 * What:  the map in GNU's two forms that are not in PAX records: numbers in the
 *        header and blocks after it ('S'), and lines of text before the data
 *        (1.0).
 */
#ifndef FETCH_TAR_SPARSE_H
#define FETCH_TAR_SPARSE_H

#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "fetch/tar/tar.h"

/* A map as text, of which blocks come one by one. */
struct sparse_text {
	struct buf text;
	int64_t lines; /* so far */
	int64_t want;  /* lines that it has; -1: not known yet */
};

void sparse_add(struct tar_entry *entry, int64_t offset, int64_t len);
int sparse_check(const struct tar_entry *entry, struct hw_err *e);

/* Each returns 1 when there is more to come, in the next block. */
int sparse_parse_header(struct tar_entry *entry, const uint8_t block[TAR_BLOCK], struct hw_err *e);
int sparse_parse_block(struct tar_entry *entry, const uint8_t block[TAR_BLOCK], struct hw_err *e);
int sparse_parse_text(struct sparse_text *s, struct tar_entry *entry,
		      const uint8_t block[TAR_BLOCK], struct hw_err *e);

void sparse_text_init(struct sparse_text *s);
void sparse_text_done(struct sparse_text *s);

#endif
