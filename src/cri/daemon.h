/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/daemon.h - hawser-cri while it runs: one object that owns all of it
 *
 * Rules: what is not said to be locked is set before the first call and stays.
 *        The order of locks: cidr_lock, then config_lock; both are never held while
 *        somebody else is waited for.
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
#include "cri/network.h"
#include "cri/service/service.h"
#include "image/store/store.h"
#include "rpc/server.h"

#define DAEMON_SERVICES 4

struct puller;

struct daemon {
	struct config_source source; /* for a reload */
	pthread_mutex_t config_lock;
	struct config *config; /* locked */
	int64_t started_at;    /* ns since 1970 */
	int lock_fd;	       /* of the state folder */
	struct store *store;
	struct puller *puller;
	pthread_t sweeper;
	bool sweeps;
	pthread_mutex_t cidr_lock; /* one change of the pod CIDR at a time */
	/* the loop's */
	uv_loop_t loop;
	uv_signal_t signals[3];
	struct network *network;
	struct metrics *metrics;
	struct metrics_http *http;
	struct rpc_server *server;
	struct service *services[DAEMON_SERVICES];
	bool activated; /* the socket is systemd's */
	bool stopping;
};

/* Serve until SIGTERM or SIGINT. @source stays valid; @config is the daemon's from now on. */
int daemon_run(const struct config_source *source, struct config *config, struct hw_err *e);

/* The configuration of this moment: the caller's reference, from any thread. */
struct config *daemon_config(struct daemon *d);

/* The network that the template makes, if there is a template, a pod CIDR and nobody else's
 * network. From any thread. */
int daemon_render_network(struct daemon *d, const char *cidr, struct hw_err *e);

#endif
