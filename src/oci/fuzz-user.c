/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/fuzz-user.c - fuzzer for passwd and group of an image
 *
 * The input is the request, passwd and group, separated by NULs: a user in the form of an image, or a name
 * after "@". The groups of a user that is found are different, and the first one is its own.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "oci/user.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct user *u)
{
	const uint32_t *groups = u->groups.v;

	assert(u->uid != UINT32_MAX && u->gid != UINT32_MAX && u->home[0] == '/');
	assert(u->groups.n >= 1 && u->groups.n <= USER_GROUPS_MAX && groups[0] == u->gid);
	for (size_t i = 0; i < u->groups.n; i++)
		for (size_t k = 0; k < i; k++)
			assert(groups[i] != groups[k]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint32_t some[] = { 7, 1000, 7 };
	const char *part[3] = { "", "", "" };
	autofree char *text = mem_new(size + 1);
	struct user_request request = { .groups = some, .n_groups = 3 };
	AUTO(user_done) struct user u = { 0 }, strict = { 0 };
	struct hw_err e = { 0 };
	size_t at = 0;

	memcpy(text, data, size);
	for (size_t i = 0; i < 3 && at < size; i++) {
		part[i] = text + at;
		at += strlen(part[i]) + 1;
	}
	if (*part[0] == '@')
		request.name = part[0] + 1;
	else
		request.image = part[0];
	if (user_resolve(part[1], part[2], &request, &u, &e) < 0) {
		assert(e.code < 0 && e.msg[0]);
		return 0;
	}
	check(&u);
	request.strict = true;
	assert(user_resolve(part[1], part[2], &request, &strict, &e) == 0);
	check(&strict);
	assert(strict.uid == u.uid && strict.gid == u.gid && strict.groups.n <= u.groups.n);
	return 0;
}
