/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/service/credentials.h - credentials for a registry from CRI and hawser.v1 requests
 *
 * Rules: a request may have several kinds of credentials. The first kind in this order is
 *        used: username and password, identity token, auth, registry token.
 *        Credentials for another registry are ignored.
 */
#ifndef CRI_SERVICE_CREDENTIALS_H
#define CRI_SERVICE_CREDENTIALS_H

#include "base/err.h"
#include "image/credentials.h"
#include "image/reference.h"

/* The fields of a request; "" or NULL if not given. */
struct credentials_given {
	const char *username, *password;
	const char *auth;	    /* base64 of username:password */
	const char *server_address; /* registry that they are for; not given: any registry */
	const char *identity_token, *registry_token;
};

/* @ref is the image to pull. *ret_credentials is empty if no credentials apply; the caller frees
 * it with credentials_done(). Return: 0, or -EINVAL if auth is malformed or a
 * field is too long */
int credentials_choose(const struct credentials_given *given, const struct reference *ref,
		       struct credentials *ret_credentials, struct hw_err *e);

#endif
