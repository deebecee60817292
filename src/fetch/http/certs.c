/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/http/certs.c - TLS certificates for individual registries
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
	struct map *hosts; /* struct certs_host by name of the directory */
};

static void host_free(void *p)
{
	struct certs_host *h = p;

	buf_done(&h->authorities);
	buf_done(&h->cert);
	buf_done(&h->key);
	free(h->error);
	free(h);
}

static int read_into(int dir, const char *name, struct buf *b, struct hw_err *e)
{
	AUTO(buf_done) struct buf text = { 0 };
	int r;

	r = file_read(dir, name, CERTS_FILE_MAX, &text, e);
	if (r < 0)
		return r;
	buf_add(b, text.data, text.len);
	buf_putc(b, '\n');
	return 0;
}

static int on_file(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	struct certs_host *h = ctx;
	const char *name = entry->name;
	autofree char *key = NULL;
	int r;

	if (str_ends(name, ".crt"))
		return read_into(entry->dir, name, &h->authorities, e);
	/* the first client certificate is used */
	if (!str_ends(name, ".cert") || h->cert.len > 0)
		return 0;
	key = str_printf("%.*s.key", (int)(strlen(name) - strlen(".cert")), name);
	r = read_into(entry->dir, name, &h->cert, e);
	if (r == 0)
		r = read_into(entry->dir, key, &h->key, e);
	return r == -ENOENT ? err_text(e, -ENOKEY, "%s: missing key file %s", name, key) : r;
}

/* An error is stored in the host. certs_check() returns it when the host is used. */
static int on_host(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	struct certs *c = ctx;
	struct certs_host *h;

	if (entry->type != DT_DIR && entry->type != DT_LNK)
		return 0;
	h = mem_new(sizeof(*h));
	map_set(c->hosts, entry->name, h);
	if (file_walk(entry->dir, entry->name, on_file, h, e) < 0) {
		err_ctx(e, "certificates of %s", entry->name);
		h->error = str_copy(e->msg);
	}
	return 0;
}

int certs_load(const char *dir, struct certs **ret_certs, struct hw_err *e)
{
	AUTO(certs_free) struct certs *c = mem_new(sizeof(*c));
	int r = -ENOENT;

	c->hosts = map_new(host_free);
	if (dir)
		r = file_walk(AT_FDCWD, dir, on_host, c, e);
	if (r < 0 && r != -ENOENT)
		return err_ctx(e, "%s", dir);
	*ret_certs = take_ptr(c);
	return 0;
}

void certs_free(struct certs *c)
{
	if (c)
		map_free(c->hosts);
	free(c);
}

const struct certs_host *certs_find(const struct certs *c, const char *host, const char *port)
{
	autofree char *both = str_printf("%s:%s", host, port);
	const struct certs_host *h = map_find(c->hosts, both);

	return h ? h : map_find(c->hosts, host);
}

int certs_check(const struct certs *c, const char *host, const char *port, struct hw_err *e)
{
	const struct certs_host *h = certs_find(c, host, port);

	return h && h->error ? err_text(e, -ENOKEY, "%s", h->error) : 0;
}
