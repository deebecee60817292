/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/daemon.c - hawser-cri while it runs
 *
 * How:   start() opens things in the order in which they need each other; whatever
 *        it came to, stop_loop() and done() end what is there. Signals arrive on the
 *        loop: TERM and INT drain, HUP reads the configuration again.
 * Rules: the socket appears, and READY=1 is said, when every call can be answered.
 */
#include "cri/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "api/cri-v1.pb-c.h"
#include "api/hawser-v1.pb-c.h"
#include "base/log.h"
#include "base/os/file.h"
#include "base/str.h"
#include "base/time.h"
#include "cri/notify.h"
#include "cri/pod-cidr.h"
#include "cri/service/services.h"
#include "image/reference.h"
#include "rpc/socket.h"

static const struct {
	const ProtobufCServiceDescriptor *descriptor;
	const struct service_method *methods;
} services[DAEMON_SERVICES] = {
	{ &runtime__v1__runtime_service__descriptor, runtime_methods },
	{ &runtime__v1__image_service__descriptor, image_methods },
	{ &hawser__v1__daemon__descriptor, hawser_daemon_methods },
	{ &hawser__v1__images__descriptor, hawser_images_methods },
};

/* ---- configuration ------------------------------------------------------------------ */

struct config *daemon_config(struct daemon *d)
{
	struct config *c;

	pthread_mutex_lock(&d->config_lock);
	c = config_ref(d->config);
	pthread_mutex_unlock(&d->config_lock);
	return c;
}

/* ---- the network from a template ---------------------------------------------------- */

int daemon_render_network(struct daemon *d, const char *cidr, struct hw_err *e)
{
	AUTO(config_unref) struct config *c = daemon_config(d);
	AUTO(network_view_put) struct network_view *view = network_view_get(d->network);
	int r;

	if (str_empty(c->cni_conf_template) || str_empty(cidr))
		return 0;
	if (view->name && !str_ends(view->file, "/" POD_CIDR_CONFLIST)) {
		log_event(LOG_DEBUG, "the template is not used: there is a network", "file",
			  view->file, NULL);
		return 0;
	}
	r = pod_cidr_render(cidr, c->cni_conf_template, c->cni_conf_dir, e);
	if (r == 1)
		log_event(LOG_INFO, "the network was made from the template", "cidr", cidr,
			  "template", c->cni_conf_template, NULL);
	return r < 0 ? r : 0;
}

/**
 * daemon_render_again() - with the CIDR that is kept
 */
static void daemon_render_again(struct daemon *d)
{
	autofree char *cidr = NULL;
	struct hw_err e;
	int r;

	pthread_mutex_lock(&d->cidr_lock);
	r = pod_cidr_read(d->config->state, &cidr, &e);
	if (r == 1)
		r = daemon_render_network(d, cidr, &e);
	pthread_mutex_unlock(&d->cidr_lock);
	if (r < 0)
		log_error("%s", e.msg);
}

/* ---- reloading --------------------------------------------------------------------- */

/**
 * daemon_pin_images() - by complete names
 */
static int daemon_pin_images(struct daemon *d, const struct config *c, struct hw_err *e)
{
	AUTO(hw_strings_free) struct hw_strings names = { 0 };

	for (size_t i = 0; i < c->pinned_images.n; i++) {
		AUTO(reference_done) struct reference ref = { 0 };
		autofree char *name = NULL;
		int r = reference_parse(c->pinned_images.v[i], &ref, e);

		if (r < 0)
			return r;
		name = reference_format(&ref);
		strings_add(&names, name);
	}
	return store_pin(d->store, &names, e);
}

static void left_as_it_is(void *ctx, const char *name)
{
	(void)ctx;
	log_event(LOG_WARN, "a new value needs a restart", "key", name, NULL);
}

static void set_level(const struct config *c)
{
	enum log_level level;

	if (log_level_parse(c->log_level, &level))
		log_set_level(level);
}

static bool same_pins(const struct config *a, const struct config *b)
{
	const struct hw_strings *left = &a->pinned_images, *right = &b->pinned_images;

	if (left->n != right->n)
		return false;
	for (size_t i = 0; i < left->n; i++)
		if (!str_equal(left->v[i], right->v[i]))
			return false;
	return true;
}

/**
 * daemon_reload() - what a signal asks for
 *
 * A file that was there and is gone is an error: somebody is about to write it. Images
 * are pinned anew only where that changes something, as the store may keep us waiting.
 */
static void daemon_reload(struct daemon *d)
{
	AUTO(config_unref) struct config *next = NULL, *old = NULL;
	struct config_source source = d->source;
	struct config *merged;
	struct hw_err e;

	source.must_exist |= !str_empty(d->config->file);
	if (config_load(&source, &next, &e) < 0) {
		log_error("the configuration stays as it was: %s", e.msg);
		return;
	}
	merged = config_merge(d->config, next, left_as_it_is, NULL);
	pthread_mutex_lock(&d->config_lock);
	old = d->config;
	d->config = merged;
	pthread_mutex_unlock(&d->config_lock);
	set_level(merged);
	puller_set_config(d->puller, merged);
	if (!same_pins(old, merged) && daemon_pin_images(d, merged, &e) < 0)
		log_error("pin images: %s", e.msg);
	log_event(LOG_INFO, "the configuration was read again", "file", merged->file, NULL);
}

/* ---- metrics ------------------------------------------------------------------------ */

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
static int daemon_start_metrics(struct daemon *d, struct hw_err *e)
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

/* ---- signals ------------------------------------------------------------------------ */

static void stop_loop(struct daemon *d)
{
	network_close(take_ptr(d->network));
	metrics_http_close(take_ptr(d->http));
	for (size_t i = 0; i < ARRAY_SIZE(d->signals); i++)
		uv_close((uv_handle_t *)&d->signals[i], NULL);
}

static void on_stopped(void *ctx)
{
	stop_loop(ctx);
}

static void unlink_socket(const char *listen)
{
	struct config_address address = { 0 };
	struct hw_err e;

	if (config_address(listen, &address, &e) == 0 && address.path)
		unlink(address.path);
}

static void stop(struct daemon *d, int ms)
{
	d->stopping = true;
	if (d->http)
		unlink_socket(d->config->metrics_address);
	rpc_server_stop(d->server, ms, on_stopped, d);
}

static void on_stop_signal(uv_signal_t *signal, int number)
{
	struct daemon *d = signal->data;

	if (d->stopping)
		return;
	notify_send("STOPPING=1");
	log_event(LOG_INFO, "stopping", "signal", strsignal(number), NULL);
	if (!d->activated)
		unlink_socket(d->config->listen);
	stop(d, d->config->drain_timeout * 1000);
}

static void on_reload_signal(uv_signal_t *signal, int number)
{
	struct daemon *d = signal->data;

	(void)number;
	if (d->stopping)
		return;
	notify_reloading();
	daemon_reload(d);
	network_look(d->network);
	daemon_render_again(d);
	notify_send("READY=1");
}

static void start_signals(struct daemon *d)
{
	static const struct {
		int number;
		uv_signal_cb on;
	} wanted[ARRAY_SIZE(d->signals)] = {
		{ SIGTERM, on_stop_signal },
		{ SIGINT, on_stop_signal },
		{ SIGHUP, on_reload_signal },
	};

	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
		uv_signal_init(&d->loop, &d->signals[i]);
		d->signals[i].data = d;
		uv_signal_start(&d->signals[i], wanted[i].on, wanted[i].number);
	}
}

/* ---- starting ----------------------------------------------------------------------- */

static int lock_state(struct daemon *d, struct hw_err *e)
{
	const char *state = d->config->state;
	autofree char *path = str_printf("%s/cri.lock", state);
	int r = file_mkdirs(AT_FDCWD, state, 0755, e);

	if (r == 0)
		r = file_lock(AT_FDCWD, path, true, time_now(), &d->lock_fd, e);
	if (r == -ETIMEDOUT)
		return err_text(e, -EBUSY, "another hawser-cri runs with the state folder %s",
				state);
	return r < 0 ? err_ctx(e, "state folder") : 0;
}

static void *sweep(void *ctx)
{
	struct daemon *d = ctx;
	struct hw_err e;

	if (store_sweep(d->store, &e) < 0)
		log_error("clear away what was incomplete: %s", e.msg);
	return NULL;
}

static int start_store(struct daemon *d, struct hw_err *e)
{
	sigset_t all, before;
	int r = file_mkdirs(AT_FDCWD, d->config->root, 0711, e);

	if (r == 0)
		r = store_open(d->config->root, &d->store, e);
	if (r == 0)
		r = daemon_pin_images(d, d->config, e);
	if (r < 0)
		return err_ctx(e, "root folder");
	d->puller = puller_new_from_config(d->store, d->config);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	d->sweeps = pthread_create(&d->sweeper, NULL, sweep, d) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!d->sweeps)
		sweep(d);
	return 0;
}

static int start_server(struct daemon *d, struct hw_err *e)
{
	struct rpc_config config = RPC_CONFIG;
	int r;

	config.long_calls_max = (unsigned)d->config->long_calls;
	config.finished = metrics_count_call;
	config.ctx = d->metrics;
	r = rpc_server_new(&d->loop, &config, &d->server, e);
	for (size_t i = 0; r == 0 && i < DAEMON_SERVICES; i++) {
		d->services[i] = service_new(d, services[i].descriptor, services[i].methods);
		metrics_add_methods(d->metrics, service_methods(d->services[i]));
		rpc_server_add(d->server, service_methods(d->services[i]), d->services[i]);
	}
	return r;
}

static int listen_ourselves(struct daemon *d, struct hw_err *e)
{
	struct config_address address;
	struct socket_owner owner;
	autofree char *dir = NULL;
	int fd, r = config_address(d->config->listen, &address, e);

	if (r == 0)
		r = config_owner(d->config->socket_owner, &owner, e);
	if (r < 0)
		return r;
	dir = str_ncopy(address.path, (size_t)(strrchr(address.path, '/') - address.path));
	if (*dir)
		r = file_mkdirs(AT_FDCWD, dir, 0755, e);
	if (r == 0)
		r = socket_listen(address.path, &owner, &fd, e);
	if (r == 0)
		r = rpc_server_listen(d->server, fd, e);
	return r < 0 ? err_ctx(e, "listen on %s", d->config->listen) : 0;
}

/* @n: of the sockets that we were given */
static int start_listening(struct daemon *d, const int *fds, int n, struct hw_err *e)
{
	int r = 0;

	if (n == 0)
		return listen_ourselves(d, e);
	d->activated = true;
	for (int i = 0; r == 0 && i < n; i++)
		r = rpc_server_listen(d->server, fds[i], e);
	return r;
}

/* The sockets come first: that changes the environment, which is every thread's and child's. */
static int start(struct daemon *d, struct hw_err *e)
{
	int fds[NOTIFY_FDS_MAX], n = notify_sockets(fds, e);
	int r = n < 0 ? n : lock_state(d, e);

	if (r == 0)
		r = start_store(d, e);
	if (r == 0)
		r = start_server(d, e);
	if (r == 0)
		r = daemon_start_metrics(d, e);
	if (r < 0)
		return r;
	d->network = network_new(&d->loop, d->config->cni_conf_dir, d->config->cni_bin_dir);
	daemon_render_again(d);
	return start_listening(d, fds, n, e);
}

/* ---- the whole ---------------------------------------------------------------------- */

static void init(struct daemon *d, const struct config_source *source, struct config *config)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	*d = (struct daemon){
		.source = *source,
		.config = config,
		.started_at = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec,
		.lock_fd = -1,
		.metrics = metrics_new(),
	};
	pthread_mutex_init(&d->config_lock, NULL);
	pthread_mutex_init(&d->cidr_lock, NULL);
	uv_loop_init(&d->loop);
	start_signals(d);
}

static void done(struct daemon *d)
{
	if (d->sweeps)
		pthread_join(d->sweeper, NULL);
	rpc_server_free(d->server);
	for (size_t i = 0; i < DAEMON_SERVICES; i++)
		service_free(d->services[i]);
	puller_free(d->puller);
	store_close(d->store);
	uv_loop_close(&d->loop); /* no other thread is left to take its descriptors for others */
	metrics_free(d->metrics);
	config_unref(d->config);
	pthread_mutex_destroy(&d->cidr_lock);
	pthread_mutex_destroy(&d->config_lock);
	mem_close_fd(&d->lock_fd);
}

/**
 * daemon_run() - from the first lock to the last
 * @source: where the configuration came from
 * @config: it
 * @e:      the error
 *
 * Return: 0 after a signal, or why it could not start
 */
int daemon_run(const struct config_source *source, struct config *config, struct hw_err *e)
{
	struct daemon d;
	int r;

	init(&d, source, config);
	r = start(&d, e);
	if (r == 0) {
		log_event(LOG_INFO, "ready", "version", HAWSER_VERSION, "listen",
			  d.activated ? "LISTEN_FDS" : config->listen, "root", config->root,
			  "state", config->state, NULL);
		notify_send("READY=1");
	} else if (d.server) {
		stop(&d, 0);
	} else {
		stop_loop(&d);
	}
	uv_run(&d.loop, UV_RUN_DEFAULT);
	done(&d);
	return r;
}
