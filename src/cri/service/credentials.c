/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/service/credentials.c - credentials for a registry from CRI and hawser.v1 requests
 */
#include "cri/service/credentials.h"

#include <errno.h>
#include <string.h>

#include "base/str.h"

#define LENGTH_MAX (64 << 10) /* of each field; a token has a few kilobytes */

/* @address: "https://index.docker.io/v1/", "registry:5000", "https://registry/v2", or not given */
static bool is_for_registry(const char *address, const struct reference *ref)
{
	autofree char *host = NULL;
	const char *scheme;

	if (str_empty(address))
		return true;
	scheme = strstr(address, "://");
	if (scheme)
		address = scheme + strlen("://");
	host = str_ncopy(address, strcspn(address, "/"));
	return str_equal(host, ref->domain) || str_equal(host, reference_host(ref)) ||
	       (str_equal(host, "index.docker.io") && str_equal(ref->domain, "docker.io"));
}

static int check_lengths(const struct credentials_given *given, struct hw_err *e)
{
	const struct {
		const char *field, *value;
	} all[] = {
		{ "username", given->username },
		{ "password", given->password },
		{ "auth", given->auth },
		{ "server_address", given->server_address },
		{ "identity_token", given->identity_token },
		{ "registry_token", given->registry_token },
	};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (strlen(str_or(all[i].value, "")) > LENGTH_MAX)
			return err_text(e, -EINVAL, "auth.%s: more than %d bytes", all[i].field,
					LENGTH_MAX);
	return 0;
}

int credentials_choose(const struct credentials_given *given, const struct reference *ref,
		       struct credentials *ret_credentials, struct hw_err *e)
{
	struct credentials c = { 0 };
	int r;

	r = check_lengths(given, e);
	if (r < 0)
		return r;
	if (!is_for_registry(given->server_address, ref)) {
		*ret_credentials = c;
		return 0;
	}
	if (!str_empty(given->username)) {
		c.username = str_copy(given->username);
		c.password = str_copy(str_or(given->password, ""));
	} else if (!str_empty(given->identity_token)) {
		c.identity_token = str_copy(given->identity_token);
	} else if (!str_empty(given->auth)) {
		r = credentials_decode(&c, given->auth, e);
	} else if (!str_empty(given->registry_token)) {
		c.registry_token = str_copy(given->registry_token);
	}
	if (r == 0)
		*ret_credentials = c;
	return r;
}
