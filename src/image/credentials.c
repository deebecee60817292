/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/credentials.c - credentials for a registry
 */
#include "image/credentials.h"

#include <errno.h>
#include <string.h>

#include "base/base64.h"
#include "base/str.h"

bool credentials_empty(const struct credentials *c)
{
	return str_empty(c->username) && str_empty(c->password) && str_empty(c->identity_token) &&
	       str_empty(c->registry_token);
}

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
	return colon ? 0 : err_text(e, -EINVAL, "\"auth\": expected base64 of USER:PASSWORD");
}

void credentials_done(struct credentials *c)
{
	str_wipe(c->username);
	str_wipe(c->password);
	str_wipe(c->identity_token);
	str_wipe(c->registry_token);
	*c = (struct credentials){ 0 };
}
