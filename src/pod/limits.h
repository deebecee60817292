/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/limits.h - the limits of a pod or a container as they are now: those of its spec, changed by updates
 *
 * Rules: immutable and shared. The text is what the database keeps.
 */
#ifndef POD_LIMITS_H
#define POD_LIMITS_H

#include "base/err.h"
#include "base/shared.h"
#include "oci/resources.h"

struct limits {
	struct shared shared;
	struct oci_resources resources;
	char *text; /* for the database: JSON */
};

/* @resources: of a spec. Return: a reference, to be dropped with shared_unref() */
const struct limits *limits_new(const struct oci_resources *resources);
/* Return: 0; -EFBIG if the text is too long for a row; or another negative errno */
int limits_decode(const char *text, const struct limits **ret_limits, struct hw_err *e);
/* The limits of @from, changed by @update: see resources_merge(). Return: as limits_decode() */
int limits_update(const struct limits *from, const struct oci_resources *update,
		  const struct limits **ret_limits, struct hw_err *e);

#endif
