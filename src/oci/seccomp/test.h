/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/seccomp/test.h - helpers for unit tests of seccomp profiles
 */
#ifndef OCI_SECCOMP_TEST_H
#define OCI_SECCOMP_TEST_H

#include "base/str.h"
#include "oci/seccomp/profile.h"
#include "oci/spec/test.h"

#define NO_CAPABILITIES (&(const struct hw_strings){ 0 })

static inline struct profile_target target_with(const struct hw_strings *capabilities)
{
	return (struct profile_target){ profile_machine("amd64"), capabilities, "6.1.0-18-amd64" };
}

/* JSON with single quotes in place of double quotes */
static inline char *unquote(const char *json)
{
	char *text = str_copy(json);

	for (char *c = text; *c; c++)
		if (*c == '\'')
			*c = '"';
	return text;
}

static inline int decode(const char *json, struct profile *ret, struct hw_err *e)
{
	autofree char *text = unquote(json);

	return profile_decode(text, strlen(text), ret, e);
}

#endif
