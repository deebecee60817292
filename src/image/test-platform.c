/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/test-platform.c - platforms: which image runs on which machine
 */
#include "image/platform.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/utsname.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include "base/str.h"

/* Parse "linux/arm/v7"; missing parts stay NULL. */
static struct platform parse_platform(const char *text)
{
	AUTO(hw_strings_free) struct hw_strings parts = { 0 };

	strings_split(text, '/', &parts);
	return (struct platform){
		.os = str_copy(parts.v[0]),
		.architecture = parts.n > 1 ? str_copy(parts.v[1]) : NULL,
		.variant = parts.n > 2 ? str_copy(parts.v[2]) : NULL,
	};
}

static int rank(const char *wanted, const char *offered)
{
	AUTO(platform_done) struct platform w = parse_platform(wanted), o = parse_platform(offered);

	return platform_rank(&w, &o);
}

static void test_order(void **state)
{
	static const struct {
		const char *wanted;
		const char *offered[12]; /* the best first */
	} v[] = {
		{ "linux/amd64", { "linux/amd64", "linux/386" } },
		{ "linux/amd64/v3",
		  { "linux/amd64/v3", "linux/amd64/v2", "linux/amd64/v1", "linux/386" } },
		{ "linux/arm64",
		  { "linux/arm64/v8", "linux/arm/v8", "linux/arm/v7", "linux/arm/v6",
		    "linux/arm/v5" } },
		{ "linux/arm64/v8.2",
		  { "linux/arm64/v8.2", "linux/arm64/v8.1", "linux/arm64", "linux/arm/v8" } },
		{ "linux/arm64/v9.1",
		  { "linux/arm64/v9.1", "linux/arm64/v9", "linux/arm64/v8.6", "linux/arm64/v8.5",
		    "linux/arm64/v8", "linux/arm/v7" } },
		{ "linux/arm", { "linux/arm/v7", "linux/arm/v6", "linux/arm/v5" } },
		{ "linux/arm/v6", { "linux/arm/v6", "linux/arm/v5" } },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		int last = -1;

		for (size_t j = 0; v[i].offered[j]; j++) {
			int r = rank(v[i].wanted, v[i].offered[j]);

			if (r <= last)
				fail_msg("%s on %s: got rank %d, want more than %d",
					 v[i].offered[j], v[i].wanted, r, last);
			last = r;
		}
		assert_int_equal(rank(v[i].wanted, v[i].offered[0]), 0);
	}
}

static void test_aliases(void **state)
{
	static const char *const same[][2] = {
		{ "linux/amd64", "linux/x86_64" },
		{ "linux/amd64", "Linux/AMD64/v1" },
		{ "linux/arm64", "linux/aarch64/v8" },
		{ "linux/arm64", "linux/arm64/8" },
		{ "linux/arm/v7", "linux/armhf" },
		{ "linux/arm/v6", "linux/armel" },
		{ "linux/386", "linux/i386" },
		{ "linux/riscv64", "linux/riscv64" },
		{ "linux/mips64le/hardfloat", "linux/mips64le/hardfloat" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(same); i++)
		assert_int_equal(rank(same[i][0], same[i][1]), 0);
}

static void test_mismatches(void **state)
{
	static const char *const none[][2] = {
		{ "linux/amd64", "windows/amd64" },
		{ "linux/amd64", "linux/arm64" },
		{ "linux/amd64", "linux/amd64/v2" },
		{ "linux/386", "linux/amd64" },
		{ "linux/arm64", "linux/arm64/v8.1" },
		{ "linux/arm64", "linux/arm64/v9" },
		{ "linux/arm64/v9", "linux/arm64/v8.6" },
		{ "linux/arm/v6", "linux/arm/v7" },
		{ "linux/arm", "linux/arm64" },
		{ "linux/arm", "linux/arm/v4" },
		{ "linux/amd64", "unknown/unknown" },
		{ "linux/amd64", "linux" },
		{ "linux/amd64", "" },
		{ "linux/amd64", "linux/amd64/fast" },
		{ "linux/riscv64", "linux/riscv64/x" },
		{ "linux/amd64", "linux/amd64/v2x" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(none); i++)
		if (rank(none[i][0], none[i][1]) != PLATFORM_NONE)
			fail_msg("%s matches %s", none[i][1], none[i][0]);
}

static void test_own(void **state)
{
	AUTO(platform_done) struct platform p = { 0 };
	struct utsname u;

	(void)state;
	platform_of_host(&p);
	assert_int_equal(uname(&u), 0);
	autofree char *text = platform_format(&p);
	if (str_equal(u.machine, "x86_64"))
		assert_string_equal(text, "linux/amd64");
	else if (str_equal(u.machine, "aarch64"))
		assert_string_equal(text, "linux/arm64");
	else
		assert_true(str_starts(text, "linux/"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "platform: the variant nearest to the machine's ranks best, an older "
		  "architecture ranks last",
		  test_order },
		{ "platform: all names of an architecture match each other", test_aliases },
		{ "platform: a newer variant or a different architecture does not match",
		  test_mismatches },
		{ "platform: the platform of this machine is detected", test_own },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
