/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/registry/challenge.c - how a registry wants to be convinced (WWW-Authenticate)
 *
 * How:   RFC 9110, section 11.6.1: a scheme, then NAME=VALUE or NAME="VALUE",
 *        parted by commas; a word that no "=" follows is the next scheme.
 */
#include "fetch/registry/challenge.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/str.h"

static bool is_token(char c)
{
	return isalnum((unsigned char)c) || (c && strchr("!#$%&'*+-.^_`|~", c));
}

static const char *skip_space(const char *s)
{
	return s + strspn(s, " \t,");
}

static char *take_token(const char **s)
{
	const char *start = *s;

	while (is_token(**s))
		(*s)++;
	return str_ncopy(start, (size_t)(*s - start));
}

static char *take_quoted(const char **s)
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

static char **member_of(struct challenge *c, const char *name)
{
	if (strcasecmp(name, "realm") == 0)
		return &c->realm;
	if (strcasecmp(name, "service") == 0)
		return &c->service;
	return strcasecmp(name, "scope") == 0 ? &c->scope : NULL;
}

static void take_parameter(struct challenge *c, const char *name, const char **s)
{
	char *value = **s == '"' ? take_quoted(s) : take_token(s);
	char **member = member_of(c, name);

	if (member) {
		free(*member);
		*member = value;
	} else {
		free(value);
	}
}

static enum challenge_kind kind_of(const char *scheme)
{
	if (strcasecmp(scheme, "Bearer") == 0)
		return CHALLENGE_BEARER;
	return strcasecmp(scheme, "Basic") == 0 ? CHALLENGE_BASIC : CHALLENGE_NONE;
}

/* Keep the better one. A Bearer without a realm is none. */
static void offer(struct challenge *best, struct challenge *c)
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

static void parse(const char *s, struct challenge *best)
{
	struct challenge c = { 0 };

	for (s = skip_space(s); *s; s = skip_space(s)) {
		autofree char *word = take_token(&s);
		const char *after = s + strspn(s, " \t");

		if (!*word)
			break;
		if (*after != '=') {
			offer(best, &c);
			c.kind = kind_of(word);
			continue;
		}
		s = after + 1 + strspn(after + 1, " \t");
		take_parameter(&c, word, &s);
	}
	offer(best, &c);
}

/** challenge_choose() - which of them to answer; kind CHALLENGE_NONE: none that we can */
void challenge_choose(const struct hw_strings *headers, struct challenge *ret_challenge)
{
	*ret_challenge = (struct challenge){ 0 };
	for (size_t i = 0; i < headers->n; i++)
		parse(headers->v[i], ret_challenge);
}

/** challenge_done() - free what it holds */
void challenge_done(struct challenge *c)
{
	free(c->realm);
	free(c->service);
	free(c->scope);
	*c = (struct challenge){ 0 };
}
