/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/metrics-http.h - an HTTP/1 server for GET /metrics
 *
 * Rules: for the loop's thread. A request must be small and complete within ten
 *        seconds; the connection is closed after the response. Connections over
 *        CLIENTS_MAX are closed at once.
 */
#ifndef CRI_METRICS_HTTP_H
#define CRI_METRICS_HTTP_H

#include "base/buf.h"
#include "base/err.h"
#include "cri/config/config.h"

struct metrics_http;
struct uv_loop_s;

/* Listens on @address. A unix socket gets the mode and the owner in @owner. write() appends the
 * metrics to @b. */
int metrics_http_open(struct uv_loop_s *loop, const struct config_address *address,
		      const struct socket_owner *owner, void (*write)(void *ctx, struct buf *b),
		      void *ctx, struct metrics_http **ret_http, struct hw_err *e);
/* Closes all connections too. The loop frees the object when its handles are closed. NULL is
 * allowed. */
void metrics_http_close(struct metrics_http *http);

#endif
