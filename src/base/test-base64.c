/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/test-base64.c - base64 encoding and decoding
 */
#include "base/base64.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"

/* RFC 4648 section 10 */
static const char *const vectors[][2] = {
	{ "", "" },
	{ "f", "Zg==" },
	{ "fo", "Zm8=" },
	{ "foo", "Zm9v" },
	{ "foob", "Zm9vYg==" },
	{ "fooba", "Zm9vYmE=" },
	{ "foobar", "Zm9vYmFy" },
	{ "\xff\xef\xbe", "/+++" },
};

static void encodes_the_vectors(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(vectors); i++) {
		autofree char *text = base64_encode(vectors[i][0], strlen(vectors[i][0]));

		assert_string_equal(text, vectors[i][1]);
	}
}

static void decodes_the_vectors(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(vectors); i++) {
		AUTO(buf_done) struct buf b = { 0 };

		assert_true(base64_decode(vectors[i][1], &b));
		assert_int_equal(b.len, strlen(vectors[i][0]));
		if (b.len > 0)
			assert_memory_equal(b.data, vectors[i][0], b.len);
	}
}

static void keeps_every_byte(void **state)
{
	AUTO(buf_done) struct buf b = { 0 };
	autofree char *text = NULL;
	unsigned char all[256];

	(void)state;
	for (size_t i = 0; i < sizeof(all); i++)
		all[i] = i;
	text = base64_encode(all, sizeof(all));
	assert_true(base64_decode(text, &b));
	assert_int_equal(b.len, sizeof(all));
	assert_memory_equal(b.data, all, sizeof(all));
}

static void rejects_other_text(void **state)
{
	static const char *const wrong[] = {
		"Z",	    "Zg",	 "Zg=",	 "Zg==Zg==", "Z===", "====", "Zm9v\n",
		"Zm 9v===", "Zm9v\nZm9", "Zm-_", "Zh==",     "Zm9=", "=m9v", "Zm=v",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct buf b = { 0 };

		if (base64_decode(wrong[i], &b))
			fail_msg("\"%s\" was decoded", wrong[i]);
		assert_null(b.data);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "base64: the test vectors of RFC 4648 are encoded", encodes_the_vectors },
		{ "base64: the test vectors of RFC 4648 are decoded", decodes_the_vectors },
		{ "base64: encoding and decoding preserve all byte values", keeps_every_byte },
		{ "base64: missing padding, white space and other invalid text are rejected",
		  rejects_other_text },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
