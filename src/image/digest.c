/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/digest.c - content addresses: "sha256:" and 64 hex digits
 */
#include "image/digest.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>

#include <sha2.h>

#include "base/mem.h"
#include "base/str.h"

/* What OCI registers, and sha384, which Go's go-digest takes too. */
static const struct {
	const char *prefix;
	size_t digits;
} algorithms[] = {
	{ "sha256:", 64 },
	{ "sha384:", 96 },
	{ "sha512:", 128 },
};

/**
 * digest_check() - is this a digest of an algorithm that is known?
 *
 * Upper case digits are refused: the same content would have two addresses.
 *
 * Return: 0, or -EINVAL with what is wrong
 */
int digest_check(const char *text, struct hw_err *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(algorithms); i++) {
		const char *digits = text + strlen(algorithms[i].prefix);

		if (!str_starts(text, algorithms[i].prefix))
			continue;
		if (strspn(digits, "0123456789abcdef") != strlen(digits))
			return err_text(e, -EINVAL, "digest \"%.160s\" is not in lower case hex",
					text);
		if (strlen(digits) != algorithms[i].digits)
			return err_text(e, -EINVAL,
					"digest \"%.160s\" has %zu digits instead of %zu", text,
					strlen(digits), algorithms[i].digits);
		return 0;
	}
	return err_text(e, -EINVAL, "digest \"%.160s\" is of an unknown algorithm", text);
}

/** digest_is_sha256() - is it one that digest_check() takes, and of that algorithm? */
bool digest_is_sha256(const char *text)
{
	struct hw_err e;

	return str_starts(text, "sha256:") && digest_check(text, &e) == 0;
}

/** digest_format() - a sum as text */
void digest_format(const uint8_t sum[DIGEST_SIZE], char ret_text[DIGEST_TEXT])
{
	char *p = ret_text + snprintf(ret_text, DIGEST_TEXT, "sha256:");

	for (size_t i = 0; i < DIGEST_SIZE; i++) {
		*p++ = "0123456789abcdef"[sum[i] >> 4];
		*p++ = "0123456789abcdef"[sum[i] & 15];
	}
	*p = '\0';
}

/** digest_of() - the SHA-256 digest of @len bytes at @data */
void digest_of(const void *data, size_t len, char ret_text[DIGEST_TEXT])
{
	uint8_t sum[DIGEST_SIZE];
	SHA2_CTX ctx;

	SHA256Init(&ctx);
	SHA256Update(&ctx, data, len);
	SHA256Final(sum, &ctx);
	digest_format(sum, ret_text);
}

/**
 * digest_chain() - the chain id of a layer on top of others (OCI config.md, "Layer ChainID")
 * @parent:  the chain id of what is below; NULL: nothing
 * @diff_id: of the layer, a SHA-256 digest
 */
void digest_chain(const char *parent, const char *diff_id, char ret_text[DIGEST_TEXT])
{
	autofree char *both = str_printf("%s %s", str_or(parent, ""), diff_id);

	if (parent)
		digest_of(both, strlen(both), ret_text);
	else
		snprintf(ret_text, DIGEST_TEXT, "%s", diff_id);
}
