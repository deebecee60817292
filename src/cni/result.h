/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/result.h - internal functions for CNI results
 *
 * The public functions are in <hawser/result.h>.
 */
#ifndef CNI_RESULT_H
#define CNI_RESULT_H

#include <hawser/result.h>

#include "base/err.h"
#include "base/mem.h"

/* The object "dns" (struct hw_dns) and the entries of "routes" (struct hw_route), which plugins'
 * configurations also use. */
extern const struct hw_field result_dns_fields[];
extern const struct hw_field result_route_fields[];

/*
 * Parses the prevResult of a plugin's configuration.
 * @conf_version: cniVersion of the configuration, assumed if the result has none; otherwise both must
 *                be of one family
 *
 * Return: 0, or -EINVAL with "could not parse prevResult: ..."
 */
int result_parse_prev(const char *json, size_t len, const char *conf_version,
		      struct hw_result **ret_result, struct hw_err *e);

/*
 * Copies a result, formatting it in @version (NULL or "": 0.1.0) and parsing it again: what @version
 * cannot express is dropped.
 *
 * Return: 0, or -EINVAL as hw_result_format()
 */
int result_convert(const struct hw_result *result, const char *version,
		   struct hw_result **ret_result, struct hw_err *e);

AUTO_DEFINE(hw_result_free, struct hw_result);

#endif
