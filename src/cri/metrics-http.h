/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/metrics-http.h - GET /metrics, and nothing else, over HTTP/1
 *
 * Rules: for the loop's thread. A request is small and comes within ten seconds;
 *        every answer ends the connection; of more connections than CLIENTS_MAX the
 *        newest is closed.
 */
#ifndef CRI_METRICS_HTTP_H
#define CRI_METRICS_HTTP_H

#include "base/buf.h"
#include "base/err.h"

struct metrics_http;
struct uv_loop_s;

/* @fd: listens, and is ours from now on. @write: appends the metrics. */
int metrics_http_new(struct uv_loop_s *loop, int fd, void (*write)(void *ctx, struct buf *b),
		     void *ctx, struct metrics_http **ret_http, struct hw_err *e);
/* Its handles are closed by the loop, which frees it. */
void metrics_http_close(struct metrics_http *http);

/* The answer to a request whose head is complete: for tests. */
void metrics_http_answer(const char *head, void (*write)(void *ctx, struct buf *b), void *ctx,
			 struct buf *ret);

#endif
