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
 * @conf_version: cniVersion of the configuration. If the result has no cniVersion, it is parsed as
 *                this version; else both versions must be of the same family
 *
 * Return: 0, or -EINVAL with "could not parse prevResult: ..."
 */
int result_parse_prev(const char *json, size_t len, const char *conf_version,
		      struct hw_result **ret_result, struct hw_err *e);

/*
 * Copies a result by formatting it in @version (NULL or "": 0.1.0) and parsing it again. Members
 * that @version does not have are dropped.
 *
 * Return: 0, or -EINVAL in the same cases as hw_result_format()
 */
int result_convert(const struct hw_result *result, const char *version,
		   struct hw_result **ret_result, struct hw_err *e);

AUTO_DEFINE(hw_result_free, struct hw_result);

#endif
