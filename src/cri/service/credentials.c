/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/service/credentials.c - credentials for a registry from CRI and hawser.v1 requests
 */
#include "cri/service/credentials.h"

#include <string.h>

#include "base/str.h"

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

int credentials_choose(const struct credentials_given *given, const struct reference *ref,
		       struct credentials *ret_credentials, struct hw_err *e)
{
	struct credentials c = { 0 };
	int r = 0;

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
