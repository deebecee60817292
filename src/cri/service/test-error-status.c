/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/service/test-error-status.c - gRPC status codes for the errors of a call
 */
#include "cri/service/error-status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include <errno.h>

#include "base/mem.h"
#include "rpc/grpc/status.h"

static void test_codes(void **state)
{
	static const struct {
		int code;
		enum status_code status;
		const char *msg;
	} cases[] = {
		{ -ECANCELED, STATUS_CANCELLED, "x" },
		{ -EINVAL, STATUS_INVALID_ARGUMENT, "x" },
		{ -ETIMEDOUT, STATUS_DEADLINE_EXCEEDED, "x" },
		{ -ENODATA, STATUS_NOT_FOUND, "x" },
		{ -EACCES, STATUS_PERMISSION_DENIED, "x" },
		{ -EUSERS, STATUS_RESOURCE_EXHAUSTED, "x" },
		{ -EBUSY, STATUS_FAILED_PRECONDITION, "x" },
		{ -ENOSPC, STATUS_RESOURCE_EXHAUSTED, "out of disk space: x" },
		{ -EDQUOT, STATUS_RESOURCE_EXHAUSTED, "out of disk space: x" },
		{ -EMFILE, STATUS_RESOURCE_EXHAUSTED, "x" },
		{ -ENFILE, STATUS_RESOURCE_EXHAUSTED, "x" },
		{ -EAGAIN, STATUS_RESOURCE_EXHAUSTED, "x" },
		{ -EFBIG, STATUS_FAILED_PRECONDITION, "x" },
		{ -EMSGSIZE, STATUS_RESOURCE_EXHAUSTED, "x" },
		{ -EPERM, STATUS_FAILED_PRECONDITION, "x" },
		{ -ENOKEY, STATUS_FAILED_PRECONDITION, "x" },
		{ -EOPNOTSUPP, STATUS_FAILED_PRECONDITION, "x" },
		{ -ECOMM, STATUS_UNAVAILABLE, "RegistryUnavailable: x" },
		{ -EPROTO, STATUS_UNAVAILABLE, "RegistryUnavailable: x" },
		{ -EBADMSG, STATUS_DATA_LOSS, "x" },
		{ -EKEYREJECTED, STATUS_UNAUTHENTICATED, "x" },
		{ -ENOENT, STATUS_INTERNAL, "x" },
		{ -EIO, STATUS_INTERNAL, "x" },
		{ -ENOMEM, STATUS_INTERNAL, "x" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct hw_err e;

		err_text(&e, cases[i].code, "x");
		error_status_set(&e);
		assert_int_equal(status_from_err(&e), cases[i].status);
		assert_int_equal(e.code, cases[i].code);
		assert_string_equal(e.msg, cases[i].msg);
	}
}

static void test_own_code(void **state)
{
	struct hw_err e;

	(void)state;
	status_set(&e, STATUS_UNIMPLEMENTED, "x");
	error_status_set(&e);
	assert_int_equal(status_from_err(&e), STATUS_UNIMPLEMENTED);
	assert_string_equal(e.msg, "x");
	err_text(&e, -ENOSPC, "x");
	error_status_set(&e);
	error_status_set(&e);
	assert_string_equal(e.msg, "out of disk space: x");
}

static void test_other_domain(void **state)
{
	struct hw_err e;

	(void)state;
	err_cni(&e, HW_CNI_INVALID_CONFIG, "x");
	error_status_set(&e);
	assert_int_equal(status_from_err(&e), STATUS_INVALID_ARGUMENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "error-status: each errno has the status code of its meaning", test_codes, NULL,
		  NULL, NULL },
		{ "error-status: an error keeps the status code that it has", test_own_code, NULL,
		  NULL, NULL },
		{ "error-status: a CNI code is not taken for a status code", test_other_domain,
		  NULL, NULL, NULL },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
