/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/http/certs.c - certificates for single registries
 */
#include "fetch/http/certs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/map.h"
#include "base/os/file.h"
#include "base/str.h"

#define CERTS_FILE_MAX (1 << 20)

struct certs {
	struct map *hosts; /* of struct certs_host */
};

static void host_free(void *p)
{
	struct certs_host *h = p;

	buf_done(&h->authorities);
	buf_done(&h->cert);
	buf_done(&h->key);
	free(h->broken);
	free(h);
}

static int read_into(int dir, const char *name, struct buf *b, struct hw_err *e)
{
	AUTO(buf_done) struct buf text = { 0 };
	int r = file_read(dir, name, CERTS_FILE_MAX, &text, e);

	if (r < 0)
		return r;
	buf_add(b, text.data, text.len);
	buf_putc(b, '\n');
	return 0;
}

/* The key of NAME.cert is NAME.key. */
static int read_pair(struct certs_host *h, int dir, const char *name, struct hw_err *e)
{
	autofree char *key = str_printf("%.*s.key", (int)(strlen(name) - strlen(".cert")), name);
	int r;

	if (h->cert.len > 0)
		return 0;
	r = read_into(dir, name, &h->cert, e);
	if (r == 0)
		r = read_into(dir, key, &h->key, e);
	return r == -ENOENT ? err_text(e, -EINVAL, "%s is without its %s", name, key) : r;
}

static int each_file(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	struct certs_host *h = ctx;

	if (str_ends(entry->name, ".crt"))
		return read_into(entry->dir, entry->name, &h->authorities, e);
	if (str_ends(entry->name, ".cert"))
		return read_pair(h, entry->dir, entry->name, e);
	return 0;
}

/* What is wrong with one host's is kept until somebody asks for them. */
static int each_host(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	struct certs *c = ctx;
	struct certs_host *h;

	if (entry->type != DT_DIR && entry->type != DT_LNK)
		return 0;
	h = mem_new(sizeof(*h));
	map_set(c->hosts, entry->name, h);
	if (file_walk(entry->dir, entry->name, each_file, h, e) < 0) {
		err_ctx(e, "certificates of %s", entry->name);
		h->broken = str_copy(e->msg);
	}
	return 0;
}

/**
 * certs_load() - read the certificates of all hosts
 * @dir: one that is not there has none; NULL: none
 *
 * Return: 0, or negative errno: the folder cannot be read
 */
int certs_load(const char *dir, struct certs **ret_certs, struct hw_err *e)
{
	AUTO(certs_free) struct certs *c = mem_new(sizeof(*c));
	int r = -ENOENT;

	c->hosts = map_new(host_free);
	if (dir)
		r = file_walk(AT_FDCWD, dir, each_host, c, e);
	if (r < 0 && r != -ENOENT)
		return err_ctx(e, "%s", dir);
	*ret_certs = take_ptr(c);
	return 0;
}

/** certs_free() - free them */
void certs_free(struct certs *c)
{
	if (c)
		map_free(c->hosts);
	free(c);
}

/**
 * certs_find() - what there is for a host
 * @port: as in the URL, or its scheme's
 *
 * Return: HOST:PORT's, else HOST's; NULL: nothing
 */
const struct certs_host *certs_find(const struct certs *c, const char *host, const char *port)
{
	autofree char *both = str_printf("%s:%s", host, port);
	const struct certs_host *h = map_find(c->hosts, both);

	return h ? h : map_find(c->hosts, host);
}

/**
 * certs_check() - may a host be asked?
 *
 * Return: 0, also where there is nothing for it; -EINVAL: what there is cannot be read
 */
int certs_check(const struct certs *c, const char *host, const char *port, struct hw_err *e)
{
	const struct certs_host *h = certs_find(c, host, port);

	return h && h->broken ? err_text(e, -EINVAL, "%s", h->broken) : 0;
}
