/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/json/fuzz-yaml.c - fuzz test: parse YAML, format it as JSON, parse that text as YAML
 *
 * Both values must be equal, unless the JSON text is not valid YAML (long keys,
 * control characters, line breaks of YAML 1.1). yml_line() must return a line number in the text for every key.
 * Rejected input must fail with a message.
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/json/yaml.h"
#include "base/mem.h"
#include "base/str.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void find_lines(const char *text, size_t len, const struct value *object)
{
	size_t lines = 1;
	struct value *v;
	const char *key;
	unsigned n = 0;

	for (size_t i = 0; i < len; i++)
		lines += text[i] == '\n' || text[i] == '\r';
	for (void *i = NULL; n < 3 && value_next(object, &i, &key, &v); n++) {
		autofree char *message = str_printf("%s: wrong", key);
		size_t line = yml_line(text, len, message);

		assert(line >= 1 && line <= lines);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(value_free) struct value *first = NULL, *second = NULL;
	autofree char *json = NULL;
	struct hw_err e;
	int r;

	if (yml_parse((const char *)data, size, &first, &e) < 0) {
		assert(e.code < 0 && e.msg[0]);
		return 0;
	}
	if (value_kind(first) == VALUE_OBJECT)
		find_lines((const char *)data, size, first);
	json = value_format(first, 0);
	r = yml_parse(json, strlen(json), &second, &e);
	assert(r < 0 || value_equal(first, second));
	return 0;
}
