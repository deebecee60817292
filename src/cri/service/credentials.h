/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/service/credentials.h - who asks a registry, as requests of CRI and hawser.v1 say it
 *
 * Rules: of several kinds that a request has one is used: name and password, then
 *        an identity token, then both in one text (auth), then a registry's token.
 *        What is for another host is as if it were not there.
 */
#ifndef CRI_SERVICE_CREDENTIALS_H
#define CRI_SERVICE_CREDENTIALS_H

#include "base/err.h"
#include "image/credentials.h"
#include "image/reference.h"

/* As the requests have it; "" or NULL: not given. */
struct credentials_given {
	const char *username, *password;
	const char *auth;	    /* base64 of username:password */
	const char *server_address; /* whom they are for; not given: whomever is asked */
	const char *identity_token, *registry_token;
};

int credentials_choose(const struct credentials_given *given, const struct reference *ref,
		       struct credentials *ret_credentials, struct hw_err *e);

#endif
