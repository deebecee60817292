/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/tar/pax.h - parser of PAX headers, which have attributes of the next member
 */
#ifndef FETCH_TAR_PAX_H
#define FETCH_TAR_PAX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "base/err.h"
#include "base/mem.h"
#include "fetch/tar/tar.h"

/* GNU tar's formats for sparse files that use PAX headers. The oldest format, 'S', uses the
 * member's own header instead. */
enum pax_sparse {
	PAX_SPARSE_NONE,
	PAX_SPARSE_0, /* 0.0 and 0.1: the map is in the records */
	PAX_SPARSE_1, /* 1.0: the map is before the data */
};

struct pax {
	char *path, *target;		   /* NULL: not set */
	int64_t size, uid, gid, real_size; /* -1: not set */
	bool has_mtime;
	struct timespec mtime;
	struct tar_xattr *xattrs;
	size_t n_xattrs;
	char *sparse_path;
	int64_t sparse_major, sparse_minor; /* -1: not set */
	bool has_map;
	struct tar_piece *pieces;
	size_t n_pieces;
};

void pax_init(struct pax *p);
void pax_done(struct pax *p); /* leaves @p as after pax_init() */
/* Add the records of a PAX header to @p. Return: 0, or -EINVAL */
int pax_decode(struct pax *p, const char *data, size_t len, struct hw_err *e);
enum pax_sparse pax_sparse(const struct pax *p);

AUTO_VALUE_DEFINE(pax_done, struct pax);

#endif
