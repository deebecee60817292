/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/errors.h - several errors that become one
 *
 * What:  for work that goes on after an error and tells all of them at its end,
 *        one per line. The code is that of the first.
 * Rules: starts zeroed, needs no end. What does not fit a struct hw_err is
 *        counted instead.
 */
#ifndef BASE_ERRORS_H
#define BASE_ERRORS_H

#include <stddef.h>

#include "base/err.h"

struct errors {
	size_t n, left_out;
	struct hw_err all;
};

void errors_add(struct errors *errors, const struct hw_err *e);
/* Return: 0 when there were none, else the code of the first and all of them in *e */
int errors_end(const struct errors *errors, struct hw_err *e);

#endif
