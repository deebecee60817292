/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/host-local/resolv.h - a resolv.conf as a result's dns
 */
#ifndef PLUGINS_HOST_LOCAL_RESOLV_H
#define PLUGINS_HOST_LOCAL_RESOLV_H

#include <hawser/result.h>

#include "base/err.h"

/* Adds to @dns. */
int resolv_read(const char *path, struct hw_dns *dns, struct hw_err *e);
void resolv_parse(char *text, struct hw_dns *dns); /* which is cut into words */

#endif
