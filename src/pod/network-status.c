/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/network-status.c - poll the plugins of a network with CNI's STATUS
 *
 * How:   each STATUS runs in a new thread, which notifies the loop through uv_async when
 *        it ends. Then a timer starts the next STATUS: after one second if the network
 *        is not ready, after five seconds if it is.
 */
#include "pod/network-status.h"

#include <errno.h>
#include <pthread.h>
#include <sys/eventfd.h>

#include <uv.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/os/thread.h"
#include "base/str.h"
#include "cni/version.h"

#define TIMEOUT_MS     10000
#define POLL_FAILED_MS 1000
#define POLL_READY_MS  5000

struct network_status {
	uv_async_t async;
	uv_timer_t timer;
	size_t open_handles;
	const struct hw_strings *bin_dirs;
	void (*updated)(void *ctx);
	void *ctx;
	int cancel_fd; /* eventfd */
	/* the running STATUS, or the last one */
	struct hw_conf *conf; /* NULL if there is no network to poll */
	bool running;
	pthread_t thread;
	int code; /* set by the thread, read after it is joined */
	struct hw_err error;
	bool has_next; /* network_status_set() was called: next replaces conf */
	struct hw_conf *next;
	/* the last result */
	char *key;     /* the network that the result is about; NULL if there is no result */
	char *message; /* why the network is not ready; NULL if it is */
};

static bool supports_status(const struct hw_conf *conf)
{
	return conf && version_at_least(hw_conf_version(conf), "1.1.0");
}

static char *network_key(const struct hw_conf *conf)
{
	return str_printf("%s: network \"%s\"", hw_conf_file(conf), hw_conf_name(conf));
}

/* ---- running ------------------------------------------------------------------------ */

static void *thread_main(void *arg)
{
	struct network_status *s = arg;
	autofree const char **dirs = mem_new((s->bin_dirs->n + 1) * sizeof(const char *));
	struct hw_cni_options options = { .size = sizeof(options),
					  .plugin_dirs = dirs,
					  .stderr_mode = HW_STDERR_DROP,
					  .cancel_fd = s->cancel_fd,
					  .timeout_ms = TIMEOUT_MS };
	struct hw_cni *cni = NULL;

	for (size_t i = 0; i < s->bin_dirs->n; i++)
		dirs[i] = s->bin_dirs->v[i];
	s->code = hw_cni_new(&options, &cni, &s->error);
	if (s->code == 0)
		s->code = hw_status(cni, s->conf, &s->error);
	hw_cni_free(cni);
	uv_async_send(&s->async);
	return NULL;
}

static void on_timer(uv_timer_t *timer);

static void start_status(struct network_status *s)
{
	struct hw_err e;

	if (s->has_next) {
		hw_conf_free(s->conf);
		s->conf = take_ptr(s->next);
		s->has_next = false;
	}
	uv_timer_stop(&s->timer);
	if (!s->conf)
		return;
	s->running = thread_start(thread_main, s, &s->thread, &e) == 0;
	if (!s->running)
		uv_timer_start(&s->timer, on_timer, POLL_FAILED_MS, 0);
}

static void on_timer(uv_timer_t *timer)
{
	start_status(timer->data);
}

/* ---- results ------------------------------------------------------------------------ */

static void clear_result(struct network_status *s)
{
	free(take_ptr(s->key));
	free(take_ptr(s->message));
}

static void on_async(uv_async_t *async)
{
	struct network_status *s = async->data;

	if (!s->running)
		return;
	pthread_join(s->thread, NULL);
	s->running = false;
	if (s->has_next) {
		start_status(s);
		return;
	}
	clear_result(s);
	s->key = network_key(s->conf);
	if (s->code < 0)
		s->message = str_printf("%s: %s", s->key, s->error.msg);
	uv_timer_start(&s->timer, on_timer, s->message ? POLL_FAILED_MS : POLL_READY_MS, 0);
	s->updated(s->ctx);
}

void network_status_set(struct network_status *s, struct hw_conf *conf)
{
	hw_conf_free(s->next);
	s->next = supports_status(conf) ? conf : NULL;
	if (!s->next)
		hw_conf_free(conf);
	s->has_next = true;
	if (!s->running)
		start_status(s);
}

const char *network_status_error(const struct network_status *s, const struct hw_conf *conf)
{
	autofree char *key = network_key(conf);

	if (!supports_status(conf))
		return NULL;
	return str_equal(key, s->key) ? s->message : "plugins have not answered STATUS yet";
}

/* ---- lifetime ----------------------------------------------------------------------- */

struct network_status *network_status_new(struct uv_loop_s *loop, const struct hw_strings *bin_dirs,
					  void (*updated)(void *ctx), void *ctx)
{
	struct network_status *s = mem_new(sizeof(*s));

	s->bin_dirs = bin_dirs;
	s->updated = updated;
	s->ctx = ctx;
	s->cancel_fd = eventfd(0, EFD_CLOEXEC);
	uv_async_init(loop, &s->async, on_async);
	uv_timer_init(loop, &s->timer);
	s->async.data = s->timer.data = s;
	s->open_handles = 2;
	return s;
}

static void on_closed(uv_handle_t *handle)
{
	struct network_status *s = handle->data;

	if (--s->open_handles > 0)
		return;
	clear_result(s);
	hw_conf_free(s->conf);
	hw_conf_free(s->next);
	mem_close_fd(&s->cancel_fd);
	free(s);
}

void network_status_close(struct network_status *s)
{
	while (s->running && eventfd_write(s->cancel_fd, 1) < 0 && errno == EINTR)
		;
	if (s->running)
		pthread_join(s->thread, NULL);
	s->running = false;
	uv_close((uv_handle_t *)&s->async, on_closed);
	uv_close((uv_handle_t *)&s->timer, on_closed);
}
