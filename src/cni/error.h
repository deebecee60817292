/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/error.h - the error object that a plugin prints, both ways
 */
#ifndef CNI_ERROR_H
#define CNI_ERROR_H

#include <stddef.h>

#include "base/err.h"

/* Return: 0 and *ret_err is the plugin's error; -EINVAL when the text is not an error object */
int error_parse(const char *json, size_t len, struct hw_err *ret_err, struct hw_err *e);
char *error_format(const struct hw_err *err); /* four spaces, no newline at the end */

#endif
