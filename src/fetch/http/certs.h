/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/http/certs.h - TLS certificates for individual registries
 *
 * What:  a directory with one directory for each HOST or HOST:PORT, in the format of Docker and
 *        containers/image: *.crt are certificate authorities to trust in addition to the system's,
 *        NAME.cert with NAME.key is a client certificate.
 * Rules: all files are read at the start, while the process may still read the keys. An error in
 *        one host's files does not affect other hosts.
 */
#ifndef FETCH_HTTP_CERTS_H
#define FETCH_HTTP_CERTS_H

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"

struct certs_host {
	struct buf authorities, cert, key; /* PEM; empty: none */
	char *error;			   /* why they are unusable; NULL: they are usable */
};

struct certs;

/* Load all certificates. @dir: if it is NULL or does not exist, there are no certificates. Return:
 * 0, or negative errno if the directory cannot be read */
int certs_load(const char *dir, struct certs **ret_certs, struct hw_err *e);
void certs_free(struct certs *c);
/* Return: the certificates for HOST:PORT, else those for HOST; NULL: none */
const struct certs_host *certs_find(const struct certs *c, const char *host, const char *port);
/* Check the certificates of a host. Return: 0 if they are usable or missing; -ENOKEY: unusable */
int certs_check(const struct certs *c, const char *host, const char *port, struct hw_err *e);

AUTO_DEFINE(certs_free, struct certs);

#endif
