/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/tar/number.h - numbers as archives write them
 */
#ifndef FETCH_TAR_NUMBER_H
#define FETCH_TAR_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

bool tar_number(const uint8_t *field, size_t width, int64_t *ret_n); /* of a header */
bool tar_decimal(const char *s, size_t len, int64_t *ret_n);	     /* not negative */
bool tar_time(const char *s, size_t len, struct timespec *ret_time); /* "-1.5" */

#endif
