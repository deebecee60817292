/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/json/fuzz-field.c - fuzz test of a field table with every type
 *
 * Decodes the input, encodes the struct, and decodes and encodes that text again: both
 * texts must be equal. Rejected input must fail with a message and leave nothing to free.
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/json/field.h"
#include "base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct fuzz_inner {
	char *name;
	int n;
	struct hw_strings words;
};

struct fuzz_outer {
	bool b, text_bool, has_wide;
	int n;
	int64_t wide;
	uint32_t u;
	char *s, *json, *rest;
	struct hw_ip ip;
	struct hw_prefix prefix;
	struct hw_strings strings, flags;
	struct hw_map map;
	struct fuzz_inner object;
	struct hw_list list, numbers;
};

static const struct hw_field inner_fields[] = {
	{ "name", HW_STRING, HW_AT(struct fuzz_inner, name), .flags = HW_REQUIRED },
	{ "n", HW_INT, HW_AT(struct fuzz_inner, n), .def = "3", .min = 1, .max = 9 },
	{ "words", HW_STRINGS, HW_AT(struct fuzz_inner, words), .def = "[\"a\"]" },
	{ 0 },
};

static const struct hw_field outer_fields[] = {
	{ "b", HW_BOOL, HW_AT(struct fuzz_outer, b) },
	{ "t", HW_BOOL_TEXT, HW_AT(struct fuzz_outer, text_bool) },
	{ "n", HW_INT, HW_AT(struct fuzz_outer, n) },
	{ "wide", HW_INT64, HW_AT(struct fuzz_outer, wide),
	  .has = HW_HAS(struct fuzz_outer, has_wide) },
	{ "u", HW_UINT32, HW_AT(struct fuzz_outer, u) },
	{ "s", HW_STRING, HW_AT(struct fuzz_outer, s), .flags = HW_ALWAYS },
	{ "ip", HW_IP, HW_AT(struct fuzz_outer, ip) },
	{ "prefix", HW_PREFIX, HW_AT(struct fuzz_outer, prefix) },
	{ "strings", HW_STRINGS, HW_AT(struct fuzz_outer, strings) },
	{ "map", HW_MAP, HW_AT(struct fuzz_outer, map) },
	{ "flags", HW_FLAGS, HW_AT(struct fuzz_outer, flags) },
	{ "object", HW_OBJECT, HW_AT(struct fuzz_outer, object), .sub = inner_fields },
	{ "list", HW_LIST, HW_AT(struct fuzz_outer, list), .sub = inner_fields,
	  .size = sizeof(struct fuzz_inner) },
	{ "json", HW_JSON, HW_AT(struct fuzz_outer, json) },
	{ "numbers", HW_UINT32S, HW_AT(struct fuzz_outer, numbers), .min = 1, .max = 9 },
	{ "*", HW_REST, HW_AT(struct fuzz_outer, rest) },
	{ 0 },
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	autofree char *first = NULL, *second = NULL, *pretty = NULL;
	struct fuzz_outer out;
	struct hw_err e;
	int r;

	if (hw_field_decode(outer_fields, (const char *)data, size, &out, &e) < 0) {
		assert(e.code < 0 && e.msg[0]);
		return 0;
	}
	first = hw_field_encode(outer_fields, &out, 0);
	pretty = hw_field_encode(outer_fields, &out, HW_JSON_PRETTY | HW_JSON_SORTED);
	hw_field_clear(outer_fields, &out);

	/* fails if an object was absent: then it is encoded with its defaults, but without its
	 * required name */
	if (hw_field_decode(outer_fields, first, strlen(first), &out, &e) < 0)
		return 0;
	second = hw_field_encode(outer_fields, &out, 0);
	hw_field_clear(outer_fields, &out);
	assert(strcmp(first, second) == 0);
	r = hw_field_decode(outer_fields, pretty, strlen(pretty), &out, &e);
	assert(r == 0);
	hw_field_clear(outer_fields, &out);
	return 0;
}
