/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/seccomp/fuzz-profile.c - fuzzer for seccomp profiles
 *
 * A profile whose conditions are decided has none left: its text is decoded and resolved to the same
 * text, for every container.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "oci/seccomp/profile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *list[] = { (char *)"CAP_SYS_ADMIN", (char *)"CAP_SYS_CHROOT" };
	const struct hw_strings some = { list, 2 }, none = { 0 };
	const struct profile_target target = { profile_machine("amd64"), &some, "6.1.0-1" };
	const struct profile_target other = { profile_machine("arm64"), &none, "5.12" };
	AUTO(profile_done) struct profile p = { 0 }, again = { 0 };
	autofree char *text = NULL, *same = NULL;
	struct hw_err e = { 0 };
	int r;

	r = profile_decode((const char *)data, size, &p, &e);
	if (r == 0)
		r = profile_resolve(&p, &target, &e);
	if (r < 0) {
		assert(e.code < 0 && e.msg[0]);
		return 0;
	}
	text = profile_encode(&p);
	if (strlen(text) > PROFILE_MAX) /* escapes may take more space than what they stand for */
		return 0;
	r = profile_decode(text, strlen(text), &again, &e);
	assert(r == 0);
	r = profile_resolve(&again, &other, &e);
	assert(r == 0);
	same = profile_encode(&again);
	assert(str_equal(text, same));
	return 0;
}
