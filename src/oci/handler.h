/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/handler.h - runtime handlers: the OCI runtimes that run containers
 *
 * What:  a pod names a handler, such as "kata"; the configuration says which program that is. The
 *        handler without a name is crun. Each program is asked once which features it has.
 */
#ifndef OCI_HANDLER_H
#define OCI_HANDLER_H

#include <stdbool.h>
#include <stddef.h>

#include <hawser/field.h>

#include "base/err.h"
#include "base/mem.h"

/* Which mappings an idmapped mount of a container may have. */
enum oci_idmap {
	OCI_IDMAP_NONE,
	OCI_IDMAP_SAME, /* only those of the container's user namespace */
	OCI_IDMAP_ANY,
};

/* How a program takes a seccomp profile. */
enum oci_seccomp {
	OCI_SECCOMP_PROFILE, /* as JSON, in linux.seccomp; also if nothing is known about it */
	OCI_SECCOMP_FILTER,  /* compiled: see spec/security.h */
	OCI_SECCOMP_NONE,    /* it says itself that it has no support for seccomp */
};

struct oci_handler {
	char *name;    /* "": the default one */
	char *program; /* path */
	char *version; /* first line of what PROGRAM --version prints; "" if it cannot be used */
	char *message; /* why it cannot be used; NULL: it can */
	/* What the program and this kernel can do: */
	bool rro; /* mounts that are read-only recursively */
	enum oci_idmap idmap;
	bool criu; /* was built with CRIU, so it can checkpoint containers */
	enum oci_seccomp seccomp;
};

struct oci_handlers {
	struct oci_handler *v; /* the default one first */
	size_t n;
};

/* Splits NAME=PROGRAM. *ret_program points into @text. Return: 0; -EINVAL */
int handler_parse(const char *text, char **ret_name, const char **ret_program, struct hw_err *e);

/* Asks the default program and each NAME=PROGRAM of @given for its version and features. A program
 * that does not answer is part of the list, with a message. @default_program: path; NULL if it is
 * missing. @given: handler_parse() must accept each. */
void handlers_probe(const char *default_program, const struct hw_strings *given,
		    struct oci_handlers *ret);
void handlers_done(struct oci_handlers *h);

AUTO_VALUE_DEFINE(handlers_done, struct oci_handlers);

/* Return: NULL if there is no such handler */
const struct oci_handler *handlers_find(const struct oci_handlers *h, const char *name);

#endif
