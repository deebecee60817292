/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/fuzz-reference.c - fuzzer for image references
 *
 * An accepted reference is complete, and its text form parses to the same reference.
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/str.h"
#include "image/reference.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(reference_done) struct reference ref = { 0 }, again = { 0 };
	autofree char *text = str_ncopy((const char *)data, size);
	struct hw_err e = { 0 };
	int r = reference_parse(text, &ref, &e);

	if (r < 0) {
		assert(e.code < 0 && e.msg[0] && !ref.domain);
		return 0;
	}
	assert(*ref.domain && *ref.path && (ref.tag || ref.digest));
	autofree char *whole = reference_format(&ref);
	r = reference_parse(whole, &again, &e);
	assert(r == 0);
	autofree char *same = reference_format(&again);
	assert(str_equal(whole, same));
	return 0;
}
