/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/network-status.c - what the plugins of a network say to STATUS
 *
 * How:   a thread for each question; a uv_async tells the loop of its end. After an
 *        answer a timer asks again: soon while the network is not ready, later while
 *        it is.
 */
#include "cri/network-status.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>

#include <uv.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "cni/version.h"

#define STACK	    (256 << 10)
#define ANSWER_MS   10000
#define AGAIN_BAD   1000
#define AGAIN_READY 5000

struct network_status {
	uv_async_t async;
	uv_timer_t timer;
	size_t open_handles;
	const struct hw_strings *bin_dirs;
	void (*told)(void *ctx);
	void *ctx;
	int cancel; /* eventfd */
	/* the question */
	struct hw_conf *conf; /* NULL: none */
	bool running;
	pthread_t thread;
	int code; /* the thread's, until it was joined */
	struct hw_err error;
	bool changed; /* meanwhile */
	struct hw_conf *next;
	/* the answer */
	char *about; /* which network; NULL: there is none */
	char *why;   /* it is not ready; NULL: it is */
};

static bool has_status(const struct hw_conf *conf)
{
	return conf && version_at_least(hw_conf_version(conf), "1.1.0");
}

static char *key_of(const struct hw_conf *conf)
{
	return str_printf("%s: network \"%s\"", hw_conf_file(conf), hw_conf_name(conf));
}

/* ---- asking ------------------------------------------------------------------------- */

static int ask(const struct network_status *s, struct hw_err *e)
{
	autofree const char **dirs = mem_new((s->bin_dirs->n + 1) * sizeof(const char *));
	struct hw_cni_options options = { .size = sizeof(options),
					  .plugin_dirs = dirs,
					  .stderr_mode = HW_STDERR_DROP,
					  .cancel_fd = s->cancel,
					  .timeout_ms = ANSWER_MS };
	struct hw_cni *cni = NULL;
	int r;

	for (size_t i = 0; i < s->bin_dirs->n; i++)
		dirs[i] = s->bin_dirs->v[i];
	r = hw_cni_new(&options, &cni, e);
	if (r == 0)
		r = hw_status(cni, s->conf, e);
	hw_cni_free(cni);
	return r;
}

static void *be_thread(void *arg)
{
	struct network_status *s = arg;

	s->code = ask(s, &s->error);
	uv_async_send(&s->async);
	return NULL;
}

/* No signal of the daemon's is for this thread. */
static int start_thread(struct network_status *s)
{
	pthread_attr_t attr;
	sigset_t all, before;
	int r;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&s->thread, &attr, be_thread, s);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return r;
}

static void on_timer(uv_timer_t *timer);

static void start(struct network_status *s)
{
	if (s->changed) {
		hw_conf_free(s->conf);
		s->conf = take_ptr(s->next);
		s->changed = false;
	}
	uv_timer_stop(&s->timer);
	if (!s->conf)
		return;
	s->running = start_thread(s) == 0;
	if (!s->running)
		uv_timer_start(&s->timer, on_timer, AGAIN_BAD, 0);
}

static void on_timer(uv_timer_t *timer)
{
	start(timer->data);
}

/* ---- the answer --------------------------------------------------------------------- */

static void forget(struct network_status *s)
{
	free(take_ptr(s->about));
	free(take_ptr(s->why));
}

static void on_async(uv_async_t *async)
{
	struct network_status *s = async->data;

	if (!s->running)
		return;
	pthread_join(s->thread, NULL);
	s->running = false;
	if (s->changed) {
		start(s);
		return;
	}
	forget(s);
	s->about = key_of(s->conf);
	if (s->code < 0)
		s->why = str_printf("%s: %s", s->about, s->error.msg);
	uv_timer_start(&s->timer, on_timer, s->why ? AGAIN_BAD : AGAIN_READY, 0);
	s->told(s->ctx);
}

/**
 * network_status_ask() - which network is there now
 */
void network_status_ask(struct network_status *s, struct hw_conf *conf)
{
	hw_conf_free(s->next);
	s->next = has_status(conf) ? conf : NULL;
	if (!s->next)
		hw_conf_free(conf);
	s->changed = true;
	if (!s->running)
		start(s);
}

/**
 * network_status_why() - why it is not ready
 *
 * Return: NULL: it is, or cannot be asked
 */
const char *network_status_why(const struct network_status *s, const struct hw_conf *conf)
{
	autofree char *key = key_of(conf);

	if (!has_status(conf))
		return NULL;
	return str_equal(key, s->about) ? s->why : "its plugins have not answered to STATUS yet";
}

/* ---- coming and going --------------------------------------------------------------- */

/**
 * network_status_new() - nobody is asked yet
 */
struct network_status *network_status_new(struct uv_loop_s *loop, const struct hw_strings *bin_dirs,
					  void (*told)(void *ctx), void *ctx)
{
	struct network_status *s = mem_new(sizeof(*s));

	s->bin_dirs = bin_dirs;
	s->told = told;
	s->ctx = ctx;
	s->cancel = eventfd(0, EFD_CLOEXEC);
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
	forget(s);
	hw_conf_free(s->conf);
	hw_conf_free(s->next);
	mem_close_fd(&s->cancel);
	free(s);
}

/**
 * network_status_close() - nobody wants to know any more
 *
 * A plugin that is running is killed.
 */
void network_status_close(struct network_status *s)
{
	while (s->running && eventfd_write(s->cancel, 1) < 0 && errno == EINTR)
		;
	if (s->running)
		pthread_join(s->thread, NULL);
	s->running = false;
	uv_close((uv_handle_t *)&s->async, on_closed);
	uv_close((uv_handle_t *)&s->timer, on_closed);
}
