/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/digest.c - content digests: "sha256:" and 64 hex digits
 */
#include "image/digest.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>

#include <sha2.h>

#include "base/mem.h"
#include "base/str.h"

/* The algorithms that OCI registers, and sha384, which Go's go-digest accepts too. */
static const struct {
	const char *prefix;
	size_t digits;
} algorithms[] = {
	{ "sha256:", 64 },
	{ "sha384:", 96 },
	{ "sha512:", 128 },
};

int digest_check(const char *text, struct hw_err *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(algorithms); i++) {
		const char *digits = text + strlen(algorithms[i].prefix);

		if (!str_starts(text, algorithms[i].prefix))
			continue;
		if (strspn(digits, "0123456789abcdef") != strlen(digits))
			return err_text(e, -EINVAL, "digest \"%.160s\": want lower case hex digits",
					text);
		if (strlen(digits) != algorithms[i].digits)
			return err_text(e, -EINVAL,
					"digest \"%.160s\": got %zu hex digits, want %zu", text,
					strlen(digits), algorithms[i].digits);
		return 0;
	}
	return err_text(e, -EINVAL, "digest \"%.160s\": unknown algorithm", text);
}

bool digest_is_sha256(const char *text)
{
	struct hw_err e;

	return str_starts(text, "sha256:") && digest_check(text, &e) == 0;
}

void digest_format(const uint8_t sum[DIGEST_SIZE], char ret_text[DIGEST_TEXT])
{
	char *p = ret_text + snprintf(ret_text, DIGEST_TEXT, "sha256:");

	for (size_t i = 0; i < DIGEST_SIZE; i++) {
		*p++ = "0123456789abcdef"[sum[i] >> 4];
		*p++ = "0123456789abcdef"[sum[i] & 15];
	}
	*p = '\0';
}

void digest_of(const void *data, size_t len, char ret_text[DIGEST_TEXT])
{
	uint8_t sum[DIGEST_SIZE];
	SHA2_CTX ctx;

	SHA256Init(&ctx);
	SHA256Update(&ctx, data, len);
	SHA256Final(sum, &ctx);
	digest_format(sum, ret_text);
}

void digest_chain(const char *parent, const char *diff_id, char ret_text[DIGEST_TEXT])
{
	autofree char *both = str_printf("%s %s", str_or(parent, ""), diff_id);

	if (parent)
		digest_of(both, strlen(both), ret_text);
	else
		snprintf(ret_text, DIGEST_TEXT, "%s", diff_id);
}
