/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/http/head.c - parser of an HTTP response's header section
 *
 * How:   parses one line at a time, as libcurl delivers the lines. A status line discards the lines
 *        before it: the header section of a proxy or of "100 Continue" may precede that of the
 *        final response.
 */
#include "fetch/http/head.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"

#define CHALLENGES_MAX 8
#define LINE_LEN_MAX   (16 << 10) /* longer lines are ignored */

static void set_content_type(struct http_response *r, const char *value)
{
	free(r->content_type);
	r->content_type = str_copy(value);
}

static void set_location(struct http_response *r, const char *value)
{
	free(r->location);
	r->location = str_copy(value);
}

static void add_challenge(struct http_response *r, const char *value)
{
	if (r->challenges.n < CHALLENGES_MAX)
		strings_add(&r->challenges, value);
}

static void set_length(struct http_response *r, const char *value)
{
	long long n;

	if (str_to_int64(value, 0, INT64_MAX, &n))
		r->length = n;
}

/* Accepts only a number of seconds. A date, which HTTP also allows, is ignored. */
static void set_retry_after(struct http_response *r, const char *value)
{
	long long n;

	if (str_to_int64(value, 0, INT32_MAX, &n))
		r->retry_after = (int)n;
}

/* Parses digits and the character @end after them. */
static bool parse_number(const char **s, char end, int64_t *ret_n)
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
static void set_range(struct http_response *r, const char *value)
{
	int64_t first, last, total;

	if (!str_starts(value, "bytes "))
		return;
	value += strlen("bytes ");
	if (parse_number(&value, '-', &first) && parse_number(&value, '/', &last) &&
	    parse_number(&value, '\0', &total) && last >= first && total > last) {
		r->range_start = first;
		r->range_total = total;
	}
}

static const struct {
	const char *name;
	void (*set)(struct http_response *r, const char *value);
} fields[] = {
	{ "content-type", set_content_type }, { "location", set_location },
	{ "content-length", set_length },     { "www-authenticate", add_challenge },
	{ "retry-after", set_retry_after },   { "content-range", set_range },
};

void http_head_reset(struct http_response *r)
{
	http_response_done(r);
	*r = (struct http_response){
		.retry_after = -1, .length = -1, .range_start = -1, .range_total = -1
	};
}

void http_head_line(struct http_response *r, const char *line, size_t len)
{
	autofree char *text = NULL;
	char *value;
	long long n;

	while (len > 0 && isspace((unsigned char)line[len - 1]))
		len--;
	if (len > LINE_LEN_MAX)
		return;
	text = str_ncopy(line, len);
	/* "HTTP/1.1 200 OK"; a malformed status stays 0, which no caller accepts */
	if (str_starts(text, "HTTP/")) {
		http_head_reset(r);
		value = text + strcspn(text, " ");
		value += strspn(value, " ");
		value[strcspn(value, " ")] = '\0';
		if (str_to_int64(value, 100, 999, &n))
			r->status = (int)n;
		return;
	}
	value = strchr(text, ':');
	if (!value)
		return;
	*value++ = '\0';
	value += strspn(value, " \t");
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		if (strcasecmp(text, fields[i].name) == 0)
			fields[i].set(r, value);
}
