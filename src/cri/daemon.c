/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/daemon.c - the hawser-cri daemon: one object that owns all its parts
 *
 * How:   start_daemon() opens the parts in the order of their dependencies; if it fails,
 *        close_handles() and daemon_done() close the parts that are open. The loop handles
 *        signals: SIGTERM and SIGINT finish running calls and stop the daemon, SIGHUP
 *        reloads the configuration.
 * Rules: the socket is created, and READY=1 is sent, only when every call can be served.
 */
#include "cri/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <hawser/cni.h>
#include <uv.h>

#include "api/cri-v1.pb-c.h"
#include "api/hawser-v1.pb-c.h"
#include "base/log.h"
#include "base/os/file.h"
#include "base/os/thread.h"
#include "base/shared.h"
#include "base/str.h"
#include "base/time.h"
#include "cri/metrics-http.h"
#include "cri/metrics.h"
#include "cri/notify.h"
#include "cri/service/executables.h"
#include "cri/service/services.h"
#include "image/reference.h"
#include "oci/cgroup.h"
#include "oci/handler.h"
#include "oci/pause.h"
#include "oci/spec/limits.h"
#include "pod/containers.h"
#include "pod/network-gc.h"
#include "pod/network/plugin-server.h"
#include "pod/network/pod-cidr.h"
#include "pod/network/watch.h"
#include "pod/pods.h"
#include "rpc/socket.h"

#define SERVICES 7
#define END_MS	 5000 /* for cancelled calls to end when the daemon stops */
#define FULL_LOG_NS                                                                                \
	(10 * INT64_C(1000000000)) /* time between messages about too many connections */

/* All parts are there before the first call is served, and do not change after that. Services
 * borrow those that they need. */
struct daemon {
	struct config_source source; /* for a reload */
	struct slot config;	     /* struct config; only the loop's thread publishes */
	int64_t started_at;	     /* ns since 1970 */
	int lock_fd;		     /* lock of the state directory */
	struct store *store;
	struct puller *puller;
	struct pod_cidr pod_cidr;
	struct cgroup_fs *cgroups;
	struct oci_handlers handlers;
	struct pause_host *pause;
	struct spec_host spec_host;
	char *conmon;
	struct plugin_server *plugins;
	struct hw_cni *cni;
	struct pods *pods;
	int cancel_fd; /* eventfd: ends calls of plugins that no client waits for */
	pthread_t sweeper;
	bool has_sweeper;
	/* for the loop's thread */
	uv_loop_t loop;
	uv_signal_t signals[3];
	uv_timer_t end_timer; /* see stop_server() */
	struct network_watch *network;
	struct metrics *metrics;
	struct metrics_http *http;
	struct rpc_server *server;
	struct runtime_service runtime_service;
	struct image_service image_service;
	struct daemon_service daemon_service;
	struct pod_service pod_service;
	struct network_service network_service;
	struct service *services[SERVICES];
	bool activated; /* systemd has passed the sockets */
	bool stopping;
	/* connections over the limit: idle ones closed for them, or refused; last log message */
	int64_t n_closed_idle, n_refused, full_logged_at;
};

/* ---- configuration ------------------------------------------------------------------ */

static int pin_images(struct daemon *d, const struct config *c, struct hw_err *e)
{
	AUTO(hw_strings_free) struct hw_strings names = { 0 };

	for (size_t i = 0; i < c->pinned_images.n; i++) {
		AUTO(reference_done) struct reference ref = { 0 };
		autofree char *name = NULL;
		int r;

		r = reference_parse(c->pinned_images.v[i], &ref, e);
		if (r < 0)
			return r;
		name = reference_format(&ref);
		strings_add(&names, name);
	}
	store_pin(d->store, &names);
	return 0;
}

static bool same_strings(const struct hw_strings *a, const struct hw_strings *b)
{
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++)
		if (!str_equal(a->v[i], b->v[i]))
			return false;
	return true;
}

static void log_ignored_key(void *ctx, const char *name)
{
	(void)ctx;
	log_event(LOG_WARN, "changed key takes effect after a restart", "key", name, NULL);
}

/* On error the configuration does not change. If the file existed at the last load, a missing file
 * is an error: it may be missing only because it is being replaced. */
static void reload_config(struct daemon *d)
{
	AUTO(shared_unref) const struct config *old = slot_get(&d->config);
	AUTO(shared_unref) struct config *next = NULL;
	struct config_source source = d->source;
	AUTO(shared_unref) struct config *merged = NULL;
	enum log_level level;
	struct hw_err e;

	source.must_exist |= !str_empty(old->file);
	if (config_load(&source, &next, &e) < 0) {
		log_error("reload failed, configuration unchanged: %s", e.msg);
		return;
	}
	merged = config_merge(old, next, log_ignored_key, NULL);
	/* Only if the list has changed: pinning may have to wait for the store. The next reload
	 * compares with the published list, so this is pinned before it is published. */
	if (!same_strings(&old->pinned_images, &merged->pinned_images) &&
	    pin_images(d, merged, &e) < 0) {
		log_error("reload failed, configuration unchanged: pin images: %s", e.msg);
		return;
	}
	slot_publish(&d->config, shared_ref(merged));
	if (log_level_parse(merged->log_level, &level))
		log_set_level(level);
	puller_set_config(d->puller, merged);
	log_event(LOG_INFO, "configuration reloaded", "file", merged->file, NULL);
}

/* ---- network from a template -------------------------------------------------------- */

/* Generates the network configuration with the saved pod CIDR. */
static void render_saved_cidr(struct daemon *d)
{
	AUTO(shared_unref) const struct network_view *view = network_watch_view(d->network);
	AUTO(shared_unref) const struct config *c = slot_get(&d->config);
	struct hw_err e;

	if (pod_cidr_restore(&d->pod_cidr, c->cni_conf_template, view, &e) < 0)
		log_error("%s", e.msg);
}

/* ---- stopping and signals ----------------------------------------------------------- */

/* A step of the sweeper may take long, for example to delete a large layer. */
static void end_sweeper(struct daemon *d)
{
	struct timespec until;

	if (!d->has_sweeper)
		return;
	eventfd_write(d->cancel_fd, 1);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += END_MS / 1000;
	if (pthread_timedjoin_np(d->sweeper, NULL, &until) != 0) {
		log_warn("unused files are still being removed; the next start finishes that");
		_exit(EXIT_SUCCESS);
	}
	d->has_sweeper = false;
}

/* Closes the remaining handles of the loop, so that uv_run() returns. */
static void close_handles(void *ctx)
{
	struct daemon *d = ctx;

	end_sweeper(d); /* it uses the network */
	network_watch_close(take_ptr(d->network));
	metrics_http_close(take_ptr(d->http));
	for (size_t i = 0; i < ARRAY_SIZE(d->signals); i++)
		uv_close((uv_handle_t *)&d->signals[i], NULL);
	uv_close((uv_handle_t *)&d->end_timer, NULL);
}

static void unlink_socket(const char *listen)
{
	struct config_address address = { 0 };
	struct hw_err e;

	if (config_address(listen, &address, &e) == 0 && address.path)
		unlink(address.path);
}

/* A call that does not end, for example because its plugin hangs, must not keep the daemon. */
static void on_end_timer(uv_timer_t *timer)
{
	(void)timer;
	log_warn("calls are still running; the next start finishes their work");
	_exit(EXIT_SUCCESS);
}

static void stop_server(struct daemon *d, const struct config *c, int drain_ms)
{
	d->stopping = true;
	uv_timer_start(&d->end_timer, on_end_timer, (uint64_t)drain_ms + END_MS, 0);
	if (d->http)
		unlink_socket(c->metrics_address);
	rpc_server_stop(d->server, drain_ms, close_handles, d);
}

static void on_stop_signal(uv_signal_t *signal, int number)
{
	struct daemon *d = signal->data;
	AUTO(shared_unref) const struct config *c = slot_get(&d->config);

	if (d->stopping)
		return;
	notify_send("STOPPING=1");
	log_event(LOG_INFO, "stopping", "signal", strsignal(number), NULL);
	if (!d->activated)
		unlink_socket(c->listen);
	stop_server(d, c, c->drain_timeout * 1000);
}

static void on_reload_signal(uv_signal_t *signal, int number)
{
	struct daemon *d = signal->data;

	(void)number;
	if (d->stopping)
		return;
	notify_reloading();
	reload_config(d);
	network_watch_update(d->network);
	render_saved_cidr(d);
	notify_send("READY=1");
}

/* ---- starting ----------------------------------------------------------------------- */

/* A process that a killed daemon has just started holds the lock until it executes its program. */
#define LOCK_MS 5000

static int lock_state(struct daemon *d, const char *state, struct hw_err *e)
{
	autofree char *path = str_printf("%s/cri.lock", state);
	int r;

	r = file_mkdirs(AT_FDCWD, state, 0755, e);
	if (r == 0)
		r = file_lock(AT_FDCWD, path, true, time_deadline(LOCK_MS), &d->lock_fd, e);
	if (r == -ETIMEDOUT)
		return err_text(e, -EBUSY, "another hawser-cri uses the state directory %s", state);
	return r < 0 ? err_ctx(e, "state directory") : 0;
}

/* Deletes attachments that pods of an earlier daemon have left, in the networks that belong to
 * us. */
static void collect_attachments(struct daemon *d)
{
	AUTO(shared_unref) const struct config *c = slot_get(&d->config);
	AUTO(hw_strings_free) struct hw_strings names = { 0 };
	struct hw_err e;

	network_names_to_collect(c, d->network, &names);
	for (size_t i = 0; i < names.n; i++)
		if (pods_gc(d->pods, names.v[i], d->cancel_fd, &e) < 0)
			log_error("%s", e.msg);
}

static bool is_cancelled(const struct daemon *d)
{
	return poll(&(struct pollfd){ .fd = d->cancel_fd, .events = POLLIN }, 1, 0) > 0;
}

static void *sweep(void *ctx)
{
	struct daemon *d = ctx;
	struct hw_err e;

	if (pods_have_lost(d->pods)) {
		log_warn("leftovers are not removed while pods or containers are lost");
		return NULL;
	}
	collect_attachments(d);
	if (!is_cancelled(d) && pods_sweep(d->pods, &e) < 0)
		log_error("%s", e.msg);
	if (!is_cancelled(d) && store_sweep(d->store, &e) < 0)
		log_error("remove incomplete and unused layers: %s", e.msg);
	return NULL;
}

static void log_loss(struct daemon *d)
{
	autofree char *why = store_loss(d->store);

	if (why)
		log_error("the database of the image store was lost: %s; layers and images are "
			  "kept, but not served: run \"hawser image recover\"",
			  why);
}

static int start_store(struct daemon *d, const struct config *c, struct hw_err *e)
{
	int r;

	r = file_mkdirs(AT_FDCWD, c->root, 0711, e);
	if (r == 0)
		r = store_open(c->root, &d->store, e);
	if (r == 0)
		r = pin_images(d, c, e);
	if (r < 0)
		return err_ctx(e, "root directory");
	log_loss(d);
	d->puller = puller_new_from_config(d->store, c);
	return 0;
}

static int start_sweeper(struct daemon *d, struct hw_err *e)
{
	int r;

	r = thread_start(sweep, d, &d->sweeper, e);
	d->has_sweeper = r == 0;
	return r;
}

/* ---- pods --------------------------------------------------------------------------- */

#define GC_TIMEOUT_MS 30000 /* less than other calls wait for the network that it has locked */

static void start_plugins(struct daemon *d, const struct config *c)
{
	autofree char *program = executable_helper("hawser-plugin");
	const struct plugin_server_options options = {
		.plugin_dirs = c->cni_bin_dir,
		.program = program,
		.state_dir = c->state,
	};

	d->plugins = plugin_server_new(&options);
}

static int start_cni(struct daemon *d, const struct config *c, struct hw_err *e)
{
	AUTO(hw_strings_free) struct hw_strings dirs = { 0 };
	autofree const char **list = NULL;
	struct hw_cni_options options = {
		.size = sizeof(options),
		.cache_dir = c->cni_cache_dir,
		.state_dir = c->state,
		.exec = plugin_server_exec(d->plugins),
		.stderr_mode = HW_STDERR_DROP,
		.cancel_fd = d->cancel_fd,
		.timeout_ms = GC_TIMEOUT_MS,
	};

	strings_split(c->cni_bin_dir, ':', &dirs);
	list = mem_new((dirs.n + 1) * sizeof(*list));
	for (size_t i = 0; i < dirs.n; i++)
		list[i] = dirs.v[i];
	options.plugin_dirs = list;
	return hw_cni_new(&options, &d->cni, e);
}

static int start_network(struct daemon *d, const struct config *c, struct hw_err *e)
{
	const struct network_watch_options options = {
		.conf_dir = c->cni_conf_dir,
		.bin_dirs = c->cni_bin_dir,
		.built_in = c->default_network,
		.exec = plugin_server_exec(d->plugins),
	};
	int r;

	r = network_watch_new(&d->loop, &options, &d->network, e);
	if (r == 0)
		render_saved_cidr(d);
	return r;
}

static void probe_handlers(struct daemon *d, const struct config *c)
{
	autofree char *crun = executable_find("crun");

	handlers_probe(crun, &c->runtime_handler, &d->handlers);
	for (size_t i = 0; i < d->handlers.n; i++)
		if (d->handlers.v[i].message)
			log_event(LOG_ERROR, "runtime handler cannot be used", "handler",
				  d->handlers.v[i].name, "error", d->handlers.v[i].message, NULL);
}

static int start_pause(struct daemon *d, struct hw_err *e)
{
	autofree char *program = executable_helper("hawser-pause");

	return pause_host_new(program, &d->pause, e);
}

static int open_pods(struct daemon *d, const struct config *c, struct hw_err *e)
{
	AUTO(config_sysctls_done) struct hw_map sysctls = { 0 };
	struct pods_options options = {
		.root = c->root,
		.state = c->state,
		.netns_dir = c->netns_dir,
		.conf_dir = c->cni_conf_dir,
		.pause = d->pause,
		.cni = d->cni,
		.network = d->network,
		.pod_cidr = &d->pod_cidr,
		.cgroups = d->cgroups,
		.cgroup_driver = config_cgroup_driver(c),
		.handlers = &d->handlers,
		.sysctls = &sysctls,
		.network_timeout_ms = c->network_timeout * 1000,
		.store = d->store,
		.host = &d->spec_host,
		.conmon = d->conmon,
	};

	config_sysctls(c, &sysctls);
	return pods_open(&options, &d->pods, e);
}

/* The pods of an earlier daemon are known before the first call is served. What it has left
 * unfinished is done in the background. Each call of a plugin waits until those of an earlier daemon
 * have ended. */
static int start_pods(struct daemon *d, const struct config *c, struct hw_err *e)
{
	int r;

	r = cgroup_fs_new("", &d->cgroups, e);
	if (r < 0)
		return r;
	r = spec_host_init(&d->spec_host, d->cgroups, "", e);
	if (r < 0)
		return r;
	d->conmon = executable_find("conmon");
	probe_handlers(d, c);
	r = start_pause(d, e);
	if (r < 0)
		return r;
	start_plugins(d, c);
	r = start_cni(d, c, e);
	if (r < 0)
		return r;
	r = start_network(d, c, e);
	if (r < 0)
		return r;
	r = open_pods(d, c, e);
	if (r < 0)
		return r;
	pods_recover(d->pods);
	return 0;
}

/* ---- server ------------------------------------------------------------------------- */

static void count_call(void *ctx, const struct rpc_finished_call *call)
{
	struct daemon *d = ctx;

	metrics_count_call(d->metrics, call);
}

/* A client could fill the log, so only the metrics have every connection. */
static void count_full(void *ctx, bool refused)
{
	struct daemon *d = ctx;

	*(refused ? &d->n_refused : &d->n_closed_idle) += 1;
	if (d->full_logged_at && time_now() - d->full_logged_at < FULL_LOG_NS)
		return;
	d->full_logged_at = time_now();
	log_event(LOG_WARN, "too many connections", "action",
		  refused ? "refused a new one" : "closed the oldest idle one", NULL);
}

static int start_server(struct daemon *d, const struct config *c, struct hw_err *e)
{
	const struct {
		const ProtobufCServiceDescriptor *descriptor;
		const struct service_method *methods;
		const void *ctx;
	} services[SERVICES] = {
		{ &runtime__v1__runtime_service__descriptor, runtime_methods, &d->runtime_service },
		{ &runtime__v1__image_service__descriptor, image_methods, &d->image_service },
		{ &hawser__v1__daemon__descriptor, hawser_daemon_methods, &d->daemon_service },
		{ &hawser__v1__images__descriptor, hawser_images_methods, &d->image_service },
		{ &hawser__v1__pods__descriptor, hawser_pods_methods, &d->pod_service },
		{ &hawser__v1__containers__descriptor, hawser_containers_methods, &d->pod_service },
		{ &hawser__v1__networks__descriptor, hawser_networks_methods, &d->network_service },
	};
	struct rpc_config config = RPC_CONFIG;
	int r;

	config.long_calls_max = (unsigned)c->long_calls;
	config.finished = count_call;
	config.full = count_full;
	config.ctx = d;
	r = rpc_server_new(&d->loop, &config, &d->server, e);
	if (r < 0)
		return r;
	for (size_t i = 0; i < SERVICES; i++) {
		d->services[i] =
			service_new(services[i].ctx, services[i].descriptor, services[i].methods);
		metrics_add_methods(d->metrics, service_methods(d->services[i]));
		rpc_server_add(d->server, service_methods(d->services[i]), d->services[i]);
	}
	return 0;
}

static void write_metrics(void *ctx, struct buf *b)
{
	struct daemon *d = ctx;
	AUTO(store_snapshot_put) const struct store_snapshot *images = store_snapshot_get(d->store);
	AUTO(shared_unref) const struct containers_view *containers = containers_view(d->pods);
	AUTO(shared_unref) const struct pods_view *pods = pods_view(d->pods);
	struct rpc_stats stats = rpc_server_stats(d->server);
	struct store_usage usage;
	struct pull_counts pulls;

	store_usage(d->store, &usage);
	pull_counts(d->puller, &pulls);
	metrics_format_calls(d->metrics, b);
	metrics_format_number(b, "hawser_cri_connections", "gauge", "Open client connections.",
			      stats.connections);
	metrics_format_number(b, "hawser_cri_idle_connections_closed_total", "counter",
			      "Idle client connections closed because too many were open.",
			      d->n_closed_idle);
	metrics_format_number(b, "hawser_cri_connections_refused_total", "counter",
			      "Client connections refused because too many were open.",
			      d->n_refused);
	metrics_format_number(b, "hawser_cri_calls", "gauge", "Running calls.", stats.calls);
	metrics_format_number(b, "hawser_cri_long_calls", "gauge", "Running long calls.",
			      stats.long_calls);
	metrics_format_number(b, "hawser_pulls_total", "counter", "Successful pulls.",
			      (int64_t)pulls.good);
	metrics_format_number(b, "hawser_pulls_failed_total", "counter", "Failed pulls.",
			      (int64_t)pulls.failed);
	metrics_format_number(b, "hawser_pulls", "gauge", "Running pulls.", (int64_t)pulls.running);
	metrics_format_number(b, "hawser_pulled_bytes_total", "counter",
			      "Downloaded bytes of layers.", (int64_t)pulls.bytes);
	metrics_format_number(b, "hawser_images", "gauge", "Images in the store.",
			      (int64_t)images->n);
	metrics_format_number(b, "hawser_layers", "gauge", "Layers in the store.",
			      (int64_t)usage.layers);
	metrics_format_number(b, "hawser_layer_bytes", "gauge",
			      "Disk space used by all layers, in bytes.", usage.bytes);
	metrics_format_number(b, "hawser_pods", "gauge", "Pods in any state.", (int64_t)pods->n);
	metrics_format_number(b, "hawser_containers", "gauge", "Containers in any state.",
			      (int64_t)containers->n);
	plugin_server_format_metrics(d->plugins, b);
	metrics_format_process(b);
	metrics_format_number(b, "process_start_time_seconds", "gauge",
			      "Start time in seconds since 1970.", d->started_at / 1000000000);
}

static int start_metrics(struct daemon *d, const struct config *c, struct hw_err *e)
{
	struct config_address address;
	struct socket_owner owner;
	int r;

	if (str_empty(c->metrics_address))
		return 0;
	r = config_address(c->metrics_address, &address, e);
	if (r == 0)
		r = config_owner(c->socket_owner, &owner, e);
	if (r == 0)
		r = metrics_http_open(&d->loop, &address, &owner, write_metrics, d, &d->http, e);
	return r < 0 ? err_ctx(e, "serve metrics at %s", c->metrics_address) : 0;
}

/* Creates the directory of the configured socket, and the socket. */
static int listen_configured(struct daemon *d, const struct config *c, struct hw_err *e)
{
	struct config_address address;
	struct socket_owner owner;
	autofree char *dir = NULL;
	int fd, r;

	r = config_address(c->listen, &address, e);
	if (r < 0)
		return r;
	r = config_owner(c->socket_owner, &owner, e);
	if (r < 0)
		return r;
	dir = str_ncopy(address.path, (size_t)(strrchr(address.path, '/') - address.path));
	if (*dir)
		r = file_mkdirs(AT_FDCWD, dir, 0755, e);
	if (r == 0)
		r = socket_listen(address.path, &owner, &fd, e);
	if (r == 0)
		r = rpc_server_listen(d->server, fd, e);
	return r < 0 ? err_ctx(e, "listen on %s", c->listen) : 0;
}

static int start_daemon(struct daemon *d, const struct config *c, struct hw_err *e)
{
	int fds[NOTIFY_FDS_MAX], n, r;

	/* called first, because it changes the environment, which threads and children use */
	n = notify_sockets(fds, e);
	if (n < 0)
		return n;
	d->cancel_fd = eventfd(0, EFD_CLOEXEC);
	if (d->cancel_fd < 0)
		return err_set(e, -errno, "create an eventfd");
	r = lock_state(d, c->state, e);
	if (r < 0)
		return r;
	r = start_store(d, c, e);
	if (r < 0)
		return r;
	r = start_server(d, c, e);
	if (r < 0)
		return r;
	r = start_metrics(d, c, e);
	if (r < 0)
		return r;
	r = start_pods(d, c, e);
	if (r < 0)
		return r;
	r = start_sweeper(d, e);
	if (r < 0)
		return r;
	d->runtime_service = (struct runtime_service){
		.config = &d->config,
		.pods = d->pods,
		.handlers = &d->handlers,
		.network = d->network,
		.pod_cidr = &d->pod_cidr,
	};
	d->image_service = (struct image_service){ &d->config, d->store, d->puller };
	d->daemon_service =
		(struct daemon_service){ &d->config, d->store, d->server, d->started_at };
	d->pod_service = (struct pod_service){ d->pods };
	d->network_service = (struct network_service){ &d->config, d->pods, d->network };
	if (n == 0)
		return listen_configured(d, c, e);
	d->activated = true;
	for (int i = 0; r == 0 && i < n; i++)
		r = rpc_server_listen(d->server, fds[i], e);
	return r;
}

/* ---- lifetime ----------------------------------------------------------------------- */

static void daemon_init(struct daemon *d, const struct config_source *source, struct config *config)
{
	static const struct {
		int number;
		uv_signal_cb on;
	} handlers[ARRAY_SIZE(d->signals)] = {
		{ SIGTERM, on_stop_signal },
		{ SIGINT, on_stop_signal },
		{ SIGHUP, on_reload_signal },
	};

	*d = (struct daemon){
		.source = *source,
		.started_at = time_real(),
		.lock_fd = -1,
		.cancel_fd = -1,
		.metrics = metrics_new(),
	};
	slot_init(&d->config, &config->shared);
	pod_cidr_init(&d->pod_cidr, config->state, config->cni_conf_dir);
	uv_loop_init(&d->loop);
	uv_timer_init(&d->loop, &d->end_timer);
	for (size_t i = 0; i < ARRAY_SIZE(handlers); i++) {
		uv_signal_init(&d->loop, &d->signals[i]);
		d->signals[i].data = d;
		uv_signal_start(&d->signals[i], handlers[i].on, handlers[i].number);
	}
}

static void daemon_done(struct daemon *d)
{
	rpc_server_free(d->server);
	for (size_t i = 0; i < SERVICES; i++)
		service_free(d->services[i]);
	puller_free(d->puller);
	pods_close(d->pods);
	hw_cni_free(d->cni);
	plugin_server_free(d->plugins);
	pause_host_free(d->pause);
	handlers_done(&d->handlers);
	spec_host_done(&d->spec_host);
	free(d->conmon);
	cgroup_fs_free(d->cgroups);
	store_close(d->store);
	uv_loop_close(&d->loop); /* after all threads have ended: they use the loop's descriptors */
	metrics_free(d->metrics);
	slot_done(&d->config);
	pod_cidr_done(&d->pod_cidr);
	mem_close_fd(&d->cancel_fd);
	mem_close_fd(&d->lock_fd);
}

int daemon_run(const struct config_source *source, struct config *config, struct hw_err *e)
{
	struct daemon d;
	int r;

	daemon_init(&d, source, config);
	r = start_daemon(&d, config, e);
	if (r == 0) {
		log_event(LOG_INFO, "ready", "version", HAWSER_VERSION, "listen",
			  d.activated ? "LISTEN_FDS" : config->listen, "root", config->root,
			  "state", config->state, NULL);
		notify_send("READY=1");
	} else if (d.server) {
		stop_server(&d, config, 0);
	} else {
		close_handles(&d);
	}
	uv_run(&d.loop, UV_RUN_DEFAULT);
	daemon_done(&d);
	return r;
}
