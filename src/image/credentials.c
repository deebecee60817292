/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/credentials.c - who somebody is to a registry
 */
#include "image/credentials.h"

#include <errno.h>
#include <string.h>

#include "base/base64.h"
#include "base/str.h"

/** credentials_empty() - nobody in particular */
bool credentials_empty(const struct credentials *c)
{
	return str_empty(c->username) && str_empty(c->password) && str_empty(c->identity_token) &&
	       str_empty(c->registry_token);
}

/**
 * credentials_decode() - name and password of one text
 * @c:    had none
 * @auth: base64 of "username:password"; some put NULs behind it
 *
 * Return: 0; -EINVAL: it is something else
 */
int credentials_decode(struct credentials *c, const char *auth, struct hw_err *e)
{
	AUTO(buf_done) struct buf text = { 0 };
	const char *colon = NULL;

	if (base64_decode(auth, &text) && text.data)
		colon = strchr(text.data, ':');
	if (colon) {
		c->username = str_ncopy(text.data, (size_t)(colon - text.data));
		c->password = str_copy(colon + 1);
	}
	if (text.data)
		explicit_bzero(text.data, text.len);
	return colon ? 0 : err_text(e, -EINVAL, "\"auth\" is not base64 of USER:PASSWORD");
}

static void forget(char *secret)
{
	if (secret)
		explicit_bzero(secret, strlen(secret));
	free(secret);
}

/** credentials_done() - free and forget */
void credentials_done(struct credentials *c)
{
	forget(c->username);
	forget(c->password);
	forget(c->identity_token);
	forget(c->registry_token);
	*c = (struct credentials){ 0 };
}
