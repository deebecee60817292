/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/os/test-boot.c - tests of base/os/boot.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include <string.h>

#include "base/os/boot.h"

static void boot_id_is_uuid(void **state)
{
	(void)state;
	assert_int_equal(strlen(boot_id()), BOOT_ID - 1);
	assert_int_equal(strspn(boot_id(), "0123456789abcdef-"), BOOT_ID - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "boot: the boot ID is a UUID", boot_id_is_uuid, NULL, NULL, NULL },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
