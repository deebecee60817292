/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/json/yaml.c - YAML parsed into the values of base/json/value.h
 *
 * How:   recursive descent over libyaml's events, at most VALUE_DEPTH_MAX deep. The
 *        path of the current node is stored as text, in the same format as in the
 *        messages of base/json/field.h. To find the line of an error, yml_line()
 *        parses the document again and compares the paths with the message, so no
 *        line numbers need to be stored.
 */
#include "base/json/yaml.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include <yaml.h>

#include "base/buf.h"
#include "base/str.h"

struct yaml_reader {
	yaml_parser_t parser;
	yaml_event_t event; /* the current event */
	size_t count;	    /* members of all arrays and objects */
	unsigned depth;
	struct buf path;     /* path of the current node */
	const char *message; /* in yml_line(): the error message; else NULL */
	size_t best;	     /* length of the longest path so far that the message begins with */
	size_t line;	     /* line of the node with that path */
};

static void reader_init(struct yaml_reader *r, const char *text, size_t len)
{
	*r = (struct yaml_reader){ .line = 1 };
	if (!yaml_parser_initialize(&r->parser))
		mem_exhausted();
	yaml_parser_set_encoding(&r->parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&r->parser, (const unsigned char *)text, len);
}

static void reader_done(struct yaml_reader *r)
{
	yaml_event_delete(&r->event);
	yaml_parser_delete(&r->parser);
	buf_done(&r->path);
}

AUTO_VALUE_DEFINE(reader_done, struct yaml_reader);

static int fail_at(const yaml_mark_t *mark, int code, const char *problem, struct hw_err *e)
{
	return err_text(e, code, "line %zu, column %zu: %s", mark->line + 1, mark->column + 1,
			problem);
}

static int fail(const struct yaml_reader *r, int code, const char *problem, struct hw_err *e)
{
	return fail_at(&r->event.start_mark, code, problem, e);
}

static int next_event(struct yaml_reader *r, struct hw_err *e)
{
	yaml_event_delete(&r->event);
	if (yaml_parser_parse(&r->parser, &r->event))
		return 0;
	memset(&r->event, 0, sizeof(r->event));
	if (r->parser.error == YAML_MEMORY_ERROR)
		mem_exhausted();
	return fail_at(&r->parser.problem_mark, -EINVAL,
		       str_or(r->parser.problem, "malformed YAML"), e);
}

/* ---- scalars -------------------------------------------------------------------------- */

static bool is_one_of(const char *text, const char *const *words)
{
	for (; *words; words++)
		if (strcmp(text, *words) == 0)
			return true;
	return false;
}

static struct value *value_from_plain(const char *text)
{
	static const char *const nulls[] = { "", "~", "null", "Null", "NULL", NULL };
	static const char *const trues[] = { "true", "True", "TRUE", NULL };
	static const char *const falses[] = { "false", "False", "FALSE", NULL };
	const char *digits = text + (*text == '-');
	long long n;

	if (is_one_of(text, nulls))
		return value_new_null();
	if (is_one_of(text, trues) || is_one_of(text, falses))
		return value_new_bool(is_one_of(text, trues));
	/* a number with a leading zero is a string: some parsers read 010 as octal */
	if ((*digits != '0' || !digits[1]) && str_to_int64(text, INT64_MIN, INT64_MAX, &n))
		return value_new_int(n);
	return value_new_string(text);
}

static int check_tag(const struct yaml_reader *r, const yaml_char_t *tag, struct hw_err *e)
{
	if (!tag || str_equal((const char *)tag, YAML_STR_TAG) || str_equal((const char *)tag, "!"))
		return 0;
	return fail(r, -EINVAL, "tags are not supported", e);
}

static int check_scalar(const struct yaml_reader *r, struct hw_err *e)
{
	if (memchr(r->event.data.scalar.value, '\0', r->event.data.scalar.length))
		return fail(r, -EINVAL, "NUL character in text", e);
	return check_tag(r, r->event.data.scalar.tag, e);
}

/* ---- lists and objects ------------------------------------------------------------------ */

/* Stores the line of the current node if the message begins with the path of the node. */
static void match_message(struct yaml_reader *r)
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

static int read_node(struct yaml_reader *r, struct value **ret_value, struct hw_err *e);

static int count_member(struct yaml_reader *r, struct hw_err *e)
{
	return ++r->count > VALUE_COUNT_MAX ? fail(r, -EFBIG, "too many members", e) : 0;
}

static void truncate_path(struct yaml_reader *r, size_t len)
{
	r->path.len = len;
	if (r->path.data)
		r->path.data[len] = '\0';
}

static int read_list(struct yaml_reader *r, struct value *list, struct hw_err *e)
{
	size_t len = r->path.len;
	int result;

	result = next_event(r, e);
	while (result == 0 && r->event.type != YAML_SEQUENCE_END_EVENT) {
		struct value *v = NULL;

		buf_printf(&r->path, "[%zu]", value_count(list));
		match_message(r);
		result = count_member(r, e);
		if (result == 0)
			result = read_node(r, &v, e);
		truncate_path(r, len);
		if (result < 0)
			break;
		value_append(list, v);
		result = next_event(r, e);
	}
	return result;
}

static int read_member(struct yaml_reader *r, struct value *object, struct hw_err *e)
{
	autofree char *key = NULL;
	struct value *v = NULL;
	int result;

	if (r->event.type != YAML_SCALAR_EVENT)
		return fail(r, -EINVAL, "key must be a string", e);
	result = check_scalar(r, e);
	if (result < 0)
		return result;
	key = str_copy((const char *)r->event.data.scalar.value);
	if (value_get(object, key)) {
		autofree char *problem = str_printf("duplicate key %.256s", key);

		return fail(r, -EINVAL, problem, e);
	}
	buf_printf(&r->path, "%s%s", r->path.len ? "." : "", key);
	match_message(r);
	result = count_member(r, e);
	if (result == 0)
		result = next_event(r, e);
	if (result == 0)
		result = read_node(r, &v, e);
	if (result == 0)
		value_set(object, key, v);
	return result;
}

static int read_object(struct yaml_reader *r, struct value *object, struct hw_err *e)
{
	size_t len = r->path.len;
	int result;

	result = next_event(r, e);
	while (result == 0 && r->event.type != YAML_MAPPING_END_EVENT) {
		result = read_member(r, object, e);
		truncate_path(r, len);
		if (result == 0)
			result = next_event(r, e);
	}
	return result;
}

/* Reads the node that begins with the current event. */
static int read_node(struct yaml_reader *r, struct value **ret_value, struct hw_err *e)
{
	AUTO(value_free) struct value *v = NULL;
	bool is_list = r->event.type == YAML_SEQUENCE_START_EVENT;
	int result;

	if (r->event.type == YAML_ALIAS_EVENT)
		return fail(r, -EINVAL, "aliases are not supported", e);
	if (r->event.type == YAML_SCALAR_EVENT) {
		const char *text = (const char *)r->event.data.scalar.value;

		result = check_scalar(r, e);
		if (result < 0)
			return result;
		*ret_value = r->event.data.scalar.plain_implicit ? value_from_plain(text)
								 : value_new_string(text);
		return 0;
	}
	result = check_tag(
		r, is_list ? r->event.data.sequence_start.tag : r->event.data.mapping_start.tag, e);
	if (result < 0)
		return result;
	if (++r->depth > VALUE_DEPTH_MAX)
		return fail(r, -EFBIG, "nested too deeply", e);
	v = is_list ? value_new_array() : value_new_object();
	result = is_list ? read_list(r, v, e) : read_object(r, v, e);
	r->depth--;
	if (result < 0)
		return result;
	*ret_value = take_ptr(v);
	return 0;
}

/* ---- documents -------------------------------------------------------------------------- */

/* Skips events up to the next beginning of a node or the end of the stream. */
static int next_node(struct yaml_reader *r, struct hw_err *e)
{
	int result;

	do
		result = next_event(r, e);
	while (result == 0 && (r->event.type == YAML_STREAM_START_EVENT ||
			       r->event.type == YAML_DOCUMENT_START_EVENT ||
			       r->event.type == YAML_DOCUMENT_END_EVENT));
	return result;
}

static int read_document(struct yaml_reader *r, struct value **ret_value, struct hw_err *e)
{
	AUTO(value_free) struct value *v = NULL;
	int result;

	result = next_node(r, e);
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
		return fail(r, -EINVAL, "more than one document", e);
	*ret_value = take_ptr(v);
	return 0;
}

/* libyaml reads these characters as line breaks, as YAML 1.1 says. In YAML 1.2 and in JSON they are
 * ordinary characters, so a text that contains them has two meanings. */
static int check_line_breaks(const char *text, size_t len, struct hw_err *e)
{
	static const struct {
		const char *bytes, *problem;
	} breaks[] = {
		{ "\xc2\x85", "U+0085 must be written as \\N" },
		{ "\xe2\x80\xa8", "U+2028 must be written as \\L" },
		{ "\xe2\x80\xa9", "U+2029 must be written as \\P" },
	};
	yaml_mark_t at = { 0 };

	for (size_t i = 0; i < len; i++) {
		for (size_t k = 0; k < ARRAY_SIZE(breaks); k++) {
			size_t n = strlen(breaks[k].bytes);

			if (n <= len - i && memcmp(text + i, breaks[k].bytes, n) == 0)
				return fail_at(&at, -EINVAL, breaks[k].problem, e);
		}
		at.column += (text[i] & 0xc0) != 0x80; /* not for a continuation byte */
		if (text[i] == '\n' || (text[i] == '\r' && (i + 1 == len || text[i + 1] != '\n')))
			at = (yaml_mark_t){ .line = at.line + 1 };
	}
	return 0;
}

int yml_parse(const char *text, size_t len, struct value **ret_value, struct hw_err *e)
{
	AUTO(reader_done) struct yaml_reader r;
	int result;

	reader_init(&r, text, len);
	if (len > YML_SIZE_MAX)
		return err_text(e, -EFBIG, "YAML is larger than %d bytes", YML_SIZE_MAX);
	result = check_line_breaks(text, len, e);
	return result < 0 ? result : read_document(&r, ret_value, e);
}

size_t yml_line(const char *text, size_t len, const char *message)
{
	AUTO(value_free) struct value *v = NULL;
	AUTO(reader_done) struct yaml_reader r;
	struct hw_err e;

	reader_init(&r, text, len);
	r.message = message;
	read_document(&r, &v, &e);
	return r.line;
}
