/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/tar/pax.c - parser of PAX headers, which have attributes of the next member
 *
 * What:  records "LENGTH KEY=VALUE\n", where LENGTH is the size of the whole record. A table lists
 *        the known keys; other keys are ignored.
 * Rules: an empty value removes an earlier value of the same key (POSIX pax, "pax Extended
 *        Header"). A path must not contain NUL. Values of extended attributes may be any bytes.
 */
#include "fetch/tar/pax.h"

#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "fetch/tar/number.h"

#define XATTR	   "SCHILY.xattr."
#define XATTRS_MAX 1024 /* maximum number for one member */

struct pax_record {
	const char *key;
	size_t key_len;
	const char *value;
	size_t len;
};

/* ---- values: each parser writes to p and returns false if the value is invalid --- */

static bool parse_text(void *p, const struct pax_record *r)
{
	char **text = p;

	if (memchr(r->value, '\0', r->len))
		return false;
	free(*text);
	*text = r->len ? str_ncopy(r->value, r->len) : NULL;
	return true;
}

static bool parse_number(void *p, const struct pax_record *r)
{
	if (r->len)
		return tar_decimal(r->value, r->len, p);
	*(int64_t *)p = -1;
	return true;
}

static bool parse_mtime(void *p, const struct pax_record *r)
{
	struct pax *pax = p;

	pax->has_mtime = r->len > 0;
	return !r->len || tar_time(r->value, r->len, &pax->mtime);
}

static bool add_map_number(struct pax *pax, int64_t n, bool is_offset)
{
	if (is_offset) {
		if (pax->n_pieces == TAR_HOLES_MAX)
			return false;
		pax->pieces = mem_resize(pax->pieces, pax->n_pieces + 1, sizeof(*pax->pieces));
		pax->pieces[pax->n_pieces++] = (struct tar_piece){ n, -1 };
		return true;
	}
	if (pax->n_pieces == 0 || pax->pieces[pax->n_pieces - 1].len != -1)
		return false;
	pax->pieces[pax->n_pieces - 1].len = n;
	return true;
}

/* GNU.sparse 0.0: offsets and lengths in alternating records */
static bool parse_map_offset(void *p, const struct pax_record *r)
{
	struct pax *pax = p;
	int64_t n;

	pax->has_map = true;
	return tar_decimal(r->value, r->len, &n) && add_map_number(pax, n, true);
}

static bool parse_map_length(void *p, const struct pax_record *r)
{
	int64_t n;

	return tar_decimal(r->value, r->len, &n) && add_map_number(p, n, false);
}

/* GNU.sparse 0.1: "OFFSET,LENGTH,OFFSET,LENGTH" */
static bool parse_map(void *p, const struct pax_record *r)
{
	const char *s = r->value, *end = r->value + r->len;
	struct pax *pax = p;
	bool is_offset = true;

	pax->has_map = true;
	pax->n_pieces = 0;
	while (s < end) {
		const char *comma = memchr(s, ',', (size_t)(end - s));
		size_t n = comma ? (size_t)(comma - s) : (size_t)(end - s);
		int64_t value;

		if (!tar_decimal(s, n, &value) || !add_map_number(pax, value, is_offset))
			return false;
		is_offset = !is_offset;
		s += n + (comma != NULL);
	}
	return is_offset;
}

static bool add_xattr(struct pax *pax, const struct pax_record *r)
{
	autofree char *name = str_ncopy(r->key + strlen(XATTR), r->key_len - strlen(XATTR));
	struct tar_xattr *x = NULL;

	for (size_t i = 0; i < pax->n_xattrs; i++)
		if (str_equal(pax->xattrs[i].name, name))
			x = &pax->xattrs[i];
	if (!x) {
		if (pax->n_xattrs == XATTRS_MAX || !*name)
			return false;
		pax->xattrs = mem_resize(pax->xattrs, pax->n_xattrs + 1, sizeof(*pax->xattrs));
		x = &pax->xattrs[pax->n_xattrs++];
		*x = (struct tar_xattr){ .name = take_ptr(name) };
	}
	free(x->value);
	x->value = mem_copy(r->value, r->len ? r->len : 1);
	x->len = r->len;
	return true;
}

/* ---- records --------------------------------------------------------------- */

static const struct {
	const char *key;
	bool (*parse)(void *p, const struct pax_record *r);
	size_t at; /* offset in struct pax */
} keys[] = {
	{ "path", parse_text, offsetof(struct pax, path) },
	{ "linkpath", parse_text, offsetof(struct pax, target) },
	{ "size", parse_number, offsetof(struct pax, size) },
	{ "uid", parse_number, offsetof(struct pax, uid) },
	{ "gid", parse_number, offsetof(struct pax, gid) },
	{ "mtime", parse_mtime, 0 },
	{ "GNU.sparse.major", parse_number, offsetof(struct pax, sparse_major) },
	{ "GNU.sparse.minor", parse_number, offsetof(struct pax, sparse_minor) },
	{ "GNU.sparse.name", parse_text, offsetof(struct pax, sparse_path) },
	{ "GNU.sparse.size", parse_number, offsetof(struct pax, real_size) },
	{ "GNU.sparse.realsize", parse_number, offsetof(struct pax, real_size) },
	{ "GNU.sparse.map", parse_map, 0 },
	{ "GNU.sparse.offset", parse_map_offset, 0 },
	{ "GNU.sparse.numbytes", parse_map_length, 0 },
};

/* Return: size of the record at @data; 0: malformed */
static size_t parse_record(const char *data, size_t len, struct pax_record *ret)
{
	const char *space, *end, *equals;
	int64_t size;

	space = memchr(data, ' ', len < 20 ? len : 20);
	if (!space || !tar_decimal(data, (size_t)(space - data), &size) ||
	    size <= space - data + 1 || size > (int64_t)len || data[size - 1] != '\n')
		return 0;
	end = data + size - 1;
	equals = memchr(space + 1, '=', (size_t)(end - space - 1));
	if (!equals || equals == space + 1 || memchr(space + 1, '\0', (size_t)(equals - space - 1)))
		return 0;
	*ret = (struct pax_record){ space + 1, (size_t)(equals - space - 1), equals + 1,
				    (size_t)(end - equals - 1) };
	return (size_t)size;
}

void pax_init(struct pax *p)
{
	*p = (struct pax){ .size = -1,
			   .uid = -1,
			   .gid = -1,
			   .real_size = -1,
			   .sparse_major = -1,
			   .sparse_minor = -1 };
}

void pax_done(struct pax *p)
{
	for (size_t i = 0; i < p->n_xattrs; i++) {
		free(p->xattrs[i].name);
		free(p->xattrs[i].value);
	}
	free(p->xattrs);
	free(p->pieces);
	free(p->path);
	free(p->target);
	free(p->sparse_path);
	pax_init(p);
}

int pax_decode(struct pax *p, const char *data, size_t len, struct hw_err *e)
{
	while (len > 0) {
		struct pax_record r;
		size_t n = parse_record(data, len, &r);
		bool ok = true;

		if (n == 0)
			return err_text(e, -EINVAL, "malformed PAX record");
		if (r.key_len >= strlen(XATTR) && memcmp(r.key, XATTR, strlen(XATTR)) == 0)
			ok = add_xattr(p, &r);
		for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
			if (r.key_len == strlen(keys[i].key) &&
			    memcmp(r.key, keys[i].key, r.key_len) == 0)
				ok = keys[i].parse((char *)p + keys[i].at, &r);
		if (!ok)
			return err_text(e, -EINVAL, "PAX record %.*s: invalid value",
					(int)(r.key_len < 64 ? r.key_len : 64), r.key);
		data += n;
		len -= n;
	}
	if (p->n_pieces > 0 && p->pieces[p->n_pieces - 1].len < 0)
		return err_text(e, -EINVAL, "malformed PAX sparse map: an offset without a length");
	return 0;
}

enum pax_sparse pax_sparse(const struct pax *p)
{
	if (p->sparse_major == 1 && p->sparse_minor == 0)
		return PAX_SPARSE_1;
	if (p->sparse_major == 0 && (p->sparse_minor == 0 || p->sparse_minor == 1))
		return PAX_SPARSE_0;
	return p->sparse_major < 0 && p->has_map ? PAX_SPARSE_0 : PAX_SPARSE_NONE;
}
