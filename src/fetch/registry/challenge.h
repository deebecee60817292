/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/registry/challenge.h - WWW-Authenticate: how a registry wants to authenticate its clients
 */
#ifndef FETCH_REGISTRY_CHALLENGE_H
#define FETCH_REGISTRY_CHALLENGE_H

#include <hawser/field.h>

#include "base/mem.h"

enum challenge_kind {
	CHALLENGE_NONE,
	CHALLENGE_BASIC,
	CHALLENGE_BEARER,
};

struct challenge {
	enum challenge_kind kind;
	char *realm, *service, *scope; /* NULL: missing */
};

/* Choose the challenge to respond to: Bearer before Basic, since it sends the password less often.
 * kind is CHALLENGE_NONE if none is supported. */
void challenge_choose(const struct hw_strings *headers, struct challenge *ret_challenge);
void challenge_done(struct challenge *c);

AUTO_VALUE_DEFINE(challenge_done, struct challenge);

#endif
