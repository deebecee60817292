/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/json/yaml.c - YAML text as the trees of base/json/value.h
 *
 * How:   libyaml's events, and a function per kind of node that calls itself for
 *        what is inside, at most VALUE_DEPTH_MAX deep. The way to the node at hand is
 *        kept as text, written as base/json/field.h does in its messages: reading the
 *        document once more with a message to compare finds a line, and no line
 *        needs to be kept.
 */
#include "base/json/yaml.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include <yaml.h>

#include "base/buf.h"
#include "base/str.h"

struct reader {
	yaml_parser_t parser;
	yaml_event_t event; /* the last one */
	size_t count;	    /* members of all arrays and objects */
	unsigned depth;
	struct buf path;
	const char *message; /* yml_line(): what is looked for; NULL: nothing is */
	size_t best;	     /* length of the path that fits it best so far */
	size_t line;	     /* where that is */
};

static void reader_init(struct reader *r, const char *text, size_t len)
{
	*r = (struct reader){ .line = 1 };
	if (!yaml_parser_initialize(&r->parser))
		mem_exhausted();
	yaml_parser_set_encoding(&r->parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&r->parser, (const unsigned char *)text, len);
}

static void reader_done(struct reader *r)
{
	yaml_event_delete(&r->event);
	yaml_parser_delete(&r->parser);
	buf_done(&r->path);
}

AUTO_VALUE_DEFINE(reader_done, struct reader);

static int fail_at(const yaml_mark_t *mark, int code, const char *what, struct hw_err *e)
{
	return err_text(e, code, "line %zu, column %zu: %s", mark->line + 1, mark->column + 1,
			what);
}

static int fail(const struct reader *r, int code, const char *what, struct hw_err *e)
{
	return fail_at(&r->event.start_mark, code, what, e);
}

static int next(struct reader *r, struct hw_err *e)
{
	yaml_event_delete(&r->event);
	if (yaml_parser_parse(&r->parser, &r->event))
		return 0;
	memset(&r->event, 0, sizeof(r->event));
	if (r->parser.error == YAML_MEMORY_ERROR)
		mem_exhausted();
	return fail_at(&r->parser.problem_mark, -EINVAL, str_or(r->parser.problem, "not YAML"), e);
}

/* ---- scalars -------------------------------------------------------------------------- */

static bool is_one_of(const char *text, const char *const *words)
{
	for (; *words; words++)
		if (strcmp(text, *words) == 0)
			return true;
	return false;
}

/* Decimal, and written as everybody does: others read 010 as eight. */
static bool is_number(const char *text, long long *ret_n)
{
	const char *digits = text + (*text == '-');

	return (*digits != '0' || !digits[1]) && str_to_int64(text, INT64_MIN, INT64_MAX, ret_n);
}

static struct value *plain(const char *text)
{
	static const char *const nulls[] = { "", "~", "null", "Null", "NULL", NULL };
	static const char *const trues[] = { "true", "True", "TRUE", NULL };
	static const char *const falses[] = { "false", "False", "FALSE", NULL };
	long long n;

	if (is_one_of(text, nulls))
		return value_new_null();
	if (is_one_of(text, trues) || is_one_of(text, falses))
		return value_new_bool(is_one_of(text, trues));
	return is_number(text, &n) ? value_new_int(n) : value_new_string(text);
}

static int check_tag(const struct reader *r, const yaml_char_t *tag, struct hw_err *e)
{
	if (!tag || str_equal((const char *)tag, YAML_STR_TAG) || str_equal((const char *)tag, "!"))
		return 0;
	return fail(r, -EINVAL, "tags are not taken", e);
}

static int check_scalar(const struct reader *r, struct hw_err *e)
{
	if (memchr(r->event.data.scalar.value, '\0', r->event.data.scalar.length))
		return fail(r, -EINVAL, "a NUL in the text", e);
	return check_tag(r, r->event.data.scalar.tag, e);
}

static int read_scalar(struct reader *r, struct value **ret_value, struct hw_err *e)
{
	const char *text = (const char *)r->event.data.scalar.value;
	int result = check_scalar(r, e);

	if (result < 0)
		return result;
	if (r->event.data.scalar.plain_implicit)
		*ret_value = plain(text);
	else
		*ret_value = value_new_string(text);
	return 0;
}

/* ---- lists and objects ------------------------------------------------------------------ */

/* Is this node on the way to the one that the message is about? */
static void look(struct reader *r)
{
	const char *end;

	if (!r->message || r->path.len <= r->best ||
	    strncmp(r->message, r->path.data, r->path.len) != 0)
		return;
	end = r->message + r->path.len;
	if (*end != ':' && *end != '.' && *end != '[')
		return;
	r->best = r->path.len;
	r->line = r->event.start_mark.line + 1;
}

static int read_node(struct reader *r, struct value **ret_value, struct hw_err *e);

static int count_member(struct reader *r, struct hw_err *e)
{
	return ++r->count > VALUE_COUNT_MAX ? fail(r, -EFBIG, "too many members", e) : 0;
}

static void leave(struct reader *r, size_t len)
{
	r->path.len = len;
	if (r->path.data)
		r->path.data[len] = '\0';
}

static int read_list(struct reader *r, struct value *list, struct hw_err *e)
{
	size_t len = r->path.len;
	int result = next(r, e);

	while (result == 0 && r->event.type != YAML_SEQUENCE_END_EVENT) {
		struct value *v = NULL;

		buf_printf(&r->path, "[%zu]", value_count(list));
		look(r);
		result = count_member(r, e);
		if (result == 0)
			result = read_node(r, &v, e);
		leave(r, len);
		if (result < 0)
			break;
		value_append(list, v);
		result = next(r, e);
	}
	return result;
}

static int read_key(struct reader *r, const struct value *object, char **ret_key, struct hw_err *e)
{
	const char *key = (const char *)r->event.data.scalar.value;
	int result;

	if (r->event.type != YAML_SCALAR_EVENT)
		return fail(r, -EINVAL, "a key must be text", e);
	result = check_scalar(r, e);
	if (result < 0)
		return result;
	if (value_get(object, key)) {
		autofree char *what = str_printf("%.256s: this key is there twice", key);

		return fail(r, -EINVAL, what, e);
	}
	*ret_key = str_copy(key);
	return 0;
}

static int read_member(struct reader *r, struct value *object, struct hw_err *e)
{
	autofree char *key = NULL;
	struct value *v = NULL;
	int result = read_key(r, object, &key, e);

	if (result < 0)
		return result;
	buf_printf(&r->path, "%s%s", r->path.len ? "." : "", key);
	look(r);
	result = count_member(r, e);
	if (result == 0)
		result = next(r, e);
	if (result == 0)
		result = read_node(r, &v, e);
	if (result == 0)
		value_set(object, key, v);
	return result;
}

static int read_object(struct reader *r, struct value *object, struct hw_err *e)
{
	size_t len = r->path.len;
	int result = next(r, e);

	while (result == 0 && r->event.type != YAML_MAPPING_END_EVENT) {
		result = read_member(r, object, e);
		leave(r, len);
		if (result == 0)
			result = next(r, e);
	}
	return result;
}

static int read_inside(struct reader *r, struct value *container, struct hw_err *e)
{
	bool list = r->event.type == YAML_SEQUENCE_START_EVENT;
	const yaml_char_t *tag =
		list ? r->event.data.sequence_start.tag : r->event.data.mapping_start.tag;
	int result = check_tag(r, tag, e);

	if (result < 0)
		return result;
	if (++r->depth > VALUE_DEPTH_MAX)
		return fail(r, -EFBIG, "too deep", e);
	result = list ? read_list(r, container, e) : read_object(r, container, e);
	r->depth--;
	return result;
}

/* The node that the last event begins. */
static int read_node(struct reader *r, struct value **ret_value, struct hw_err *e)
{
	AUTO(value_free) struct value *v = NULL;
	int result;

	if (r->event.type == YAML_ALIAS_EVENT)
		return fail(r, -EINVAL, "aliases are not taken", e);
	if (r->event.type == YAML_SCALAR_EVENT)
		return read_scalar(r, ret_value, e);
	v = r->event.type == YAML_SEQUENCE_START_EVENT ? value_new_array() : value_new_object();
	result = read_inside(r, v, e);
	if (result == 0)
		*ret_value = take_ptr(v);
	return result;
}

/* ---- documents -------------------------------------------------------------------------- */

/* Past events of no interest, to the first node or the end. */
static int next_node(struct reader *r, struct hw_err *e)
{
	int result;

	do
		result = next(r, e);
	while (result == 0 && (r->event.type == YAML_STREAM_START_EVENT ||
			       r->event.type == YAML_DOCUMENT_START_EVENT ||
			       r->event.type == YAML_DOCUMENT_END_EVENT));
	return result;
}

static int read_document(struct reader *r, struct value **ret_value, struct hw_err *e)
{
	AUTO(value_free) struct value *v = NULL;
	int result = next_node(r, e);

	if (result == 0 && r->event.type == YAML_STREAM_END_EVENT) {
		*ret_value = value_new_null();
		return 0;
	}
	if (result == 0)
		result = read_node(r, &v, e);
	if (result == 0)
		result = next_node(r, e);
	if (result < 0)
		return result;
	if (r->event.type != YAML_STREAM_END_EVENT)
		return fail(r, -EINVAL, "a second document", e);
	*ret_value = take_ptr(v);
	return 0;
}

/**
 * yml_parse() - one document
 * @text:      of @len bytes
 * @ret_value: the caller's reference
 * @e:         the error
 *
 * Return: 0; -EINVAL: not what is taken here; -EFBIG: too much of it
 */
int yml_parse(const char *text, size_t len, struct value **ret_value, struct hw_err *e)
{
	AUTO(reader_done) struct reader r;

	reader_init(&r, text, len);
	if (len > YML_SIZE_MAX)
		return err_text(e, -EFBIG, "more than %d bytes", YML_SIZE_MAX);
	return read_document(&r, ret_value, e);
}

/**
 * yml_line() - where the value is that a message is about
 * @text:    that yml_parse() has taken
 * @len:     of it
 * @message: begins with the value's path
 *
 * Return: the line, 1 if nothing of the path is there
 */
size_t yml_line(const char *text, size_t len, const char *message)
{
	AUTO(value_free) struct value *v = NULL;
	AUTO(reader_done) struct reader r;
	struct hw_err e;

	reader_init(&r, text, len);
	r.message = message;
	read_document(&r, &v, &e);
	return r.line;
}
