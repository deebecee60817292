/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/plugin/fuzz-record.c - fuzzer: an accepted record is unchanged after formatting and parsing
 */
#include <stdint.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "cni/plugin/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	AUTO(record_done) struct record first = { 0 }, second = { 0 };
	struct hw_err e;

	if (hw_field_decode(record_fields, (const char *)data, len, &first, &e) < 0)
		return 0;
	autofree char *json = hw_field_encode(record_fields, &first, 0);
	if (hw_field_decode(record_fields, json, strlen(json), &second, &e) < 0)
		__builtin_trap();
	autofree char *again = hw_field_encode(record_fields, &second, 0);
	if (!str_equal(json, again))
		__builtin_trap();
	return 0;
}
