/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/json/value.c - a JSON value as a tree
 *
 * What:  reads with jansson, keeps jansson's tree, writes with a writer of its
 *        own: jansson prints 0.1 as 0.10000000000000001.
 * How:   struct value is json_t under another name; the casts are at_json()
 *        and at_value(). Before jansson sees a byte, one pass over the text
 *        bounds its size, its depth and the number of its values (an empty
 *        object is 2 bytes of text and some 250 of memory).
 * Rules: text that came from outside is refused when it is not UTF-8; text of
 *        our own (paths, messages) has wrong bytes replaced, as Go does.
 *        jansson seeds its hash tables from /dev/urandom when the first object
 *        is made; a program of ours calls value_seed() first, which costs no
 *        system call. The seed is never a constant: keys come from outside and
 *        could be chosen to collide.
 *        The position of a key that came twice is that of the first one.
 */
#include "base/json/value.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>

#include "base/buf.h"
#include "base/str.h"

static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */

static json_t *at_json(const struct value *v)
{
	return (json_t *)v;
}

static struct value *at_value(json_t *j)
{
	return (struct value *)j;
}

static void must(bool ok)
{
	if (ok)
		return;
	fputs("hawser: out of memory\n", stderr);
	abort();
}

static struct value *must_value(json_t *j)
{
	must(j);
	return at_value(j);
}

/**
 * value_seed() - seed the hash tables with the kernel's random bytes for this process
 *
 * For the beginning of main(): the library leaves a host program's jansson
 * alone.
 */
void value_seed(void)
{
	const char *random = (const char *)getauxval(AT_RANDOM);
	size_t seed = 0;

	if (random)
		memcpy(&seed, random, sizeof(seed));
	json_object_seed(seed); /* 0: jansson finds one itself */
}

/* ---- UTF-8 ----------------------------------------------------------------- */

/* Bytes of the character at s, 0 when it is none (RFC 3629 section 4). */
static size_t utf8_size(const unsigned char *s, size_t n)
{
	static const struct {
		unsigned char first, last, min, max; /* of the first byte, of the second */
		size_t size;
	} forms[] = {
		{ 0x00, 0x7f, 0x00, 0x00, 1 }, { 0xc2, 0xdf, 0x80, 0xbf, 2 },
		{ 0xe0, 0xe0, 0xa0, 0xbf, 3 }, { 0xe1, 0xec, 0x80, 0xbf, 3 },
		{ 0xed, 0xed, 0x80, 0x9f, 3 }, { 0xee, 0xef, 0x80, 0xbf, 3 },
		{ 0xf0, 0xf0, 0x90, 0xbf, 4 }, { 0xf1, 0xf3, 0x80, 0xbf, 4 },
		{ 0xf4, 0xf4, 0x80, 0x8f, 4 },
	};

	for (size_t f = 0; f < ARRAY_SIZE(forms); f++) {
		if (s[0] < forms[f].first || s[0] > forms[f].last)
			continue;
		if (forms[f].size > n)
			return 0;
		if (forms[f].size > 1 && (s[1] < forms[f].min || s[1] > forms[f].max))
			return 0;
		for (size_t i = 2; i < forms[f].size; i++)
			if ((s[i] & 0xc0) != 0x80)
				return 0;
		return forms[f].size;
	}
	return 0;
}

/* How much of the text's beginning is UTF-8. */
static size_t utf8_span(const char *s, size_t n)
{
	size_t i = 0, size = 1;

	for (; i < n && size; i += size)
		size = utf8_size((const unsigned char *)s + i, n - i);
	return i;
}

/* A copy in which each byte that is not part of UTF-8 is U+FFFD; NULL: s is right as it is. */
static char *utf8_repair(const char *s)
{
	AUTO(buf_done) struct buf b = { 0 };
	size_t n = strlen(s), right = utf8_span(s, n);

	if (right == n)
		return NULL;
	for (size_t i = 0; i < n; i += right + 1) {
		right = utf8_span(s + i, n - i);
		buf_add(&b, s + i, right);
		if (i + right < n)
			buf_puts(&b, replacement);
	}
	return buf_take(&b);
}

/* ---- reading --------------------------------------------------------------- */

/* What the text would cost, before anything is allocated for it. */
static int scan(const char *json, size_t len, struct hw_err *e)
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

static int refused(const json_error_t *error, struct hw_err *e)
{
	const char *text = error->text;
	const char *cut = strstr(text, " near '\"");
	enum json_error_code code = json_error_code(error);

	must(code != json_error_out_of_memory);
	if (code == json_error_premature_end_of_input)
		return err_text(e, -EINVAL, "not JSON: it ends too early, at line %d", error->line);
	if (code == json_error_numeric_overflow)
		return err_text(e, -EINVAL, "not JSON: line %d, column %d: the number is too large",
				error->line, error->column);
	/* what stands in quotes may be a secret */
	return err_text(e, -EINVAL, "not JSON: line %d, column %d: %.*s", error->line,
			error->column, cut ? (int)(cut - text) : (int)strlen(text), text);
}

/**
 * value_parse() - text from outside into a tree
 * @json: @len bytes, one JSON value of any kind and white space around it
 *
 * Return: 0, -EINVAL (not JSON; with line and column) or -EFBIG (too large, too deep, too many)
 */
int value_parse(const char *json, size_t len, struct value **ret_value, struct hw_err *e)
{
	json_error_t error;
	json_t *j;
	int r;

	if (len > VALUE_SIZE_MAX)
		return err_text(e, -EFBIG, "JSON of %zu bytes is larger than %d", len,
				VALUE_SIZE_MAX);
	if (len == 0)
		return err_text(e, -EINVAL, "not JSON: it is empty");
	r = scan(json, len, e);
	if (r < 0)
		return r;
	j = json_loadb(json, len, JSON_DECODE_ANY, &error);
	if (!j)
		return refused(&error, e);
	*ret_value = at_value(j);
	return 0;
}

/**
 * value_literal() - text of our own into a tree
 *
 * For what stands in the source, or what value_format() wrote: it is not bounded again.
 *
 * Return: the value; text that is not JSON is a programming error
 */
struct value *value_literal(const char *json)
{
	json_error_t error;
	json_t *j = json_loads(json, JSON_DECODE_ANY, &error);

	must(j || json_error_code(&error) != json_error_out_of_memory);
	assert(j);
	return at_value(j);
}

/* ---- writing --------------------------------------------------------------- */

struct writer {
	struct buf b;
	unsigned flags;
	unsigned depth;
};

static void write_value(struct writer *w, const struct value *v);

/* Does it stand for itself in a string? */
static bool is_plain(char c)
{
	return (unsigned char)c >= 0x20 && c != '"' && c != '\\';
}

static void write_string(struct writer *w, const char *s)
{
	static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
	const char *known;
	size_t plain;

	buf_putc(&w->b, '"');
	for (;; s += plain + 1) {
		for (plain = 0; is_plain(s[plain]);)
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

/* The shortest text of 15 to 17 digits that reads back as the same number, and as a real one. */
static void write_real(struct writer *w, double d)
{
	char text[40], *point;

	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, d);
		if (strtod(text, NULL) == d)
			break;
	}
	/* the host program may have set a locale with another decimal point */
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

static void write_break(struct writer *w)
{
	if (!(w->flags & HW_JSON_PRETTY))
		return;
	buf_putc(&w->b, '\n');
	for (unsigned i = 0; i < w->depth; i++)
		buf_puts(&w->b, "    ");
}

static void write_member(struct writer *w, const char *key, const struct value *v, bool first)
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

static void write_sorted(struct writer *w, const struct value *object)
{
	autofree const char **keys = mem_resize(NULL, value_count(object), sizeof(*keys));
	size_t n = 0;

	for (void *i = NULL; value_next(object, &i, &keys[n], NULL);)
		n++;
	qsort(keys, n, sizeof(*keys), compare_keys);
	for (size_t k = 0; k < n; k++)
		write_member(w, keys[k], value_get(object, keys[k]), k == 0);
}

static void write_object(struct writer *w, const struct value *object)
{
	const char *key;
	struct value *v;
	bool first = true;

	if (w->flags & HW_JSON_SORTED) {
		write_sorted(w, object);
		return;
	}
	for (void *i = NULL; value_next(object, &i, &key, &v); first = false)
		write_member(w, key, v, first);
}

static void write_array(struct writer *w, const struct value *array)
{
	for (size_t i = 0; i < value_count(array); i++)
		write_member(w, NULL, value_at(array, i), i == 0);
}

static void write_children(struct writer *w, const struct value *v)
{
	bool is_object = json_is_object(at_json(v));

	buf_putc(&w->b, is_object ? '{' : '[');
	if (value_count(v) > 0) {
		w->depth++;
		if (is_object)
			write_object(w, v);
		else
			write_array(w, v);
		w->depth--;
		write_break(w);
	}
	buf_putc(&w->b, is_object ? '}' : ']');
}

static void write_value(struct writer *w, const struct value *v)
{
	const json_t *j = at_json(v);

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
		write_children(w, v);
		break;
	}
}

/**
 * value_format() - a tree into text, compact unless HW_JSON_PRETTY is set
 *
 * Return: the text, without a newline at its end, to be freed by the caller
 */
char *value_format(const struct value *v, unsigned flags)
{
	struct writer w = { .flags = flags };

	write_value(&w, v);
	return buf_take(&w.b);
}

/* ---- any value ------------------------------------------------------------- */

/** value_free() - drop one reference; NULL is fine */
void value_free(struct value *v)
{
	json_decref(at_json(v));
}

/** value_ref() - one more reference to the same value */
struct value *value_ref(struct value *v)
{
	return at_value(json_incref(at_json(v)));
}

/** value_copy() - a deep copy that shares nothing with the original */
struct value *value_copy(const struct value *v)
{
	return must_value(json_deep_copy(at_json(v)));
}

/** value_equal() - same kinds, same contents, keys in any order */
bool value_equal(const struct value *a, const struct value *b)
{
	return json_equal(at_json(a), at_json(b));
}

/** value_kind() - what it is */
enum value_kind value_kind(const struct value *v)
{
	switch (json_typeof(at_json(v))) {
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

/** value_kind_name() - what it is, in words, with its article */
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

/** value_new_null() - null */
struct value *value_new_null(void)
{
	return at_value(json_null());
}

/** value_new_bool() - true or false */
struct value *value_new_bool(bool b)
{
	return at_value(json_boolean(b));
}

/** value_new_int() - a whole number */
struct value *value_new_int(int64_t n)
{
	return must_value(json_integer(n));
}

/** value_new_string() - a copy of a string; bytes that are not UTF-8 become U+FFFD */
struct value *value_new_string(const char *s)
{
	autofree char *repaired = utf8_repair(s);

	return must_value(json_string_nocheck(repaired ? repaired : s));
}

/** value_new_array() - [] */
struct value *value_new_array(void)
{
	return must_value(json_array());
}

/** value_new_object() - {} */
struct value *value_new_object(void)
{
	return must_value(json_object());
}

/** value_bool() - is it true? false for anything that is not a boolean */
bool value_bool(const struct value *v)
{
	return json_is_true(at_json(v));
}

/** value_int() - the number; 0 for anything that is not a whole number */
int64_t value_int(const struct value *v)
{
	return json_integer_value(at_json(v));
}

/** value_string() - the string, borrowed; NULL for anything else */
const char *value_string(const struct value *v)
{
	return json_string_value(at_json(v));
}

/* ---- objects --------------------------------------------------------------- */

/** value_get() - the member of exactly this name, borrowed, or NULL */
struct value *value_get(const struct value *object, const char *key)
{
	return at_value(json_object_get(at_json(object), key));
}

/* One step of Go's key folding: ASCII letters, and the two other characters
 * whose simple folding is an ASCII letter. */
static int fold(const char **s)
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

/** value_same_key() - are two keys one and the same to Go's decoder? */
bool value_same_key(const char *a, const char *b)
{
	while (*a && *b)
		if (fold(&a) != fold(&b))
			return false;
	return !*a && !*b;
}

/**
 * value_find() - the member that Go would decode into a field of this name
 *
 * Return: the last whose key is the same but for case, borrowed, or NULL
 */
struct value *value_find(const struct value *object, const char *key)
{
	struct value *v, *found = NULL;
	const char *k;

	for (void *i = NULL; value_next(object, &i, &k, &v);)
		if (value_same_key(k, key))
			found = v;
	return found;
}

/** value_set() - add or replace a member; takes over @v */
void value_set(struct value *object, const char *key, struct value *v)
{
	autofree char *repaired = utf8_repair(key);

	must(json_object_set_new_nocheck(at_json(object), repaired ? repaired : key, at_json(v)) ==
	     0);
}

/** value_remove() - remove a member, if it is there */
void value_remove(struct value *object, const char *key)
{
	json_object_del(at_json(object), key);
}

/**
 * value_next() - walk an object in the order of its keys
 * @i:       NULL before the first call
 * @ret_key: borrowed; may be NULL when it is not wanted, as may @ret_v
 *
 * The object must not change meanwhile.
 *
 * Return: false after the last, and for anything that is not an object
 */
bool value_next(const struct value *object, void **i, const char **ret_key, struct value **ret_v)
{
	json_t *j = at_json(object);

	*i = *i ? json_object_iter_next(j, *i) : json_object_iter(j);
	if (!*i)
		return false;
	if (ret_key)
		*ret_key = json_object_iter_key(*i);
	if (ret_v)
		*ret_v = at_value(json_object_iter_value(*i));
	return true;
}

/* ---- arrays ---------------------------------------------------------------- */

/** value_count() - members of an array or object; 0 for anything else */
size_t value_count(const struct value *v)
{
	if (json_is_object(at_json(v)))
		return json_object_size(at_json(v));
	return json_array_size(at_json(v));
}

/** value_at() - a member of an array, borrowed; NULL beyond its end */
struct value *value_at(const struct value *array, size_t i)
{
	return at_value(json_array_get(at_json(array), i));
}

/** value_append() - add to the end of an array; takes over @v */
void value_append(struct value *array, struct value *v)
{
	must(json_array_append_new(at_json(array), at_json(v)) == 0);
}
