/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/base64.h - base64 encoding (RFC 4648 section 4, with padding)
 */
#ifndef BASE_BASE64_H
#define BASE_BASE64_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/* Return: the text, to be freed by the caller */
char *base64_encode(const void *data, size_t len);
/* Decodes canonical base64 only: white space, missing padding and non-zero bits after the last
 * byte are rejected. Return: false if the text is rejected, with *ret_data unchanged */
bool base64_decode(const char *text, struct buf *ret_data);

#endif
