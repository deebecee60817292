/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/fuzz-error.c - fuzzer: an accepted error object is unchanged after formatting and parsing
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/mem.h"
#include "cni/error.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	autofree char *text = NULL;
	struct hw_err first, second, e;
	int r;

	if (error_parse((const char *)data, size, &first, &e) < 0) {
		assert(e.code < 0 && e.msg[0]);
		return 0;
	}
	text = error_format(&first);
	r = error_parse(text, strlen(text), &second, &e);
	assert(r == 0);
	assert(first.wire == second.wire && first.code == second.code);
	assert(strcmp(first.msg, second.msg) == 0 && strcmp(first.details, second.details) == 0);
	return 0;
}
