/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/base64.c - base64 encoding (RFC 4648 section 4, with padding)
 */
#include "base/base64.h"

#include <stdint.h>
#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

char *base64_encode(const void *data, size_t len)
{
	AUTO(buf_done) struct buf b = { 0 };
	const unsigned char *in = data;

	for (size_t i = 0; i < len; i += 3) {
		size_t left = len - i;
		uint32_t bits = (uint32_t)in[i] << 16 | (left > 1 ? in[i + 1] : 0U) << 8 |
				(left > 2 ? in[i + 2] : 0U);

		buf_putc(&b, digits[bits >> 18]);
		buf_putc(&b, digits[bits >> 12 & 63]);
		buf_putc(&b, left > 1 ? digits[bits >> 6 & 63] : '=');
		buf_putc(&b, left > 2 ? digits[bits & 63] : '=');
	}
	return buf_take(&b);
}

/* Decodes four characters. Return: the number of bytes, 1 to 3; 0 if the characters are invalid */
static size_t decode_quad(const char *in, bool last, unsigned char out[3])
{
	size_t n = last && in[3] == '=' ? (in[2] == '=' ? 1 : 2) : 3;
	uint32_t bits = 0;

	for (size_t i = 0; i < n + 1; i++) {
		const char *digit;

		digit = strchr(digits, in[i]);
		if (!digit)
			return 0;
		bits |= (uint32_t)(digit - digits) << (18 - 6 * i);
	}
	if (bits & (0xffffffU >> 8 * n))
		return 0;
	for (size_t i = 0; i < n; i++)
		out[i] = bits >> (16 - 8 * i);
	return n;
}

bool base64_decode(const char *text, struct buf *ret_data)
{
	AUTO(buf_done) struct buf b = { 0 };
	size_t len = strlen(text);

	if (len % 4 != 0)
		return false;
	for (size_t i = 0; i < len; i += 4) {
		unsigned char out[3];
		size_t n = decode_quad(text + i, i + 4 == len, out);

		if (n == 0)
			return false;
		buf_add(&b, out, n);
	}
	*ret_data = b;
	b = (struct buf){ 0 };
	return true;
}
