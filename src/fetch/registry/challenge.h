/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/registry/challenge.h - parser of WWW-Authenticate headers
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

/* Choose the challenge to respond to. Bearer takes precedence over Basic, since it sends the
 * password less often. The kind is CHALLENGE_NONE if no challenge is supported. */
void challenge_choose(const struct hw_strings *headers, struct challenge *ret_challenge);
void challenge_done(struct challenge *c);

AUTO_VALUE_DEFINE(challenge_done, struct challenge);

#endif
