/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/reference.h - the name of an image, as people write it
 *
 * What:  HOST/PATH:TAG@DIGEST, where all but the path may be left out, made
 *        complete as Docker and Kubernetes do: "busybox" is
 *        "docker.io/library/busybox:latest".
 * Rules: what is taken and what is refused is what Go's distribution/reference
 *        takes and refuses.
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
	char *tag;    /* NULL: none, then there is a digest */
	char *digest; /* NULL: none */
};

int reference_parse(const char *text, struct reference *ret_ref, struct hw_err *e);
void reference_done(struct reference *ref);

char *reference_format(const struct reference *ref);	    /* all that it has */
char *reference_name(const struct reference *ref);	    /* domain and path */
const char *reference_version(const struct reference *ref); /* what to ask a registry for */
const char *reference_host(const struct reference *ref);    /* whom to ask */

AUTO_VALUE_DEFINE(reference_done, struct reference);

#endif
