/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/daemon-metrics.c - what Prometheus is told of the daemon
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "base/str.h"
#include "cri/daemon-parts.h"
#include "image/pull/pull.h"
#include "rpc/socket.h"

static void write_metrics(void *ctx, struct buf *b)
{
	struct daemon *d = ctx;
	AUTO(store_snapshot_put) const struct store_snapshot *images = store_snapshot_get(d->store);
	struct rpc_stats stats = rpc_server_stats(d->server);
	struct store_usage usage;
	struct pull_counts pulls;

	store_usage(d->store, &usage);
	pull_counts(d->puller, &pulls);
	metrics_calls(d->metrics, b);
	metrics_number(b, "hawser_cri_connections", "gauge", "Clients.", stats.connections);
	metrics_number(b, "hawser_cri_calls", "gauge", "Calls that are served.", stats.calls);
	metrics_number(b, "hawser_cri_long_calls", "gauge", "Long ones of these.",
		       stats.long_calls);
	metrics_number(b, "hawser_pulls_total", "counter", "Pulls that ended well.",
		       (int64_t)pulls.good);
	metrics_number(b, "hawser_pulls_failed_total", "counter", "Pulls that did not.",
		       (int64_t)pulls.failed);
	metrics_number(b, "hawser_pulls", "gauge", "Pulls that run.", (int64_t)pulls.running);
	metrics_number(b, "hawser_pulled_bytes_total", "counter", "Bytes of layers that came.",
		       (int64_t)pulls.bytes);
	metrics_number(b, "hawser_images", "gauge", "Images.", (int64_t)images->n);
	metrics_number(b, "hawser_layers", "gauge", "Layers.", (int64_t)usage.layers);
	metrics_number(b, "hawser_layer_bytes", "gauge", "Bytes of all layers.", usage.bytes);
	metrics_process(b);
	metrics_number(b, "process_start_time_seconds", "gauge", "Seconds since 1970.",
		       d->started_at / 1000000000);
}

static int listen_tcp(const struct config_address *address, int *ret_fd, struct hw_err *e)
{
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(address->port) };
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(address->port) };
	bool is_v6 = address->ip.family == AF_INET6;
	autoclose int fd =
		socket(address->ip.family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	const int on = 1;

	memcpy(&v6.sin6_addr, address->ip.bytes, sizeof(v6.sin6_addr));
	memcpy(&v4.sin_addr, address->ip.bytes, sizeof(v4.sin_addr));
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	    bind(fd, is_v6 ? (struct sockaddr *)&v6 : (struct sockaddr *)&v4,
		 is_v6 ? sizeof(v6) : sizeof(v4)) < 0)
		return err_set(e, -errno, "listen on port %d", address->port);
	*ret_fd = take_fd(fd);
	return 0;
}

/**
 * daemon_start_metrics() - listen where the configuration says, if it does
 */
int daemon_start_metrics(struct daemon *d, struct hw_err *e)
{
	const struct config *c = d->config;
	struct config_address address;
	struct socket_owner owner;
	int fd = -1, r;

	if (str_empty(c->metrics_address))
		return 0;
	r = config_address(c->metrics_address, &address, e);
	if (r == 0)
		r = config_owner(c->socket_owner, &owner, e);
	if (r == 0 && address.path)
		r = socket_listen(address.path, &owner, &fd, e);
	else if (r == 0)
		r = listen_tcp(&address, &fd, e);
	if (r == 0)
		r = metrics_http_new(&d->loop, fd, write_metrics, d, &d->http, e);
	return r < 0 ? err_ctx(e, "metrics at %s", c->metrics_address) : 0;
}
