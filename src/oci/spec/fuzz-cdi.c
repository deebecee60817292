/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/spec/fuzz-cdi.c - fuzz test: parse a CDI file, as YAML or as JSON, and apply all its edits
 *
 * What is applied must be a configuration that can be written and read. Rejected input must fail with a message.
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "oci/spec/cdi.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void apply(const struct cdi_spec *spec)
{
	AUTO(spec_done) struct oci_spec s = { 0 }, again = { 0 };
	autofree char *json = NULL;
	struct hw_err e;
	int r;

	if (cdi_apply_all(spec, &s, &e) < 0) {
		assert(e.code < 0 && e.msg[0]);
		return;
	}
	if (spec_encode(&s, &json, &e) < 0)
		return; /* too large */
	r = spec_decode(json, strlen(json), &again, &e);
	assert(r == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	for (int is_yaml = 0; is_yaml < 2; is_yaml++) {
		AUTO(cdi_spec_free) struct cdi_spec *spec = NULL;
		struct hw_err e;

		if (cdi_parse((const char *)data, size, is_yaml, &spec, &e) < 0)
			assert(e.code < 0 && e.msg[0]);
		else
			apply(spec);
	}
	return 0;
}
