/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/json/field.c - JSON objects described by const tables
 *
 * What:  decodes, encodes, clears and documents a struct that a table describes.
 * How:   iterates over the table; field-type.c has the operations of each type.
 *        Decoders get the path of their value (struct field_path), so that an
 *        error can name the full path of the key.
 * Rules: every member is zeroed, then set to the value of its key, or to its
 *        default. A function that fails frees everything that it has decoded.
 *        If an object is absent, its members get their defaults, and its
 *        required keys may be missing.
 */
#include "base/json/field.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/buf.h"
#include "base/json/field-type.h"
#include "base/mem.h"
#include "base/str.h"

static void *member_of(const struct hw_field *f, void *out)
{
	return (char *)out + f->at;
}

static const void *const_member_of(const struct hw_field *f, const void *in)
{
	return (const char *)in + f->at;
}

/* ---- decoding ---------------------------------------------------------------------- */

static void set_has(const struct hw_field *f, void *out, bool has)
{
	if (f->has)
		*(bool *)((char *)out + f->has - 1) = has;
}

/* Does not free the old contents. */
static void zero_table(const struct hw_field *table, void *out)
{
	for (const struct hw_field *f = table; f->type != HW_END; f++) {
		set_has(f, out, false);
		if (f->type == HW_OBJECT)
			zero_table(f->sub, member_of(f, out));
		else
			memset(member_of(f, out), 0, field_types[f->type].size);
	}
}

static void set_default(const struct hw_field *f, void *out)
{
	AUTO(value_free) struct value *v = NULL;
	struct field_path path = { .field = f, .key = f->name };
	struct hw_err e;
	int r;

	if (f->def) {
		v = value_literal(f->def);
		r = field_types[f->type].decode(&path, v, member_of(f, out), &e);
		assert(r == 0);
	} else if (f->type == HW_OBJECT) {
		for (const struct hw_field *sub = f->sub; sub->type != HW_END; sub++)
			set_default(sub, member_of(f, out));
	}
}

static bool is_known_key(const struct hw_field *table, const char *key)
{
	for (const struct hw_field *f = table; f->type != HW_END; f++)
		if (f->type != HW_REST && value_keys_match(f->name, key))
			return true;
	return false;
}

static void decode_rest(const struct hw_field *table, const struct value *v, char **ret_text)
{
	AUTO(value_free) struct value *rest = value_new_object();
	struct value *other;
	const char *key;

	for (void *i = NULL; value_next(v, &i, &key, &other);)
		if (!is_known_key(table, key))
			value_set(rest, key, value_ref(other));
	if (value_count(rest) > 0)
		*ret_text = value_format(rest, 0);
}

static int decode_member(const struct field_path *up, const struct hw_field *f,
			 const struct value *object, void *out, struct hw_err *e)
{
	struct field_path path = { .up = up, .field = f, .key = f->name };
	const struct value *v = value_find(object, f->name);
	bool present = v && value_kind(v) != VALUE_NULL;

	if (f->flags & HW_REQUIRED && !present)
		return field_fail(&path, e, "required key is missing");
	if (f->flags & HW_REQUIRED && str_equal(value_string(v), ""))
		return field_fail(&path, e, "must not be empty");
	if (!present) {
		set_default(f, out);
		return 0;
	}
	set_has(f, out, true);
	return field_types[f->type].decode(&path, v, member_of(f, out), e);
}

int field_decode_at(const struct field_path *path, const struct hw_field *table,
		    const struct value *v, void *out, struct hw_err *e)
{
	int r;

	r = field_expect(path, VALUE_OBJECT, v, e);
	zero_table(table, out);
	for (const struct hw_field *f = table; r == 0 && f->type != HW_END; f++) {
		if (f->type == HW_REST)
			decode_rest(table, v, member_of(f, out));
		else
			r = decode_member(path, f, v, out, e);
	}
	if (r < 0)
		hw_field_clear(table, out);
	return r;
}

int field_decode(const struct hw_field *table, const struct value *v, void *out, struct hw_err *e)
{
	return field_decode_at(NULL, table, v, out, e);
}

/* HW_REST accepts any key. */
static const struct hw_field *find_field(const struct hw_field *table, const char *key)
{
	for (const struct hw_field *f = table; f->type != HW_END; f++)
		if (f->type == HW_REST || str_equal(f->name, key))
			return f;
	return NULL;
}

static int check_known_keys(const struct field_path *up, const struct hw_field *table,
			    const struct value *v, struct hw_err *e)
{
	struct value *child;
	const char *key;
	int r = 0;

	if (value_kind(v) != VALUE_OBJECT)
		return 0;
	for (void *i = NULL; r == 0 && value_next(v, &i, &key, &child);) {
		struct field_path path = { .up = up, .field = find_field(table, key), .key = key };

		if (!path.field) {
			r = field_fail(&path, e, "unknown key");
		} else if (path.field->type == HW_OBJECT) {
			r = check_known_keys(&path, path.field->sub, child, e);
		} else if (path.field->type == HW_LIST && value_kind(child) == VALUE_ARRAY) {
			for (size_t n = 0; r == 0 && n < value_count(child); n++) {
				struct field_path entry = { .up = &path, .index = n };

				r = check_known_keys(&entry, path.field->sub, value_at(child, n),
						     e);
			}
		}
	}
	return r;
}

int field_check_known(const struct hw_field *table, const struct value *v, struct hw_err *e)
{
	return check_known_keys(NULL, table, v, e);
}

int hw_field_decode(const struct hw_field *table, const char *json, size_t len, void *out,
		    struct hw_err *e)
{
	AUTO(value_free) struct value *v = NULL;
	int r;

	r = value_parse(json, len, &v, e);
	if (r < 0) {
		zero_table(table, out);
		return r;
	}
	return field_decode(table, v, out, e);
}

void hw_field_clear(const struct hw_field *table, void *out)
{
	for (const struct hw_field *f = table; f->type != HW_END; f++)
		if (field_types[f->type].clear)
			field_types[f->type].clear(f, member_of(f, out));
	zero_table(table, out);
}

/* ---- encoding ---------------------------------------------------------------------- */

static void encode_rest(const struct hw_field *table, const char *text, struct value *object)
{
	AUTO(value_free) struct value *rest = text ? value_literal(text) : NULL;
	struct value *v;
	const char *key;

	for (void *i = NULL; value_next(rest, &i, &key, &v);)
		if (!is_known_key(table, key))
			value_set(object, key, value_ref(v));
}

struct value *field_encode(const struct hw_field *table, const void *in)
{
	struct value *object = value_new_object();

	for (const struct hw_field *f = table; f->type != HW_END; f++) {
		const struct field_type *type = &field_types[f->type];
		bool default_is_empty = !f->def || str_equal(f->def, type->empty);
		struct value *v;

		if (f->type == HW_REST)
			continue;
		if (f->has && !*(const bool *)((const char *)in + f->has - 1))
			continue;
		v = type->encode(f, const_member_of(f, in));
		/* an empty member is left out, unless it would then be decoded as another value */
		if (!v && (!default_is_empty || f->has || f->flags & HW_ALWAYS))
			v = value_literal(type->empty);
		if (v)
			value_set(object, f->name, v);
	}
	for (const struct hw_field *f = table; f->type != HW_END; f++)
		if (f->type == HW_REST)
			encode_rest(table, *(char *const *)const_member_of(f, in), object);
	return object;
}

char *hw_field_encode(const struct hw_field *table, const void *in, unsigned flags)
{
	AUTO(value_free) struct value *object = field_encode(table, in);

	return value_format(object, flags);
}

/* ---- documentation ------------------------------------------------------------------ */

static void document_table(const struct hw_field *table, int indent, struct buf *b)
{
	for (const struct hw_field *f = table; f->type != HW_END; f++) {
		const struct field_type *type = &field_types[f->type];
		int64_t min, max;

		if (f->type == HW_REST)
			continue;
		buf_printf(b, "%*s`%s` (%s", indent, "", f->name, type->name);
		if (f->min != 0 || f->max != 0) {
			field_limits(f, &min, &max);
			if (max == type->max)
				buf_printf(b, " from %" PRId64, min);
			else
				buf_printf(b, " %" PRId64 "..%" PRId64, min, max);
		}
		if (f->flags & HW_REQUIRED)
			buf_puts(b, ", required");
		if (f->def)
			buf_printf(b, ", default %s", f->def);
		buf_putc(b, ')');
		if (f->help)
			buf_printf(b, ": %s", f->help);
		buf_putc(b, '\n');
		if (f->sub)
			document_table(f->sub, indent + 4, b);
	}
}

char *hw_field_document(const struct hw_field *table)
{
	AUTO(buf_done) struct buf b = { 0 };

	document_table(table, 0, &b);
	return buf_take(&b);
}
