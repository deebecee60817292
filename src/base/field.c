/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/field.c - JSON objects described by const tables
 *
 * What:  decode, encode, clear and document a struct by its table.
 * How:   types[] has one row per enum hw_type: how wide the member is and the
 *        functions that decode, encode and clear it. Decoding carries the way
 *        down (struct where), so that an error can name its key in full.
 * Rules: every member is zeroed, then gets its default, then what the key
 *        says; what fails half way is cleared on the spot, by whoever made it.
 *        An object that is absent gets its defaults but misses nothing.
 */
#include "base/field.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/ip.h"
#include "base/mem.h"
#include "base/str.h"

/* The way from the outermost object to the value at hand. */
struct where {
	const struct where *up;
	const struct hw_field *field; /* what decodes the value; NULL for a plain string or bool */
	const char *key;	      /* NULL: entry number index */
	size_t index;
};

struct type {
	const char *name; /* for people */
	size_t size;	  /* of the member; 0: f->sub describes it */
	int (*decode)(const struct where *w, const struct value *v, void *p, struct hw_err *e);
	/* NULL: nothing that needs to be said */
	struct value *(*encode)(const struct hw_field *f, const void *p);
	const char *empty; /* what to say when it must be: JSON text */
	void (*clear)(const struct hw_field *f, void *p);
	int64_t min, max; /* of numbers */
};

static const struct type types[];

/* ---- errors ---------------------------------------------------------------- */

static void where_format(const struct where *w, struct buf *b)
{
	if (!w)
		return;
	where_format(w->up, b);
	if (!w->key)
		buf_printf(b, "[%zu]", w->index);
	else
		buf_printf(b, "%s%s", b->len ? "." : "", w->key);
}

/* "plugins[1].mtu: WHAT"; a message about the outermost value has no path. */
static int fail(const struct where *w, struct hw_err *e, const char *what)
{
	AUTO(buf_done) struct buf path = { 0 };

	where_format(w, &path);
	if (path.len > 0)
		return err_text(e, -EINVAL, "%.256s: %s", path.data, what);
	return err_text(e, -EINVAL, "%s", what);
}

static int fail_kind(const struct where *w, const char *expected, const struct value *v,
		     struct hw_err *e)
{
	autofree char *what =
		str_printf("expected %s, got %s", expected, value_kind_name(value_kind(v)));

	return fail(w, e, what);
}

static int expect(const struct where *w, enum value_kind kind, const struct value *v,
		  struct hw_err *e)
{
	if (value_kind(v) == kind)
		return 0;
	return fail_kind(w, value_kind_name(kind), v, e);
}

/* The text of an error that may quote the value. */
static int fail_quoting(const struct where *w, const char *what, struct hw_err *e)
{
	return fail(w, e, w->field->flags & HW_SECRET ? "has a value that is not valid" : what);
}

/* ---- booleans and numbers --------------------------------------------------- */

static int decode_bool(const struct where *w, const struct value *v, void *p, struct hw_err *e)
{
	const char *text = w->field->type == HW_BOOL_TEXT ? value_string(v) : NULL;

	if (text && (strcasecmp(text, "true") == 0 || strcasecmp(text, "false") == 0)) {
		*(bool *)p = strcasecmp(text, "true") == 0;
		return 0;
	}
	*(bool *)p = value_bool(v);
	return expect(w, VALUE_BOOL, v, e);
}

static struct value *encode_bool(const struct hw_field *f, const void *p)
{
	(void)f;
	return *(const bool *)p ? value_new_bool(true) : NULL;
}

static void limits(const struct hw_field *f, int64_t *ret_min, int64_t *ret_max)
{
	bool own = f->min == 0 && f->max == 0;

	*ret_min = own ? types[f->type].min : f->min;
	*ret_max = own || f->max < f->min ? types[f->type].max : f->max;
}

static void number_store(const struct hw_field *f, int64_t n, void *p)
{
	if (f->type == HW_INT)
		*(int *)p = n;
	else if (f->type == HW_UINT32)
		*(uint32_t *)p = n;
	else
		*(int64_t *)p = n;
}

static int64_t number_load(const struct hw_field *f, const void *p)
{
	if (f->type == HW_INT)
		return *(const int *)p;
	if (f->type == HW_UINT32)
		return *(const uint32_t *)p;
	return *(const int64_t *)p;
}

static int decode_number(const struct where *w, const struct value *v, void *p, struct hw_err *e)
{
	autofree char *what = NULL;
	int64_t n = value_int(v), min, max;

	if (value_kind(v) == VALUE_REAL)
		return fail_kind(w, "a whole number", v, e);
	if (value_kind(v) != VALUE_INT)
		return expect(w, VALUE_INT, v, e);
	limits(w->field, &min, &max);
	if (n < min || n > max) {
		what = str_printf("%" PRId64 " is not in %" PRId64 "..%" PRId64, n, min, max);
		return fail_quoting(w, what, e);
	}
	number_store(w->field, n, p);
	return 0;
}

static struct value *encode_number(const struct hw_field *f, const void *p)
{
	int64_t n = number_load(f, p);

	return n ? value_new_int(n) : NULL;
}

/* ---- strings and what is written as one -------------------------------------- */

static int decode_string(const struct where *w, const struct value *v, void *p, struct hw_err *e)
{
	*(char **)p = str_copy(value_string(v));
	return expect(w, VALUE_STRING, v, e);
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

static int decode_ip(const struct where *w, const struct value *v, void *p, struct hw_err *e)
{
	const char *text = value_string(v);

	if (!text)
		return expect(w, VALUE_STRING, v, e);
	/* as Go's net.IP */
	if (w->field->type == HW_IP && !*text)
		return 0;
	if (w->field->type == HW_IP ? hw_ip_parse(text, p, e) < 0
				    : hw_prefix_parse(text, p, e) < 0) {
		autofree char *what = str_copy(e->msg);

		return fail_quoting(w, what, e);
	}
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

static int decode_strings(const struct where *w, const struct value *v, void *p, struct hw_err *e)
{
	int r = expect(w, VALUE_ARRAY, v, e);

	for (size_t i = 0; r == 0 && i < value_count(v); i++) {
		struct where entry = { .up = w, .index = i };
		const struct value *s = value_at(v, i);

		if (value_kind(s) == VALUE_NULL)
			continue;
		r = expect(&entry, VALUE_STRING, s, e);
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
	struct hw_strings *list = p;

	(void)f;
	for (size_t i = 0; i < list->n; i++)
		free(list->v[i]);
	free(list->v);
}

static int decode_flags(const struct where *w, const struct value *v, void *p, struct hw_err *e)
{
	int r = expect(w, VALUE_OBJECT, v, e);
	struct value *flag;
	const char *key;

	for (void *i = NULL; r == 0 && value_next(v, &i, &key, &flag);) {
		struct where entry = { .up = w, .key = key };

		if (value_kind(flag) != VALUE_NULL)
			r = expect(&entry, VALUE_BOOL, flag, e);
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

static int decode_map(const struct where *w, const struct value *v, void *p, struct hw_err *e)
{
	struct hw_map *map = p;
	int r = expect(w, VALUE_OBJECT, v, e);
	struct value *member;
	const char *key;

	if (r < 0)
		return r;
	map->keys = mem_resize(NULL, value_count(v), sizeof(*map->keys));
	map->values = mem_resize(NULL, value_count(v), sizeof(*map->values));
	for (void *i = NULL; value_next(v, &i, &key, &member); map->n++) {
		struct where entry = { .up = w, .key = key };

		if (value_kind(member) != VALUE_NULL)
			r = expect(&entry, VALUE_STRING, member, e);
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

static void clear_map(const struct hw_field *f, void *p)
{
	struct hw_map *map = p;

	(void)f;
	for (size_t i = 0; i < map->n; i++) {
		free(map->keys[i]);
		free(map->values[i]);
	}
	free(map->keys);
	free(map->values);
}

/* ---- structs in structs --------------------------------------------------------- */

static int decode_table(const struct where *w, const struct hw_field *table, const struct value *v,
			void *out, struct hw_err *e);

static int decode_object(const struct where *w, const struct value *v, void *p, struct hw_err *e)
{
	return decode_table(w, w->field->sub, v, p, e);
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

static int decode_list(const struct where *w, const struct value *v, void *p, struct hw_err *e)
{
	struct hw_list *list = p;
	int r = expect(w, VALUE_ARRAY, v, e);

	if (r < 0 || value_count(v) == 0)
		return r;
	list->v = mem_new(value_count(v) * w->field->size);
	for (size_t i = 0; i < value_count(v); i++) {
		struct where entry = { .up = w, .index = i };

		if (value_kind(value_at(v, i)) == VALUE_NULL)
			continue;
		r = decode_table(&entry, w->field->sub, value_at(v, i),
				 (char *)list->v + list->n * w->field->size, e);
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

/* ---- JSON as it is ---------------------------------------------------------------- */

static int decode_json(const struct where *w, const struct value *v, void *p, struct hw_err *e)
{
	(void)w;
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

/* ---- the types -------------------------------------------------------------------- */

static const struct type types[] = {
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
	[HW_REST] = { NULL, sizeof(char *), NULL, NULL, NULL, clear_string },
};

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
			memset(member(f, out), 0, types[f->type].size);
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
	struct where w = { .field = f, .key = f->name };
	struct hw_err e;
	int r;

	if (f->def) {
		v = value_literal(f->def);
		r = types[f->type].decode(&w, v, member(f, out), &e);
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

static int decode_member(const struct where *up, const struct hw_field *f,
			 const struct value *object, void *out, struct hw_err *e)
{
	struct where w = { .up = up, .field = f, .key = f->name };
	const struct value *v = value_find(object, f->name);
	bool there = v && value_kind(v) != VALUE_NULL;

	if (f->flags & HW_REQUIRED && !there)
		return fail(&w, e, "is required");
	if (f->flags & HW_REQUIRED && str_equal(value_string(v), ""))
		return fail(&w, e, "must not be empty");
	if (!there) {
		default_member(f, out);
		return 0;
	}
	set_has(f, out, true);
	return types[f->type].decode(&w, v, member(f, out), e);
}

/* On failure nothing is left in out. */
static int decode_table(const struct where *w, const struct hw_field *table, const struct value *v,
			void *out, struct hw_err *e)
{
	int r = expect(w, VALUE_OBJECT, v, e);

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
	return decode_table(NULL, table, v, out, e);
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
		if (types[f->type].clear)
			types[f->type].clear(f, member(f, out));
	zero_table(table, out);
}

/* ---- encoding ---------------------------------------------------------------------- */

/* May it be left out when empty? Not where leaving it out means something else. */
static bool can_omit(const struct hw_field *f)
{
	bool same = !f->def || str_equal(f->def, types[f->type].empty);

	return same && !f->has && !(f->flags & HW_ALWAYS);
}

static struct value *encode_member(const struct hw_field *f, const void *in)
{
	struct value *v;

	if (f->has && !get_has(f, in))
		return NULL;
	v = types[f->type].encode(f, const_member(f, in));
	return v || can_omit(f) ? v : value_literal(types[f->type].empty);
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
	limits(f, &min, &max);
	if (max == types[f->type].max)
		buf_printf(b, " from %" PRId64, min);
	else
		buf_printf(b, " %" PRId64 "..%" PRId64, min, max);
}

static void document_field(const struct hw_field *f, struct buf *b)
{
	buf_printf(b, "`%s` (%s", f->name, types[f->type].name);
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
