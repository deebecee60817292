/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/http/certs.h - certificates for single registries
 *
 * What:  a folder with one folder for each HOST or HOST:PORT, as Docker and
 *        containers/image have it: *.crt are authorities to be trusted besides
 *        the system's, NAME.cert with NAME.key is what we show.
 * Rules: all is read at once, while the process may still read the keys. What is
 *        wrong with one host's certificates is no matter to the others.
 */
#ifndef FETCH_HTTP_CERTS_H
#define FETCH_HTTP_CERTS_H

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"

struct certs_host {
	struct buf authorities, cert, key; /* PEM; empty: none */
	char *broken;			   /* what is wrong with them; NULL: nothing */
};

struct certs;

int certs_load(const char *dir, struct certs **ret_certs, struct hw_err *e); /* NULL: none */
void certs_free(struct certs *c);
const struct certs_host *certs_find(const struct certs *c, const char *host, const char *port);
int certs_check(const struct certs *c, const char *host, const char *port, struct hw_err *e);

AUTO_DEFINE(certs_free, struct certs);

#endif
