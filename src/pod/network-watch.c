/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/network-watch.c - configuration and readiness of the pod network
 *
 * How:   inotify, through libuv, watches the directories of configurations and plugins.
 *        An event starts a short timer, so that a burst of events causes one update.
 *        While a directory cannot be watched, because it is missing or no watches are
 *        left, there is an update every two seconds.
 *        If a watched directory is renamed, the watch follows it and ignores a new
 *        directory with the old name. So each update checks whether the path still
 *        refers to the watched directory.
 */
#include "pod/network-watch.h"

#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <hawser/cni.h>
#include <uv.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/str.h"
#include "cni/runtime/conf.h"
#include "pod/network-status.h"

#define DELAY	 50   /* ms from the first event to the update */
#define POLL	 2000 /* ms between updates if a directory is not watched */
#define DIRS_MAX 16

struct watch {
	uv_fs_event_t event;
	bool active;
	dev_t dev; /* device and inode of the watched directory */
	ino_t ino;
	const char *path;
};

struct network {
	uv_timer_t timer;
	struct watch watches[DIRS_MAX];
	size_t n_watches, open_handles;
	char *conf_dir;
	struct hw_strings bin_dirs;
	struct network_status *status;
	pthread_mutex_t lock; /* protects the pointer view */
	struct network_view *view;
};

/* ---- views -------------------------------------------------------------------------- */

struct network_view *network_view_get(struct network *n)
{
	struct network_view *view;

	pthread_mutex_lock(&n->lock);
	view = n->view;
	__atomic_add_fetch(&view->refs, 1, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&n->lock);
	return view;
}

void network_view_put(struct network_view *view)
{
	if (!view || __atomic_sub_fetch(&view->refs, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	free(view->name);
	free(view->file);
	free(view->message);
	free(view);
}

static void publish_view(struct network *n, struct network_view *view)
{
	struct network_view *old = n->view;

	if (view->ready == old->ready && str_equal(view->name, old->name) &&
	    str_equal(view->file, old->file) && str_equal(view->message, old->message)) {
		network_view_put(view);
		return;
	}
	pthread_mutex_lock(&n->lock);
	n->view = view;
	pthread_mutex_unlock(&n->lock);
	network_view_put(old);
	if (view->ready)
		log_event(LOG_INFO, "network ready", "network", view->name, "file", view->file,
			  NULL);
	else
		log_event(LOG_WARN, "network not ready", "reason", view->message, NULL);
}

/* ---- reading the configuration ------------------------------------------------------ */

static bool has_plugin(const struct network *n, const char *type)
{
	for (size_t i = 0; i < n->bin_dirs.n; i++) {
		autofree char *path = str_printf("%s/%s", n->bin_dirs.v[i], type);

		if (access(path, X_OK) == 0)
			return true;
	}
	return false;
}

/* Return: NULL if all plugins exist, else a message, allocated */
static char *find_missing_plugin(const struct network *n, const struct hw_conf *conf)
{
	AUTO(buf_done) struct buf dirs = { 0 };

	for (size_t i = 0; i < n->bin_dirs.n; i++)
		buf_printf(&dirs, "%s%s", i ? ":" : "", n->bin_dirs.v[i]);
	for (size_t i = 0; i < hw_conf_count(conf); i++)
		if (!has_plugin(n, hw_conf_type(conf, i)))
			return str_printf("%s: plugin \"%s\" not found in %s", hw_conf_file(conf),
					  hw_conf_type(conf, i), dirs.data);
	return NULL;
}

/* *ret_conf is the network if all its plugins exist, otherwise NULL. */
static struct network_view *make_view(const struct network *n, struct hw_conf **ret_conf)
{
	struct network_view *view = mem_new(sizeof(*view));
	AUTO(hw_conf_free) struct hw_conf *conf = NULL;
	struct hw_err e;

	*ret_conf = NULL;
	view->refs = 1;
	if (hw_conf_load_first(n->conf_dir, NULL, NULL, &conf, &e) < 0) {
		view->message = str_copy(e.msg);
		return view;
	}
	view->name = str_copy(hw_conf_name(conf));
	view->file = str_copy(hw_conf_file(conf));
	view->message = find_missing_plugin(n, conf);
	if (view->message)
		return view;
	view->message = str_copy(str_or(network_status_error(n->status, conf), ""));
	view->ready = !*view->message;
	*ret_conf = take_ptr(conf);
	return view;
}

/* Called when there is a new result of STATUS for the same network. */
static void on_status(void *ctx)
{
	struct network *n = ctx;
	AUTO(hw_conf_free) struct hw_conf *conf = NULL;

	publish_view(n, make_view(n, &conf));
}

/* ---- watching ----------------------------------------------------------------------- */

static void on_timer(uv_timer_t *timer)
{
	network_update(timer->data);
}

static void on_event(uv_fs_event_t *event, const char *name, int events, int status)
{
	struct network *n = event->data;

	(void)name;
	(void)events;
	(void)status;
	if (!uv_is_active((uv_handle_t *)&n->timer) || uv_timer_get_due_in(&n->timer) > DELAY)
		uv_timer_start(&n->timer, on_timer, DELAY, 0);
}

/* Starts or renews the watch if necessary. Return: false if the directory is not watched */
static bool update_watch(struct watch *w)
{
	struct stat st;
	bool exists = stat(w->path, &st) == 0;

	if (w->active && exists && st.st_dev == w->dev && st.st_ino == w->ino)
		return true;
	if (w->active)
		uv_fs_event_stop(&w->event);
	w->active = exists && uv_fs_event_start(&w->event, on_event, w->path, 0) == 0;
	w->dev = exists ? st.st_dev : 0;
	w->ino = exists ? st.st_ino : 0;
	return w->active;
}

void network_update(struct network *n)
{
	struct hw_conf *conf;
	bool watched = true;

	for (size_t i = 0; i < n->n_watches; i++)
		watched &= update_watch(&n->watches[i]);
	publish_view(n, make_view(n, &conf));
	network_status_set(n->status, conf);
	if (watched)
		uv_timer_stop(&n->timer);
	else
		uv_timer_start(&n->timer, on_timer, POLL, 0);
}

static void add_watch(struct network *n, uv_loop_t *loop, const char *path)
{
	struct watch *w = &n->watches[n->n_watches];

	if (n->n_watches == DIRS_MAX)
		return;
	uv_fs_event_init(loop, &w->event);
	w->event.data = n;
	w->path = path;
	n->n_watches++;
	n->open_handles++;
}

struct network *network_new(struct uv_loop_s *loop, const char *conf_dir, const char *bin_dirs)
{
	struct network *n = mem_new(sizeof(*n));

	pthread_mutex_init(&n->lock, NULL);
	n->conf_dir = str_copy(conf_dir);
	strings_split(bin_dirs, ':', &n->bin_dirs);
	n->status = network_status_new(loop, &n->bin_dirs, on_status, n);
	n->view = mem_new(sizeof(*n->view));
	n->view->refs = 1;
	n->view->message = str_copy("not checked yet");
	uv_timer_init(loop, &n->timer);
	n->timer.data = n;
	n->open_handles = 1;
	add_watch(n, loop, n->conf_dir);
	for (size_t i = 0; i < n->bin_dirs.n; i++)
		add_watch(n, loop, n->bin_dirs.v[i]);
	network_update(n);
	return n;
}

static void on_closed(uv_handle_t *handle)
{
	struct network *n = handle->data;

	if (--n->open_handles > 0)
		return;
	network_view_put(n->view);
	pthread_mutex_destroy(&n->lock);
	hw_strings_free(&n->bin_dirs);
	free(n->conf_dir);
	free(n);
}

void network_close(struct network *n)
{
	if (!n)
		return;
	for (size_t i = 0; i < n->n_watches; i++)
		uv_close((uv_handle_t *)&n->watches[i].event, on_closed);
	network_status_close(take_ptr(n->status));
	uv_close((uv_handle_t *)&n->timer, on_closed);
}
