/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/json/field.c - JSON objects described by const tables
 *
 * What:  decode, encode, clear and document a struct by its table.
 * How:   walks the table; what a member of a type is, field-type.c knows.
 *        Decoding carries the way down (struct field_where), so that an error
 *        can name its key in full.
 * Rules: every member is zeroed, then gets its default, then what the key
 *        says; what fails half way is cleared on the spot, by whoever made it.
 *        An object that is absent gets its defaults but misses nothing.
 */
#include "base/json/field.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/buf.h"
#include "base/json/field-type.h"
#include "base/mem.h"
#include "base/str.h"

static void *member(const struct hw_field *f, void *out)
{
	return (char *)out + f->at;
}

static const void *const_member(const struct hw_field *f, const void *in)
{
	return (const char *)in + f->at;
}

/* ---- decoding ---------------------------------------------------------------------- */

static void set_has(const struct hw_field *f, void *out, bool has)
{
	if (f->has)
		*(bool *)((char *)out + f->has - 1) = has;
}

static bool get_has(const struct hw_field *f, const void *in)
{
	return *(const bool *)((const char *)in + f->has - 1);
}

/* Zero all members, without freeing what they held. */
static void zero_table(const struct hw_field *table, void *out)
{
	for (const struct hw_field *f = table; f->type != HW_END; f++) {
		set_has(f, out, false);
		if (f->type == HW_OBJECT)
			zero_table(f->sub, member(f, out));
		else
			memset(member(f, out), 0, field_types[f->type].size);
	}
}

static void default_member(const struct hw_field *f, void *out);

static void default_table(const struct hw_field *table, void *out)
{
	for (const struct hw_field *f = table; f->type != HW_END; f++)
		default_member(f, out);
}

static void default_member(const struct hw_field *f, void *out)
{
	AUTO(value_free) struct value *v = NULL;
	struct field_where w = { .field = f, .key = f->name };
	struct hw_err e;
	int r;

	if (f->def) {
		v = value_literal(f->def);
		r = field_types[f->type].decode(&w, v, member(f, out), &e);
		assert(r == 0);
	} else if (f->type == HW_OBJECT) {
		default_table(f->sub, member(f, out));
	}
}

static bool is_named(const struct hw_field *table, const char *key)
{
	for (const struct hw_field *f = table; f->type != HW_END; f++)
		if (f->type != HW_REST && value_same_key(f->name, key))
			return true;
	return false;
}

static void decode_rest(const struct hw_field *table, const struct value *v, char **ret_text)
{
	AUTO(value_free) struct value *rest = value_new_object();
	struct value *other;
	const char *key;

	for (void *i = NULL; value_next(v, &i, &key, &other);)
		if (!is_named(table, key))
			value_set(rest, key, value_ref(other));
	if (value_count(rest) > 0)
		*ret_text = value_format(rest, 0);
}

static int decode_member(const struct field_where *up, const struct hw_field *f,
			 const struct value *object, void *out, struct hw_err *e)
{
	struct field_where w = { .up = up, .field = f, .key = f->name };
	const struct value *v = value_find(object, f->name);
	bool there = v && value_kind(v) != VALUE_NULL;

	if (f->flags & HW_REQUIRED && !there)
		return field_fail(&w, e, "is required");
	if (f->flags & HW_REQUIRED && str_equal(value_string(v), ""))
		return field_fail(&w, e, "must not be empty");
	if (!there) {
		default_member(f, out);
		return 0;
	}
	set_has(f, out, true);
	return field_types[f->type].decode(&w, v, member(f, out), e);
}

/**
 * field_decode_at() - decode one object, outermost or inside of another
 * @w: where it is, for messages; NULL: the outermost
 *
 * Return: 0, or -EINVAL with nothing left in @out
 */
int field_decode_at(const struct field_where *w, const struct hw_field *table,
		    const struct value *v, void *out, struct hw_err *e)
{
	int r = field_expect(w, VALUE_OBJECT, v, e);

	zero_table(table, out);
	for (const struct hw_field *f = table; r == 0 && f->type != HW_END; f++) {
		if (f->type == HW_REST)
			decode_rest(table, v, member(f, out));
		else
			r = decode_member(w, f, v, out, e);
	}
	if (r < 0)
		hw_field_clear(table, out);
	return r;
}

/**
 * field_decode() - a value that is already read into a struct
 *
 * Return: 0, or -EINVAL with the path of the offending key in the message;
 *         then @out holds nothing that needs hw_field_clear()
 */
int field_decode(const struct hw_field *table, const struct value *v, void *out, struct hw_err *e)
{
	return field_decode_at(NULL, table, v, out, e);
}

static const struct hw_field *find_field(const struct hw_field *table, const char *key)
{
	for (const struct hw_field *f = table; f->type != HW_END; f++)
		if (f->type == HW_REST || str_equal(f->name, key))
			return f;
	return NULL;
}

static int known_at(const struct field_where *up, const struct hw_field *table,
		    const struct value *v, struct hw_err *e);

static int known_member(const struct field_where *w, const struct value *v, struct hw_err *e)
{
	int r = 0;

	if (w->field->type == HW_OBJECT && value_kind(v) == VALUE_OBJECT)
		return known_at(w, w->field->sub, v, e);
	if (w->field->type != HW_LIST || value_kind(v) != VALUE_ARRAY)
		return 0;
	for (size_t i = 0; r == 0 && i < value_count(v); i++) {
		struct field_where entry = { .up = w, .index = i };

		r = known_at(&entry, w->field->sub, value_at(v, i), e);
	}
	return r;
}

static int known_at(const struct field_where *up, const struct hw_field *table,
		    const struct value *v, struct hw_err *e)
{
	struct value *child;
	const char *key;
	int r = 0;

	if (value_kind(v) != VALUE_OBJECT)
		return 0;
	for (void *i = NULL; r == 0 && value_next(v, &i, &key, &child);) {
		struct field_where w = { .up = up, .field = find_field(table, key), .key = key };

		r = w.field ? known_member(&w, child, e) : field_fail(&w, e, "unknown key");
	}
	return r;
}

/**
 * field_known() - are all keys of an object, and of those in it, in the table?
 *
 * Values of a wrong type are for field_decode() to find.
 *
 * Return: 0, or -EINVAL with the path of the first unknown key in the message
 */
int field_known(const struct hw_field *table, const struct value *v, struct hw_err *e)
{
	return known_at(NULL, table, v, e);
}

int hw_field_decode(const struct hw_field *table, const char *json, size_t len, void *out,
		    struct hw_err *e)
{
	AUTO(value_free) struct value *v = NULL;
	int r = value_parse(json, len, &v, e);

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
			field_types[f->type].clear(f, member(f, out));
	zero_table(table, out);
}

/* ---- encoding ---------------------------------------------------------------------- */

/* May it be left out when empty? Not where leaving it out means something else. */
static bool can_omit(const struct hw_field *f)
{
	bool same = !f->def || str_equal(f->def, field_types[f->type].empty);

	return same && !f->has && !(f->flags & HW_ALWAYS);
}

static struct value *encode_member(const struct hw_field *f, const void *in)
{
	struct value *v;

	if (f->has && !get_has(f, in))
		return NULL;
	v = field_types[f->type].encode(f, const_member(f, in));
	return v || can_omit(f) ? v : value_literal(field_types[f->type].empty);
}

static void encode_rest(const struct hw_field *table, const char *text, struct value *object)
{
	AUTO(value_free) struct value *rest = text ? value_literal(text) : NULL;
	struct value *v;
	const char *key;

	for (void *i = NULL; value_next(rest, &i, &key, &v);)
		if (!is_named(table, key))
			value_set(object, key, value_ref(v));
}

/**
 * field_encode() - a struct into an object, keys in the order of the table
 *
 * Return: the object; the caller's reference
 */
struct value *field_encode(const struct hw_field *table, const void *in)
{
	struct value *object = value_new_object();
	struct value *v;

	for (const struct hw_field *f = table; f->type != HW_END; f++) {
		v = f->type != HW_REST ? encode_member(f, in) : NULL;
		if (v)
			value_set(object, f->name, v);
	}
	for (const struct hw_field *f = table; f->type != HW_END; f++)
		if (f->type == HW_REST)
			encode_rest(table, *(char *const *)const_member(f, in), object);
	return object;
}

char *hw_field_encode(const struct hw_field *table, const void *in, unsigned flags)
{
	AUTO(value_free) struct value *object = field_encode(table, in);

	return value_format(object, flags);
}

/* ---- documentation ------------------------------------------------------------------ */

static void document_limits(const struct hw_field *f, struct buf *b)
{
	int64_t min, max;

	if (f->min == 0 && f->max == 0)
		return;
	field_limits(f, &min, &max);
	if (max == field_types[f->type].max)
		buf_printf(b, " from %" PRId64, min);
	else
		buf_printf(b, " %" PRId64 "..%" PRId64, min, max);
}

static void document_field(const struct hw_field *f, struct buf *b)
{
	buf_printf(b, "`%s` (%s", f->name, field_types[f->type].name);
	document_limits(f, b);
	if (f->flags & HW_REQUIRED)
		buf_puts(b, ", required");
	if (f->def)
		buf_printf(b, ", default %s", f->def);
	buf_putc(b, ')');
	if (f->help)
		buf_printf(b, ": %s", f->help);
	buf_putc(b, '\n');
}

static void document_table(const struct hw_field *table, int indent, struct buf *b)
{
	for (const struct hw_field *f = table; f->type != HW_END; f++) {
		if (f->type == HW_REST)
			continue;
		buf_printf(b, "%*s", indent, "");
		document_field(f, b);
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
