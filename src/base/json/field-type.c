/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/json/field-type.c - the types of field tables
 *
 * What:  one row per enum hw_type: the size of the member, its empty value in
 *        JSON, and the functions that decode, encode and clear it.
 * Rules: null entries of lists are dropped; null in a map is "", as in Go.
 * Not:   keys, defaults and required keys are handled in field.c.
 */
#include "base/json/field-type.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <strings.h>

#include "base/buf.h"
#include "base/ip.h"
#include "base/json/field.h"
#include "base/mem.h"
#include "base/str.h"

/* ---- errors ---------------------------------------------------------------- */

static void format_path(const struct field_path *path, struct buf *b)
{
	if (!path)
		return;
	format_path(path->up, b);
	if (!path->key)
		buf_printf(b, "[%zu]", path->index);
	else
		buf_printf(b, "%s%s", b->len ? "." : "", path->key);
}

int field_fail(const struct field_path *path, struct hw_err *e, const char *problem)
{
	AUTO(buf_done) struct buf text = { 0 };

	format_path(path, &text);
	if (text.len > 0)
		return err_text(e, -EINVAL, "%.256s: %s", text.data, problem);
	return err_text(e, -EINVAL, "%s", problem);
}

static int fail_expected(const struct field_path *path, const char *expected, const struct value *v,
			 struct hw_err *e)
{
	autofree char *problem =
		str_printf("expected %s, got %s", expected, value_kind_name(value_kind(v)));

	return field_fail(path, e, problem);
}

int field_expect(const struct field_path *path, enum value_kind kind, const struct value *v,
		 struct hw_err *e)
{
	if (value_kind(v) == kind)
		return 0;
	return fail_expected(path, value_kind_name(kind), v, e);
}

/* @problem contains the value, so it is not shown if the field has HW_SECRET. */
static int fail_quoting(const struct field_path *path, const char *problem, struct hw_err *e)
{
	return field_fail(path, e, path->field->flags & HW_SECRET ? "invalid value" : problem);
}

/* ---- booleans and numbers --------------------------------------------------- */

static int decode_bool(const struct field_path *path, const struct value *v, void *p,
		       struct hw_err *e)
{
	const char *text = path->field->type == HW_BOOL_TEXT ? value_string(v) : NULL;

	if (text && (strcasecmp(text, "true") == 0 || strcasecmp(text, "false") == 0)) {
		*(bool *)p = strcasecmp(text, "true") == 0;
		return 0;
	}
	*(bool *)p = value_bool(v);
	return field_expect(path, VALUE_BOOL, v, e);
}

static struct value *encode_bool(const struct hw_field *f, const void *p)
{
	(void)f;
	return *(const bool *)p ? value_new_bool(true) : NULL;
}

void field_limits(const struct hw_field *f, int64_t *ret_min, int64_t *ret_max)
{
	bool unset = f->min == 0 && f->max == 0;

	*ret_min = unset ? field_types[f->type].min : f->min;
	*ret_max = unset || f->max < f->min ? field_types[f->type].max : f->max;
}

static int decode_number(const struct field_path *path, const struct value *v, void *p,
			 struct hw_err *e)
{
	const struct hw_field *f = path->field;
	autofree char *problem = NULL;
	int64_t n = value_int(v), min, max;

	if (value_kind(v) == VALUE_REAL)
		return fail_expected(path, "a whole number", v, e);
	if (value_kind(v) != VALUE_INT)
		return field_expect(path, VALUE_INT, v, e);
	field_limits(f, &min, &max);
	if (n < min || n > max) {
		problem = str_printf("%" PRId64 " is out of range %" PRId64 "..%" PRId64, n, min,
				     max);
		return fail_quoting(path, problem, e);
	}
	if (f->type == HW_INT)
		*(int *)p = n;
	else if (f->type == HW_UINT32)
		*(uint32_t *)p = n;
	else
		*(int64_t *)p = n;
	return 0;
}

static struct value *encode_number(const struct hw_field *f, const void *p)
{
	int64_t n;

	if (f->type == HW_INT)
		n = *(const int *)p;
	else if (f->type == HW_UINT32)
		n = *(const uint32_t *)p;
	else
		n = *(const int64_t *)p;
	return n ? value_new_int(n) : NULL;
}

static int decode_uint32s(const struct field_path *path, const struct value *v, void *p,
			  struct hw_err *e)
{
	struct hw_list *list = p;
	uint32_t *numbers;
	int r;

	r = field_expect(path, VALUE_ARRAY, v, e);
	if (r < 0 || value_count(v) == 0)
		return r;
	list->v = numbers = mem_new(value_count(v) * sizeof(*numbers));
	for (size_t i = 0; i < value_count(v); i++) {
		struct hw_field number = { .type = HW_UINT32,
					   .flags = path->field->flags,
					   .min = path->field->min,
					   .max = path->field->max };
		struct field_path entry = { .up = path, .field = &number, .index = i };

		if (value_kind(value_at(v, i)) == VALUE_NULL)
			continue;
		r = decode_number(&entry, value_at(v, i), numbers + list->n, e);
		if (r < 0)
			return r;
		list->n++;
	}
	return 0;
}

static struct value *encode_uint32s(const struct hw_field *f, const void *p)
{
	const struct hw_list *list = p;
	const uint32_t *numbers = list->v;
	struct value *array;

	(void)f;
	if (list->n == 0)
		return NULL;
	array = value_new_array();
	for (size_t i = 0; i < list->n; i++)
		value_append(array, value_new_int(numbers[i]));
	return array;
}

static void clear_uint32s(const struct hw_field *f, void *p)
{
	(void)f;
	free(((struct hw_list *)p)->v);
}

/* ---- strings and addresses --------------------------------------------------- */

static int decode_string(const struct field_path *path, const struct value *v, void *p,
			 struct hw_err *e)
{
	*(char **)p = str_copy(value_string(v));
	return field_expect(path, VALUE_STRING, v, e);
}

static struct value *encode_string(const struct hw_field *f, const void *p)
{
	const char *s = *(char *const *)p;

	(void)f;
	return str_empty(s) ? NULL : value_new_string(s);
}

static void clear_string(const struct hw_field *f, void *p)
{
	(void)f;
	free(*(char **)p);
}

static int decode_ip(const struct field_path *path, const struct value *v, void *p,
		     struct hw_err *e)
{
	const char *text;

	text = value_string(v);
	if (!text)
		return field_expect(path, VALUE_STRING, v, e);
	if (path->field->type == HW_IP && !*text)
		return 0; /* "" is an unset address, as in Go's net.IP */
	if (path->field->type == HW_IP ? hw_ip_parse(text, p, e) < 0
				       : hw_prefix_parse(text, p, e) < 0)
		return fail_quoting(path, e->msg, e);
	return 0;
}

static struct value *encode_ip(const struct hw_field *f, const void *p)
{
	char text[HW_PREFIX_TEXT];

	if (f->type == HW_IP)
		hw_ip_format(p, text);
	else
		hw_prefix_format(p, text);
	return *text ? value_new_string(text) : NULL;
}

/* ---- lists and maps of strings ------------------------------------------------ */

static int decode_strings(const struct field_path *path, const struct value *v, void *p,
			  struct hw_err *e)
{
	int r;

	r = field_expect(path, VALUE_ARRAY, v, e);
	for (size_t i = 0; r == 0 && i < value_count(v); i++) {
		struct field_path entry = { .up = path, .index = i };
		const struct value *s = value_at(v, i);

		if (value_kind(s) == VALUE_NULL)
			continue;
		r = field_expect(&entry, VALUE_STRING, s, e);
		if (r == 0)
			strings_add(p, value_string(s));
	}
	return r;
}

static struct value *encode_strings(const struct hw_field *f, const void *p)
{
	const struct hw_strings *list = p;
	struct value *array;

	(void)f;
	if (list->n == 0)
		return NULL;
	array = value_new_array();
	for (size_t i = 0; i < list->n; i++)
		value_append(array, value_new_string(list->v[i]));
	return array;
}

static void clear_strings(const struct hw_field *f, void *p)
{
	(void)f;
	hw_strings_free(p);
}

static int decode_flags(const struct field_path *path, const struct value *v, void *p,
			struct hw_err *e)
{
	struct value *flag;
	const char *key;
	int r;

	r = field_expect(path, VALUE_OBJECT, v, e);
	for (void *i = NULL; r == 0 && value_next(v, &i, &key, &flag);) {
		struct field_path entry = { .up = path, .key = key };

		if (value_kind(flag) != VALUE_NULL)
			r = field_expect(&entry, VALUE_BOOL, flag, e);
		if (r == 0 && value_bool(flag))
			strings_add(p, key);
	}
	return r;
}

static struct value *encode_flags(const struct hw_field *f, const void *p)
{
	const struct hw_strings *list = p;
	struct value *object;

	(void)f;
	if (list->n == 0)
		return NULL;
	object = value_new_object();
	for (size_t i = 0; i < list->n; i++)
		value_set(object, list->v[i], value_new_bool(true));
	return object;
}

static int decode_map(const struct field_path *path, const struct value *v, void *p,
		      struct hw_err *e)
{
	struct hw_map *map = p;
	struct value *member;
	const char *key;
	int r;

	r = field_expect(path, VALUE_OBJECT, v, e);
	if (r < 0)
		return r;
	map->keys = mem_resize(NULL, value_count(v), sizeof(*map->keys));
	map->values = mem_resize(NULL, value_count(v), sizeof(*map->values));
	for (void *i = NULL; value_next(v, &i, &key, &member); map->n++) {
		struct field_path entry = { .up = path, .key = key };

		if (value_kind(member) != VALUE_NULL)
			r = field_expect(&entry, VALUE_STRING, member, e);
		if (r < 0)
			return r;
		map->keys[map->n] = str_copy(key);
		map->values[map->n] = str_copy(str_or(value_string(member), ""));
	}
	return 0;
}

static struct value *encode_map(const struct hw_field *f, const void *p)
{
	const struct hw_map *map = p;
	struct value *object;

	(void)f;
	if (map->n == 0)
		return NULL;
	object = value_new_object();
	for (size_t i = 0; i < map->n; i++)
		value_set(object, map->keys[i], value_new_string(map->values[i]));
	return object;
}

void field_map_free(struct hw_map *map)
{
	for (size_t i = 0; i < map->n; i++) {
		free(map->keys[i]);
		free(map->values[i]);
	}
	free(map->keys);
	free(map->values);
	*map = (struct hw_map){ 0 };
}

static void clear_map(const struct hw_field *f, void *p)
{
	(void)f;
	field_map_free(p);
}

/* ---- nested structs -------------------------------------------------------------- */

static int decode_object(const struct field_path *path, const struct value *v, void *p,
			 struct hw_err *e)
{
	return field_decode_at(path, path->field->sub, v, p, e);
}

static struct value *encode_object(const struct hw_field *f, const void *p)
{
	struct value *object = field_encode(f->sub, p);

	if (value_count(object) > 0)
		return object;
	value_free(object);
	return NULL;
}

static void clear_object(const struct hw_field *f, void *p)
{
	hw_field_clear(f->sub, p);
}

static int decode_list(const struct field_path *path, const struct value *v, void *p,
		       struct hw_err *e)
{
	struct hw_list *list = p;
	int r;

	r = field_expect(path, VALUE_ARRAY, v, e);
	if (r < 0 || value_count(v) == 0)
		return r;
	list->v = mem_new(value_count(v) * path->field->size);
	for (size_t i = 0; i < value_count(v); i++) {
		struct field_path entry = { .up = path, .index = i };

		if (value_kind(value_at(v, i)) == VALUE_NULL)
			continue;
		r = field_decode_at(&entry, path->field->sub, value_at(v, i),
				    (char *)list->v + list->n * path->field->size, e);
		if (r < 0)
			return r;
		list->n++;
	}
	return 0;
}

static struct value *encode_list(const struct hw_field *f, const void *p)
{
	const struct hw_list *list = p;
	struct value *array;

	if (list->n == 0)
		return NULL;
	array = value_new_array();
	for (size_t i = 0; i < list->n; i++)
		value_append(array, field_encode(f->sub, (const char *)list->v + i * f->size));
	return array;
}

static void clear_list(const struct hw_field *f, void *p)
{
	struct hw_list *list = p;

	for (size_t i = 0; i < list->n; i++)
		hw_field_clear(f->sub, (char *)list->v + i * f->size);
	free(list->v);
}

/* ---- any JSON --------------------------------------------------------------------- */

static int decode_json(const struct field_path *path, const struct value *v, void *p,
		       struct hw_err *e)
{
	(void)path;
	(void)e;
	*(char **)p = value_format(v, 0);
	return 0;
}

static struct value *encode_json(const struct hw_field *f, const void *p)
{
	const char *text = *(char *const *)p;

	(void)f;
	return text ? value_literal(text) : NULL;
}

/* ---- table of types ---------------------------------------------------------------- */

const struct field_type field_types[] = {
	[HW_BOOL] = { "boolean", sizeof(bool), decode_bool, encode_bool, "false" },
	[HW_BOOL_TEXT] = { "boolean", sizeof(bool), decode_bool, encode_bool, "false" },
	[HW_INT] = { "number", sizeof(int), decode_number, encode_number, "0", .min = INT_MIN,
		     .max = INT_MAX },
	[HW_INT64] = { "number", sizeof(int64_t), decode_number, encode_number, "0",
		       .min = INT64_MIN, .max = INT64_MAX },
	[HW_UINT32] = { "number", sizeof(uint32_t), decode_number, encode_number, "0",
			.max = UINT32_MAX },
	[HW_STRING] = { "string", sizeof(char *), decode_string, encode_string, "\"\"",
			clear_string },
	[HW_IP] = { "IP address", sizeof(struct hw_ip), decode_ip, encode_ip, "\"\"" },
	[HW_PREFIX] = { "address/length", sizeof(struct hw_prefix), decode_ip, encode_ip, "\"\"" },
	[HW_STRINGS] = { "list of strings", sizeof(struct hw_strings), decode_strings,
			 encode_strings, "[]", clear_strings },
	[HW_MAP] = { "object of strings", sizeof(struct hw_map), decode_map, encode_map, "{}",
		     clear_map },
	[HW_FLAGS] = { "object of booleans", sizeof(struct hw_strings), decode_flags, encode_flags,
		       "{}", clear_strings },
	[HW_OBJECT] = { "object", 0, decode_object, encode_object, "{}", clear_object },
	[HW_LIST] = { "list of objects", sizeof(struct hw_list), decode_list, encode_list, "[]",
		      clear_list },
	[HW_JSON] = { "any JSON", sizeof(char *), decode_json, encode_json, "null", clear_string },
	[HW_UINT32S] = { "list of numbers", sizeof(struct hw_list), decode_uint32s, encode_uint32s,
			 "[]", clear_uint32s, .max = UINT32_MAX },
	[HW_REST] = { NULL, sizeof(char *), NULL, NULL, NULL, clear_string },
};
