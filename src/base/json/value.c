/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/json/value.c - JSON values as trees
 *
 * What:  parses with jansson and keeps jansson's tree, but formats with code of
 *        this file: jansson prints 0.1 as 0.10000000000000001.
 * How:   struct value is json_t under another name; the casts are to_json() and
 *        to_value(). Before jansson parses a text, check_limits() checks its
 *        depth and the number of values: an empty object takes 2 bytes of text,
 *        but about 250 bytes of memory.
 * Rules: invalid UTF-8 is rejected in parsed text, and replaced in strings that
 *        this program creates (paths, messages), as in Go.
 *        When the first object is created, jansson reads a seed for its hash
 *        tables from /dev/urandom. Our programs call value_seed() earlier, which
 *        needs no system call. The seed must never be a constant: keys are
 *        untrusted input and could be chosen to collide.
 *        If a key occurs more than once, it keeps its first position and gets its
 *        last value.
 */
#include "base/json/value.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <locale.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>

#include "base/buf.h"
#include "base/str.h"

static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */

static json_t *to_json(const struct value *v)
{
	return (json_t *)v;
}

static struct value *to_value(json_t *j)
{
	return (struct value *)j;
}

/* Where this is used, jansson fails only if memory is exhausted. */
static void check_memory(bool ok)
{
	if (!ok)
		mem_exhausted();
}

static struct value *check_value(json_t *j)
{
	check_memory(j);
	return to_value(j);
}

void value_seed(void)
{
	const char *random = (const char *)getauxval(AT_RANDOM);
	size_t seed = 0;

	if (random)
		memcpy(&seed, random, sizeof(seed));
	json_object_seed(seed); /* 0: jansson chooses a seed */
}

static void wipe_and_free(void *p)
{
	if (p)
		explicit_bzero(p, malloc_usable_size(p));
	free(p);
}

void value_wipe_freed(void)
{
	json_set_alloc_funcs(malloc, wipe_and_free);
}

/* ---- UTF-8 ----------------------------------------------------------------- */

/* Return: the number of bytes before the first invalid one, or before the end of s */
static size_t utf8_span(const char *s)
{
	size_t i = 0, size = 1;

	for (; s[i] && size; i += size)
		size = str_utf8_len(s + i);
	return i;
}

/* Return: a copy in which each byte that is not valid UTF-8 is replaced by U+FFFD; NULL if s is
 * valid */
static char *utf8_repair(const char *s)
{
	AUTO(buf_done) struct buf b = { 0 };
	size_t valid = utf8_span(s);

	if (!s[valid])
		return NULL;
	for (;; s += valid + 1) {
		valid = utf8_span(s);
		buf_add(&b, s, valid);
		if (!s[valid])
			break;
		buf_puts(&b, replacement);
	}
	return buf_take(&b);
}

/* ---- parsing --------------------------------------------------------------- */

/* Checks depth and number of values before memory is allocated for them. Works on any text, also on
 * malformed JSON. */
static int check_limits(const char *json, size_t len, struct hw_err *e)
{
	size_t depth = 0, count = 0;
	bool in_string = false;

	for (size_t i = 0; i < len; i++) {
		char c = json[i];

		if (in_string) {
			if (c == '\\')
				i++;
			else if (c == '"')
				in_string = false;
			continue;
		}
		if (c == '"')
			in_string = true;
		else if (c == '[' || c == '{')
			depth++, count++;
		else if (c == ']' || c == '}')
			depth -= depth > 0;
		else if (c == ',')
			count++;
		if (depth > VALUE_DEPTH_MAX)
			return err_text(e, -EFBIG, "JSON is nested deeper than %d levels",
					VALUE_DEPTH_MAX);
		if (count > VALUE_COUNT_MAX)
			return err_text(e, -EFBIG, "JSON has more than %d values", VALUE_COUNT_MAX);
	}
	return 0;
}

static int error_from_jansson(const json_error_t *error, struct hw_err *e)
{
	const char *text = error->text;
	const char *cut = strstr(text, " near '");
	enum json_error_code code = json_error_code(error);

	check_memory(code != json_error_out_of_memory);
	if (code == json_error_premature_end_of_input)
		return err_text(e, -EINVAL, "malformed JSON: line %d: unexpected end of input",
				error->line);
	if (code == json_error_numeric_overflow)
		return err_text(e, -EINVAL,
				"malformed JSON: line %d, column %d: number out of range",
				error->line, error->column);
	/* cut off the text that jansson quotes: it may be a secret */
	return err_text(e, -EINVAL, "malformed JSON: line %d, column %d: %.*s", error->line,
			error->column, cut ? (int)(cut - text) : (int)strlen(text), text);
}

int value_parse(const char *json, size_t len, struct value **ret_value, struct hw_err *e)
{
	json_error_t error;
	json_t *j;
	int r;

	if (len > VALUE_SIZE_MAX)
		return err_text(e, -EFBIG, "JSON is larger than %d bytes: got %zu", VALUE_SIZE_MAX,
				len);
	if (len == 0)
		return err_text(e, -EINVAL, "malformed JSON: empty input");
	r = check_limits(json, len, e);
	if (r < 0)
		return r;
	j = json_loadb(json, len, JSON_DECODE_ANY, &error);
	if (!j)
		return error_from_jansson(&error, e);
	*ret_value = to_value(j);
	return 0;
}

struct value *value_literal(const char *json)
{
	json_error_t error;
	json_t *j = json_loads(json, JSON_DECODE_ANY, &error);

	check_memory(j || json_error_code(&error) != json_error_out_of_memory);
	assert(j);
	return to_value(j);
}

/* ---- formatting ------------------------------------------------------------ */

struct json_writer {
	struct buf b;
	unsigned flags;
	unsigned depth;
};

static void write_value(struct json_writer *w, const struct value *v);

static void write_string(struct json_writer *w, const char *s)
{
	static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
	const char *known;
	size_t plain;

	buf_putc(&w->b, '"');
	for (;; s += plain + 1) {
		plain = 0;
		while ((unsigned char)s[plain] >= 0x20 && s[plain] != '"' && s[plain] != '\\')
			plain++;
		buf_add(&w->b, s, plain);
		if (!s[plain])
			break;
		known = strchr(from, s[plain]);
		if (known)
			buf_printf(&w->b, "\\%c", to[known - from]);
		else
			buf_printf(&w->b, "\\u%04x", (unsigned)s[plain]);
	}
	buf_putc(&w->b, '"');
}

/* Writes 15 to 17 digits, the fewest that parse as the same number. The text is always that of a
 * real, never of an integer. */
static void write_real(struct json_writer *w, double d)
{
	char text[40], *point;

	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, d);
		if (strtod(text, NULL) == d)
			break;
	}
	/* the locale of the calling program may have another decimal point */
	point = strstr(text, localeconv()->decimal_point);
	if (point) {
		buf_add(&w->b, text, point - text);
		buf_printf(&w->b, ".%s", point + strlen(localeconv()->decimal_point));
		return;
	}
	buf_puts(&w->b, text);
	if (!strchr(text, 'e'))
		buf_puts(&w->b, ".0");
}

static void write_break(struct json_writer *w)
{
	if (!(w->flags & HW_JSON_PRETTY))
		return;
	buf_putc(&w->b, '\n');
	for (unsigned i = 0; i < w->depth; i++)
		buf_puts(&w->b, "    ");
}

static void write_member(struct json_writer *w, const char *key, const struct value *v, bool first)
{
	if (!first)
		buf_putc(&w->b, ',');
	write_break(w);
	if (key) {
		write_string(w, key);
		buf_puts(&w->b, w->flags & HW_JSON_PRETTY ? ": " : ":");
	}
	write_value(w, v);
}

static int compare_keys(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void write_sorted_members(struct json_writer *w, const struct value *object)
{
	autofree const char **keys = mem_resize(NULL, value_count(object), sizeof(*keys));
	size_t n = 0;

	for (void *i = NULL; value_next(object, &i, &keys[n], NULL);)
		n++;
	qsort(keys, n, sizeof(*keys), compare_keys);
	for (size_t k = 0; k < n; k++)
		write_member(w, keys[k], value_get(object, keys[k]), k == 0);
}

static void write_container(struct json_writer *w, const struct value *v)
{
	bool is_object = json_is_object(to_json(v));
	struct value *member;
	const char *key;
	bool first = true;

	if (value_count(v) == 0) {
		buf_puts(&w->b, is_object ? "{}" : "[]");
		return;
	}
	buf_putc(&w->b, is_object ? '{' : '[');
	w->depth++;
	if (!is_object)
		for (size_t i = 0; i < value_count(v); i++)
			write_member(w, NULL, value_at(v, i), i == 0);
	else if (w->flags & HW_JSON_SORTED)
		write_sorted_members(w, v);
	else
		for (void *i = NULL; value_next(v, &i, &key, &member); first = false)
			write_member(w, key, member, first);
	w->depth--;
	write_break(w);
	buf_putc(&w->b, is_object ? '}' : ']');
}

static void write_value(struct json_writer *w, const struct value *v)
{
	const json_t *j = to_json(v);

	switch (value_kind(v)) {
	case VALUE_NULL:
		buf_puts(&w->b, "null");
		break;
	case VALUE_BOOL:
		buf_puts(&w->b, json_is_true(j) ? "true" : "false");
		break;
	case VALUE_INT:
		buf_printf(&w->b, "%" PRId64, (int64_t)json_integer_value(j));
		break;
	case VALUE_REAL:
		write_real(w, json_real_value(j));
		break;
	case VALUE_STRING:
		write_string(w, json_string_value(j));
		break;
	case VALUE_ARRAY:
	case VALUE_OBJECT:
		write_container(w, v);
		break;
	}
}

char *value_format(const struct value *v, unsigned flags)
{
	struct json_writer w = { .flags = flags };

	write_value(&w, v);
	return buf_take(&w.b);
}

/* ---- any value ------------------------------------------------------------- */

void value_free(struct value *v)
{
	json_decref(to_json(v));
}

struct value *value_ref(struct value *v)
{
	return to_value(json_incref(to_json(v)));
}

struct value *value_copy(const struct value *v)
{
	return check_value(json_deep_copy(to_json(v)));
}

bool value_equal(const struct value *a, const struct value *b)
{
	return json_equal(to_json(a), to_json(b));
}

enum value_kind value_kind(const struct value *v)
{
	switch (json_typeof(to_json(v))) {
	case JSON_TRUE:
	case JSON_FALSE:
		return VALUE_BOOL;
	case JSON_INTEGER:
		return VALUE_INT;
	case JSON_REAL:
		return VALUE_REAL;
	case JSON_STRING:
		return VALUE_STRING;
	case JSON_ARRAY:
		return VALUE_ARRAY;
	case JSON_OBJECT:
		return VALUE_OBJECT;
	case JSON_NULL:
		break;
	}
	return VALUE_NULL;
}

const char *value_kind_name(enum value_kind kind)
{
	static const char *const names[] = {
		[VALUE_NULL] = "null",	      [VALUE_BOOL] = "a boolean",
		[VALUE_INT] = "a number",     [VALUE_REAL] = "a number with fraction or exponent",
		[VALUE_STRING] = "a string",  [VALUE_ARRAY] = "an array",
		[VALUE_OBJECT] = "an object",
	};

	return names[kind];
}

struct value *value_new_null(void)
{
	return to_value(json_null());
}

struct value *value_new_bool(bool b)
{
	return to_value(json_boolean(b));
}

struct value *value_new_int(int64_t n)
{
	return check_value(json_integer(n));
}

struct value *value_new_string(const char *s)
{
	autofree char *repaired = utf8_repair(s);

	return check_value(json_string_nocheck(repaired ? repaired : s));
}

struct value *value_new_array(void)
{
	return check_value(json_array());
}

struct value *value_new_object(void)
{
	return check_value(json_object());
}

bool value_bool(const struct value *v)
{
	return json_is_true(to_json(v));
}

int64_t value_int(const struct value *v)
{
	return json_integer_value(to_json(v));
}

const char *value_string(const struct value *v)
{
	return json_string_value(to_json(v));
}

/* ---- objects --------------------------------------------------------------- */

struct value *value_get(const struct value *object, const char *key)
{
	return to_value(json_object_get(to_json(object), key));
}

/* Returns the next character of *s in lower case, and advances *s. Like Go, it folds ASCII letters
 * and the two other characters whose simple case folding is an ASCII letter. */
static int fold_next(const char **s)
{
	static const char long_s[] = "\xc5\xbf", kelvin[] = "\xe2\x84\xaa";
	unsigned char c = **s;

	if (c == 0xc5 && str_starts(*s, long_s)) {
		*s += 2;
		return 's';
	}
	if (c == 0xe2 && str_starts(*s, kelvin)) {
		*s += 3;
		return 'k';
	}
	(*s)++;
	return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c;
}

bool value_keys_match(const char *a, const char *b)
{
	while (*a && *b)
		if (fold_next(&a) != fold_next(&b))
			return false;
	return !*a && !*b;
}

struct value *value_find(const struct value *object, const char *key)
{
	struct value *v, *found = NULL;
	const char *k;

	for (void *i = NULL; value_next(object, &i, &k, &v);)
		if (value_keys_match(k, key))
			found = v;
	return found;
}

void value_set(struct value *object, const char *key, struct value *v)
{
	autofree char *repaired = utf8_repair(key);

	check_memory(json_object_set_new_nocheck(to_json(object), repaired ? repaired : key,
						 to_json(v)) == 0);
}

void value_remove(struct value *object, const char *key)
{
	json_object_del(to_json(object), key);
}

bool value_next(const struct value *object, void **i, const char **ret_key, struct value **ret_v)
{
	json_t *j = to_json(object);

	*i = *i ? json_object_iter_next(j, *i) : json_object_iter(j);
	if (!*i)
		return false;
	if (ret_key)
		*ret_key = json_object_iter_key(*i);
	if (ret_v)
		*ret_v = to_value(json_object_iter_value(*i));
	return true;
}

/* ---- arrays ---------------------------------------------------------------- */

size_t value_count(const struct value *v)
{
	if (json_is_object(to_json(v)))
		return json_object_size(to_json(v));
	return json_array_size(to_json(v));
}

struct value *value_at(const struct value *array, size_t i)
{
	return to_value(json_array_get(to_json(array), i));
}

void value_append(struct value *array, struct value *v)
{
	check_memory(json_array_append_new(to_json(array), to_json(v)) == 0);
}
