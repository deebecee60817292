/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/http/head.h - parser of an HTTP response's header section
 */
#ifndef FETCH_HTTP_HEAD_H
#define FETCH_HTTP_HEAD_H

#include <stddef.h>

#include "fetch/http/http.h"

/* Clear the response, including its body. */
void http_head_reset(struct http_response *r);
/* Parse a line, with or without its line ending. Unknown and malformed lines are ignored. */
void http_head_line(struct http_response *r, const char *line, size_t len);

#endif
