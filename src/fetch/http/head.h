/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/http/head.h - what the head of an answer says
 */
#ifndef FETCH_HTTP_HEAD_H
#define FETCH_HTTP_HEAD_H

#include <stddef.h>

#include "fetch/http/http.h"

void http_head_reset(struct http_response *a); /* also the body; not whom was asked */
void http_head_line(struct http_response *a, const char *line, size_t len);

#endif
