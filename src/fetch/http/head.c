/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/http/head.c - what the head of an answer says
 *
 * How:   a line at a time, as libcurl calls. A status line begins anew: there may
 *        be several heads, a proxy's or "100 Continue" before the answer's own.
 *        Also here: what a status means as an error, with the registry's own
 *        words where it has some.
 */
#include "fetch/http/head.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/json/value.h"
#include "base/str.h"

#define CHALLENGES_MAX 8
#define LINE_MAX_TAKEN (16 << 10)
#define WORDS_MAX      300 /* of what a registry says */

/* ---- lines ----------------------------------------------------------------- */

static void take_type(struct http_response *a, const char *value)
{
	free(a->content_type);
	a->content_type = str_copy(value);
}

static void take_location(struct http_response *a, const char *value)
{
	free(a->location);
	a->location = str_copy(value);
}

static void take_challenge(struct http_response *a, const char *value)
{
	if (a->challenges.n < CHALLENGES_MAX)
		strings_add(&a->challenges, value);
}

static void take_length(struct http_response *a, const char *value)
{
	long long n;

	if (str_to_int64(value, 0, INT64_MAX, &n))
		a->length = n;
}

/* Seconds; a date, which is allowed too, counts as not said. */
static void take_retry(struct http_response *a, const char *value)
{
	long long n;

	if (str_to_int64(value, 0, INT32_MAX, &n))
		a->retry_after = (int)n;
}

/* Digits, and the character that follows them. */
static bool take_number(const char **s, char end, int64_t *ret_n)
{
	size_t len = strspn(*s, "0123456789");
	autofree char *digits = str_ncopy(*s, len);
	long long n;

	if ((*s)[len] != end || !str_to_int64(digits, 0, INT64_MAX, &n))
		return false;
	*s += len + 1;
	*ret_n = n;
	return true;
}

/* "bytes 0-99/1234" */
static void take_range(struct http_response *a, const char *value)
{
	int64_t from, to, total;

	if (!str_starts(value, "bytes "))
		return;
	value += strlen("bytes ");
	if (take_number(&value, '-', &from) && take_number(&value, '/', &to) &&
	    take_number(&value, '\0', &total) && to >= from && total > to) {
		a->from = from;
		a->total = total;
	}
}

static const struct {
	const char *name;
	void (*take)(struct http_response *a, const char *value);
} lines[] = {
	{ "content-type", take_type },	   { "location", take_location },
	{ "content-length", take_length }, { "www-authenticate", take_challenge },
	{ "retry-after", take_retry },	   { "content-range", take_range },
};

/** http_head_reset() - forget what was said so far */
void http_head_reset(struct http_response *a)
{
	bool remote = a->remote;

	http_response_done(a);
	*a = (struct http_response){
		.retry_after = -1, .length = -1, .from = -1, .total = -1, .remote = remote
	};
}

/* "HTTP/1.1 200 OK"; what is none stays 0, which is no status that anybody takes */
static void take_status(struct http_response *a, const char *line)
{
	autofree char *digits = NULL;
	long long n;

	line += strcspn(line, " ");
	line += strspn(line, " ");
	digits = str_ncopy(line, strcspn(line, " "));
	if (str_to_int64(digits, 100, 999, &n))
		a->status = (int)n;
}

/** http_head_line() - take a line, with its end */
void http_head_line(struct http_response *a, const char *line, size_t len)
{
	autofree char *text = NULL;
	char *value;

	while (len > 0 && isspace((unsigned char)line[len - 1]))
		len--;
	if (len > LINE_MAX_TAKEN)
		return;
	text = str_ncopy(line, len);
	if (str_starts(text, "HTTP/")) {
		http_head_reset(a);
		take_status(a, text);
		return;
	}
	value = strchr(text, ':');
	if (!value)
		return;
	*value++ = '\0';
	value += strspn(value, " \t");
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		if (strcasecmp(text, lines[i].name) == 0)
			lines[i].take(a, value);
}

/** http_response_done() - free what an answer holds */
void http_response_done(struct http_response *a)
{
	free(a->url);
	free(a->location);
	free(a->content_type);
	hw_strings_free(&a->challenges);
	buf_done(&a->body);
}

/* ---- errors ---------------------------------------------------------------- */

static const struct {
	int first, last, code;
} statuses[] = {
	{ 400, 400, -EINVAL },	{ 401, 401, -EKEYREJECTED }, { 403, 403, -EACCES },
	{ 404, 404, -ENODATA }, { 408, 408, -ECOMM },	     { 410, 410, -ENODATA },
	{ 429, 429, -EBUSY },	{ 451, 451, -EACCES },	     { 500, 599, -ECOMM },
};

/* {"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]} */
static void add_words(const struct http_response *a, struct buf *text)
{
	AUTO(value_free) struct value *v = NULL;
	struct hw_err ignored;
	const struct value *first;
	const char *words;

	if (a->body.len == 0 || value_parse(a->body.data, a->body.len, &v, &ignored) < 0)
		return;
	first = value_at(value_get(v, "errors"), 0);
	words = value_string(value_get(first ? first : v, "message"));
	if (words && *words)
		buf_printf(text, " (%.*s)", WORDS_MAX, words);
}

/**
 * http_status_error() - an answer as an error
 * @a: whose status is not 2xx
 *
 * Return: negative errno, see image/protocol/job.c for what it means; -EIO where there is none
 */
int http_status_error(const struct http_response *a, struct hw_err *e)
{
	AUTO(buf_done) struct buf text = { 0 };
	int r = -EIO;

	for (size_t i = 0; i < ARRAY_SIZE(statuses); i++)
		if (a->status >= statuses[i].first && a->status <= statuses[i].last)
			r = statuses[i].code;
	buf_printf(&text, "the server says %d", a->status);
	add_words(a, &text);
	return err_text(e, r, "%s", text.data);
}

/** http_may_retry() - may it go better the next time? */
bool http_may_retry(int r)
{
	return r == -ECOMM || r == -EBUSY;
}
