/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/reference.h - image references
 *
 * What:  parse HOST/PATH:TAG@DIGEST, where only the path is required, and fill in
 *        the defaults of Docker and Kubernetes: "busybox" stands for
 *        "docker.io/library/busybox:latest".
 * Rules: accepts and rejects the same references as Go's distribution/reference.
 *
 *	AUTO(reference_done) struct reference ref = { 0 };
 *	r = reference_parse("localhost:5000/app", &ref, e);
 */
#ifndef IMAGE_REFERENCE_H
#define IMAGE_REFERENCE_H

#include "base/err.h"
#include "base/mem.h"

#define REFERENCE_PATH_MAX 255
#define REFERENCE_TAG_MAX  128

struct reference {
	char *domain; /* "docker.io", "localhost:5000", "[::1]:5000" */
	char *path;   /* "library/busybox" */
	char *tag;    /* NULL only if there is a digest */
	char *digest; /* or NULL */
};

/* Parse a reference and fill in the defaults. Return: 0 or -EINVAL */
int reference_parse(const char *text, struct reference *ret_ref, struct hw_err *e);
void reference_done(struct reference *ref);

/* DOMAIN/PATH:TAG@DIGEST, to be freed by the caller; reference_parse() accepts it. */
char *reference_format(const struct reference *ref);
/* DOMAIN/PATH, to be freed by the caller: the part that all tags and digests of an image share. */
char *reference_name(const struct reference *ref);
/* The digest if there is one, because it is exact; otherwise the tag. */
const char *reference_version(const struct reference *ref);
/* The host that serves the registry: the domain itself, but registry-1.docker.io for docker.io. */
const char *reference_host(const struct reference *ref);

AUTO_VALUE_DEFINE(reference_done, struct reference);

#endif
