/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/http/secrets.c - secrets that no error may contain
 *
 * How:   all copies are found before one is replaced, because a secret may contain another one, or overlap
 *        with it.
 */
#include "fetch/http/secrets.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"

void secrets_add(struct secrets *s, const char *secret)
{
	if (!secret || strlen(secret) < SECRETS_MIN)
		return;
	assert(s->n < SECRETS_MAX);
	s->v[s->n++] = str_copy(secret);
}

void secrets_done(struct secrets *s)
{
	for (size_t i = 0; i < s->n; i++)
		str_wipe(s->v[i]);
	*s = (struct secrets){ 0 };
}

static void find(const char *secret, const char *text, bool *hidden)
{
	for (const char *at = text; (at = strstr(at, secret)); at++)
		memset(hidden + (at - text), true, strlen(secret));
}

char *secrets_hide(const struct secrets *s, const char *text)
{
	size_t len = strlen(text);
	autofree bool *hidden = mem_new((len + 1) * sizeof(*hidden));
	AUTO(buf_done) struct buf shown = { 0 };

	for (size_t i = 0; i < s->n; i++)
		find(s->v[i], text, hidden);
	for (size_t i = 0; i < len; i++) {
		if (!hidden[i])
			buf_putc(&shown, text[i]);
		else if (!hidden[i + 1])
			buf_puts(&shown, "[...]");
	}
	return buf_take(&shown);
}

static void hide_in(const struct secrets *s, char *text, size_t size)
{
	autofree char *shown = secrets_hide(s, text);

	snprintf(text, size, "%s", str_or(shown, ""));
}

void secrets_hide_in(const struct secrets *s, struct hw_err *e)
{
	if (s->n == 0)
		return;
	hide_in(s, e->msg, sizeof(e->msg));
	hide_in(s, e->details, sizeof(e->details));
}
