/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/registry/challenge.c - parser of WWW-Authenticate headers
 *
 * How:   RFC 9110, section 11.6.1: a scheme, then NAME=VALUE or NAME="VALUE", separated by commas;
 *        a word without "=" after it is the next scheme.
 */
#include "fetch/registry/challenge.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/str.h"

#define SEPARATORS " \t,"

static char *parse_token(const char **s)
{
	const char *start = *s;

	while (isalnum((unsigned char)**s) || (**s && strchr("!#$%&'*+-.^_`|~", **s)))
		(*s)++;
	return str_ncopy(start, (size_t)(*s - start));
}

static char *parse_quoted(const char **s)
{
	AUTO(buf_done) struct buf b = { 0 };
	const char *p = *s + 1;

	for (; *p && *p != '"'; p++) {
		if (*p == '\\' && p[1])
			p++;
		buf_putc(&b, *p);
	}
	*s = *p ? p + 1 : p;
	return buf_take(&b);
}

/* Unknown parameters are ignored. */
static void parse_parameter(struct challenge *c, const char *name, const char **s)
{
	const struct {
		const char *name;
		char **value;
	} known[] = { { "realm", &c->realm }, { "service", &c->service }, { "scope", &c->scope } };
	autofree char *value = **s == '"' ? parse_quoted(s) : parse_token(s);

	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		if (strcasecmp(name, known[i].name) == 0) {
			free(*known[i].value);
			*known[i].value = take_ptr(value);
		}
	}
}

/* Moves @c to @best if @c is better, then clears @c. A Bearer challenge needs a realm. */
static void replace_if_better(struct challenge *best, struct challenge *c)
{
	bool usable = c->kind == CHALLENGE_BASIC || !str_empty(c->realm);

	if (c->kind > best->kind && usable) {
		challenge_done(best);
		best->kind = c->kind;
		best->realm = take_ptr(c->realm);
		best->service = take_ptr(c->service);
		best->scope = take_ptr(c->scope);
	}
	challenge_done(c);
}

static void parse_header(const char *s, struct challenge *best)
{
	struct challenge c = { 0 };

	for (s += strspn(s, SEPARATORS); *s; s += strspn(s, SEPARATORS)) {
		autofree char *word = parse_token(&s);
		const char *after = s + strspn(s, " \t");

		if (!*word)
			break;
		if (*after != '=') {
			replace_if_better(best, &c);
			c.kind = strcasecmp(word, "Bearer") == 0  ? CHALLENGE_BEARER
				 : strcasecmp(word, "Basic") == 0 ? CHALLENGE_BASIC
								  : CHALLENGE_NONE;
			continue;
		}
		s = after + 1 + strspn(after + 1, " \t");
		parse_parameter(&c, word, &s);
	}
	replace_if_better(best, &c);
}

void challenge_choose(const struct hw_strings *headers, struct challenge *ret_challenge)
{
	*ret_challenge = (struct challenge){ 0 };
	for (size_t i = 0; i < headers->n; i++)
		parse_header(headers->v[i], ret_challenge);
}

void challenge_done(struct challenge *c)
{
	free(c->realm);
	free(c->service);
	free(c->scope);
	*c = (struct challenge){ 0 };
}
