/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/daemon.h - the hawser-cri daemon: one object that owns all its parts
 *
 * Rules: fields without a lock are set before the first call is served and do not
 *        change.
 */
#ifndef CRI_DAEMON_H
#define CRI_DAEMON_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "cri/config/config.h"
#include "cri/metrics-http.h"
#include "cri/metrics.h"
#include "cri/service/service.h"
#include "image/store/store.h"
#include "pod/network-watch.h"
#include "rpc/server.h"

#define DAEMON_SERVICES 4

struct puller;

struct daemon {
	struct config_source source; /* for a reload */
	struct slot config;	     /* struct config; only the loop's thread publishes */
	int64_t started_at;	     /* ns since 1970 */
	int lock_fd;		     /* lock of the state directory */
	struct store *store;
	struct puller *puller;
	pthread_t sweeper;
	bool has_sweeper;
	pthread_mutex_t cidr_lock; /* held while the pod CIDR is saved and rendered */
	/* for the loop's thread */
	uv_loop_t loop;
	uv_signal_t signals[3];
	struct network_watch *network;
	struct metrics *metrics;
	struct metrics_http *http;
	struct rpc_server *server;
	struct service *services[DAEMON_SERVICES];
	bool activated; /* systemd has passed the sockets */
	bool stopping;
};

/* Serves until SIGTERM or SIGINT. @source must stay valid; takes ownership of the
 * reference to @config. Return: 0 after a signal; negative errno if the daemon could not start */
int daemon_run(const struct config_source *source, struct config *config, struct hw_err *e);

/* Generates the network configuration from the template for this pod CIDR. Does nothing if there is
 * no template, @cidr is "", or another network is configured. May be called from any thread; the
 * caller holds cidr_lock. */
int daemon_render_network(struct daemon *d, const char *cidr, struct hw_err *e);

#endif
