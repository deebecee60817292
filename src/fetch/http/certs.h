/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/http/certs.h - TLS certificates for single registries
 *
 * What:  a directory with one directory for each HOST or HOST:PORT, in the format of Docker and
 *        containers/image: *.crt are certificate authorities to trust in addition to the system's,
 *        NAME.cert with NAME.key is a client certificate.
 * Rules: everything is read at once, while the process may still read the keys. An error in one
 *        host's files does not affect other hosts.
 */
#ifndef FETCH_HTTP_CERTS_H
#define FETCH_HTTP_CERTS_H

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"

struct certs_host {
	struct buf authorities, cert, key; /* PEM; empty: none */
	char *error;			   /* why they cannot be used; NULL: they can */
};

struct certs;

/* @dir: NULL or a missing directory: no certificates. Return: 0, or negative errno: the directory
 * cannot be read */
int certs_load(const char *dir, struct certs **ret_certs, struct hw_err *e);
void certs_free(struct certs *c);
/* Return: those of HOST:PORT, else those of HOST; NULL: none */
const struct certs_host *certs_find(const struct certs *c, const char *host, const char *port);
/* Return: 0, also if the host has no certificates; -EINVAL: they cannot be used */
int certs_check(const struct certs *c, const char *host, const char *port, struct hw_err *e);

AUTO_DEFINE(certs_free, struct certs);

#endif
