/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/limits.c - the limits of a pod or a container as they are now
 */
#include "pod/limits.h"

#include <assert.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

static void limits_free(void *object)
{
	struct limits *limits = object;

	resources_done(&limits->resources);
	free(limits->text);
	free(limits);
}

int limits_decode(const char *text, const struct limits **ret_limits, struct hw_err *e)
{
	struct limits *limits = mem_new(sizeof(*limits));
	int r;

	shared_init(&limits->shared, limits_free);
	limits->text = str_copy(text);
	r = hw_field_decode(oci_resources_fields, text, strlen(text), &limits->resources, e);
	if (r < 0) {
		shared_unref(limits);
		return r;
	}
	*ret_limits = limits;
	return 0;
}

const struct limits *limits_new(const struct oci_resources *resources)
{
	autofree char *text = hw_field_encode(oci_resources_fields, resources, 0);
	const struct limits *limits;
	struct hw_err e;
	int r;

	r = limits_decode(text, &limits, &e);
	assert(r == 0); /* a spec is smaller than a row */
	return limits;
}

int limits_update(const struct limits *from, const struct oci_resources *update,
		  const struct limits **ret_limits, struct hw_err *e)
{
	AUTO(resources_done) struct oci_resources merged = { 0 };
	autofree char *text = NULL;

	resources_merge(&from->resources, update, &merged);
	text = hw_field_encode(oci_resources_fields, &merged, 0);
	return limits_decode(text, ret_limits, e);
}
