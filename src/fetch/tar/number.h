/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/tar/number.h - numbers and times in tar archives
 *
 * Rules: each function returns false if the text is malformed or the value does not fit into 64
 *        bits.
 */
#ifndef FETCH_TAR_NUMBER_H
#define FETCH_TAR_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* Parse a header field: octal, or base 256, which may be negative. A blank field is 0. */
bool tar_number(const uint8_t *field, size_t width, int64_t *ret_n);
/* Parse a decimal number: one or more digits and nothing else. */
bool tar_decimal(const char *s, size_t len, int64_t *ret_n);
/* Parse decimal seconds, with an optional minus sign and fraction: "-1.5". */
bool tar_time(const char *s, size_t len, struct timespec *ret_time);

#endif
