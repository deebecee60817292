/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/error.h - CNI error objects as JSON
 */
#ifndef CNI_ERROR_H
#define CNI_ERROR_H

#include <stddef.h>

#include "base/err.h"

/*
 * Parses what a failed plugin printed on standard output. *ret_err is the plugin's error, in the CNI
 * domain.
 *
 * Return: 0, or -EINVAL with the reason in *e if the text is not an error object
 */
int error_parse(const char *json, size_t len, struct hw_err *ret_err, struct hw_err *e);
/*
 * Return: the error object as a plugin prints it, indented by four spaces and without a final newline;
 * freed by the caller
 */
char *error_format(const struct hw_err *err);

#endif
