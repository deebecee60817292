/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/host-local/resolv.h - read resolv.conf into the dns of a result
 */
#ifndef PLUGINS_HOST_LOCAL_RESOLV_H
#define PLUGINS_HOST_LOCAL_RESOLV_H

#include <hawser/result.h>

#include "base/err.h"

/* Both functions append to @dns. resolv_parse() modifies @text. */
int resolv_read(const char *path, struct hw_dns *dns, struct hw_err *e);
void resolv_parse(char *text, struct hw_dns *dns);

#endif
