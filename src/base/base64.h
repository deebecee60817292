/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/base64.h - bytes as text (RFC 4648 section 4, with padding)
 */
#ifndef BASE_BASE64_H
#define BASE_BASE64_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

char *base64_encode(const void *data, size_t len);
/* Return: false when the text is not what base64_encode() could have made */
bool base64_decode(const char *text, struct buf *ret_data);

#endif
