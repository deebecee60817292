/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/result.h - results from the inside
 *
 * Public functions are in <hawser/result.h>.
 */
#ifndef CNI_RESULT_H
#define CNI_RESULT_H

#include <hawser/result.h>

#include "base/err.h"
#include "base/mem.h"

/* The objects "dns" (struct hw_dns) and of "routes" (struct hw_route), also in configurations. */
extern const struct hw_field result_dns_fields[];
extern const struct hw_field result_route_fields[];

/* A plugin's prevResult: its version must be of the configuration's family. */
int result_parse_prev(const char *json, size_t len, const char *conf_version,
		      struct hw_result **ret_result, struct hw_err *e);

/* A copy as it is after being written in @version and read back: without what that cannot say. */
int result_convert(const struct hw_result *result, const char *version,
		   struct hw_result **ret_result, struct hw_err *e);

AUTO_DEFINE(hw_result_free, struct hw_result);

#endif
