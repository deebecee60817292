/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/network/watch.c - configuration and readiness of the pod network
 *
 * How:   inotify, through libuv, watches the directories of configurations and plugins.
 *        An event starts a short timer, so that a burst of events causes one update.
 *        While a directory cannot be watched, because it is missing or no watches are
 *        left, there is an update every two seconds.
 *        If a watched directory is renamed, the watch follows it and ignores a new
 *        directory with the old name. So each update checks whether the path still
 *        refers to the watched directory.
 *        Each STATUS runs in a new thread, which notifies the loop through uv_async when
 *        it ends. Then a timer starts the next STATUS: after one second if the network
 *        is not ready, after five seconds if it is.
 */
#include "pod/network/watch.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <hawser/cni.h>
#include <uv.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/os/thread.h"
#include "base/str.h"
#include "cni/runtime/conf.h"
#include "cni/version.h"

#define UPDATE_DELAY_MS	      50   /* from the first event to the update */
#define UPDATE_POLL_MS	      2000 /* between updates if a directory is not watched */
#define DIRS_MAX	      16
#define STATUS_TIMEOUT_MS     10000
#define STATUS_POLL_FAILED_MS 1000
#define STATUS_POLL_READY_MS  5000

struct watched_dir {
	uv_fs_event_t event;
	bool active;
	dev_t dev; /* device and inode of the watched directory */
	ino_t ino;
	const char *path;
};

/* STATUS of the plugins of one network */
struct status {
	uv_async_t async;
	uv_timer_t timer;
	int cancel_fd; /* eventfd */
	/* the running STATUS, or the last one */
	const struct network_conf *network; /* NULL if there is no network to poll */
	bool running;
	pthread_t thread;
	int code; /* set by the thread, read after it is joined */
	struct hw_err error;
	bool has_next; /* set_status_network() was called: next replaces network */
	const struct network_conf *next;
	/* the last result */
	char *key;     /* the network that the result is about; NULL if there is no result */
	char *message; /* why the network is not ready; NULL if it is */
};

struct network_watch {
	uv_timer_t timer; /* for the next update */
	struct watched_dir dirs[DIRS_MAX];
	size_t n_dirs, open_handles;
	char *conf_dir;
	bool built_in;
	const struct hw_exec *exec;
	struct hw_strings bin_dirs;
	struct status status;
	struct slot view;
};

/* ---- views -------------------------------------------------------------------------- */

static void view_free(void *object)
{
	struct network_view *view = object;

	shared_unref(view->network);
	free(view->name);
	free(view->file);
	free(view->message);
	free(view->warning);
	free(view);
}

static struct network_view *view_new(void)
{
	struct network_view *view = mem_new(sizeof(*view));

	shared_init(&view->shared, view_free);
	return view;
}

const struct network_view *network_watch_view(struct network_watch *w)
{
	return slot_get(&w->view);
}

/* Takes over the reference to @view. */
static void publish_view(struct network_watch *w, struct network_view *view)
{
	AUTO(shared_unref) const struct network_view *old = network_watch_view(w);

	bool same = view->ready == old->ready && str_equal(view->name, old->name) &&
		    str_equal(view->file, old->file) && str_equal(view->message, old->message);
	bool new_warning = !str_equal(view->warning, old->warning);

	slot_publish(&w->view, &view->shared);
	if (new_warning && *view->warning)
		log_event(LOG_WARN, "invalid network configuration", "error", view->warning,
			  "network in use", str_or(view->name, ""), NULL);
	if (same)
		return;
	if (view->ready)
		log_event(LOG_INFO, "network ready", "network", view->name, "file", view->file,
			  NULL);
	else
		log_event(LOG_WARN, "network not ready", "reason", view->message, NULL);
}

/* ---- STATUS of the plugins ---------------------------------------------------------- */

static bool supports_status(const struct network_conf *n)
{
	return n && version_at_least(hw_conf_version(n->conf), "1.1.0");
}

static char *network_key(const struct network_conf *n)
{
	return str_printf("%s: network \"%s\"", n->file, hw_conf_name(n->conf));
}

/* Return: why ADD to this network would fail; NULL if STATUS has succeeded or is not supported */
static const char *find_status_error(const struct status *s, const struct network_conf *n)
{
	autofree char *key = network_key(n);

	if (!supports_status(n))
		return NULL;
	return str_equal(key, s->key) ? s->message : "plugins have not answered STATUS yet";
}

static void *status_thread(void *arg)
{
	struct network_watch *w = arg;
	struct status *s = &w->status;
	autofree const char **dirs = mem_new((w->bin_dirs.n + 1) * sizeof(const char *));
	struct hw_cni_options options = { .size = sizeof(options),
					  .plugin_dirs = dirs,
					  .exec = w->exec,
					  .stderr_mode = HW_STDERR_DROP,
					  .cancel_fd = s->cancel_fd,
					  .timeout_ms = STATUS_TIMEOUT_MS };
	struct hw_cni *cni = NULL;

	for (size_t i = 0; i < w->bin_dirs.n; i++)
		dirs[i] = w->bin_dirs.v[i];
	s->code = hw_cni_new(&options, &cni, &s->error);
	if (s->code == 0)
		s->code = hw_status(cni, s->network->conf, &s->error);
	hw_cni_free(cni);
	uv_async_send(&s->async);
	return NULL;
}

static void on_status_timer(uv_timer_t *timer);

static void start_status(struct network_watch *w)
{
	struct status *s = &w->status;
	struct hw_err e;

	if (s->has_next) {
		shared_unref(s->network);
		s->network = take_ptr(s->next);
		s->has_next = false;
	}
	uv_timer_stop(&s->timer);
	if (!s->network)
		return;
	s->running = thread_start(status_thread, w, &s->thread, &e) == 0;
	if (!s->running)
		uv_timer_start(&s->timer, on_status_timer, STATUS_POLL_FAILED_MS, 0);
}

static void on_status_timer(uv_timer_t *timer)
{
	start_status(timer->data);
}

/* Polls this network from now on, instead of the previous one. The first STATUS starts at once. If
 * @n is NULL or its CNI version is below 1.1.0, polling stops. */
static void set_status_network(struct network_watch *w, const struct network_conf *n)
{
	struct status *s = &w->status;

	shared_unref(s->next);
	s->next = supports_status(n) ? shared_ref(n) : NULL;
	s->has_next = true;
	if (!s->running)
		start_status(w);
}

/* ---- reading the configuration ------------------------------------------------------ */

static bool has_plugin(const struct network_watch *w, const char *type)
{
	for (size_t i = 0; i < w->bin_dirs.n; i++) {
		autofree char *path = str_printf("%s/%s", w->bin_dirs.v[i], type);

		if (access(path, X_OK) == 0)
			return true;
	}
	return false;
}

char *network_watch_find_missing(const struct network_watch *w, const struct hw_conf *conf,
				 const char *file)
{
	AUTO(buf_done) struct buf dirs = { 0 };

	for (size_t i = 0; i < w->bin_dirs.n; i++)
		buf_printf(&dirs, "%s%s", i ? ":" : "", w->bin_dirs.v[i]);
	for (size_t i = 0; i < hw_conf_count(conf); i++)
		if (!has_plugin(w, hw_conf_type(conf, i)))
			return str_printf("%s: plugin \"%s\" not found in %s", file,
					  hw_conf_type(conf, i), dirs.data);
	return NULL;
}

/* ---- which network ------------------------------------------------------------------- */

/* The network of a node without a configuration: a bridge with both families. Pods of it reach each
 * other, the host and the outside. */
static const char built_in_network[] =
	"{\"cniVersion\":\"1.0.0\",\"name\":\"hawser\",\"plugins\":["
	"{\"type\":\"bridge\",\"bridge\":\"hawser0\",\"isGateway\":true,\"ipMasq\":true,"
	"\"hairpinMode\":true,\"capabilities\":{\"ips\":true,\"mac\":true},"
	"\"ipam\":{\"type\":\"host-local\",\"ranges\":[[{\"subnet\":\"10.85.0.0/16\"}],"
	"[{\"subnet\":\"fd68:6177:7365:7200::/64\"}]],"
	"\"routes\":[{\"dst\":\"0.0.0.0/0\"},{\"dst\":\"::/0\"}]}},"
	"{\"type\":\"portmap\",\"capabilities\":{\"portMappings\":true}},"
	"{\"type\":\"firewall\"},"
	"{\"type\":\"bandwidth\",\"capabilities\":{\"bandwidth\":true}}]}";

static void network_conf_free(void *object)
{
	struct network_conf *n = object;

	hw_conf_free(n->conf);
	free(n->file);
	free(n);
}

/* Takes ownership of @conf. */
static const struct network_conf *network_conf_new(struct hw_conf *conf, const char *file)
{
	struct network_conf *n = mem_new(sizeof(*n));

	shared_init(&n->shared, network_conf_free);
	n->conf = conf;
	n->file = str_copy(file);
	return n;
}

static const struct network_conf *new_built_in(void)
{
	struct hw_conf *conf;
	struct hw_err e;
	int r;

	r = hw_conf_parse(built_in_network, strlen(built_in_network), &conf, &e);
	assert(r == 0);
	return network_conf_new(conf, NETWORK_BUILT_IN);
}

/* What a search for the first valid file has skipped. */
struct skipped {
	struct buf errors;   /* one after the other */
	const char *current; /* file of the network in use */
	bool current_is_invalid;
};

static void note_skipped(void *ctx, const char *file, const struct hw_err *why)
{
	struct skipped *s = ctx;

	/* the message begins with the file */
	buf_printf(&s->errors, "%s%s", s->errors.len ? "; " : "", why->msg);
	s->current_is_invalid |= str_equal(file, s->current);
}

/* Return: the network to use, as a new reference; NULL: none, with the reason in *e.
 * *ret_warning: invalid files, allocated */
static const struct network_conf *choose_network(struct network_watch *w, char **ret_warning,
						 struct hw_err *e)
{
	AUTO(shared_unref) const struct network_view *old = network_watch_view(w);
	struct skipped skipped = { .current = old->network ? old->network->file : NULL };
	const struct network_conf *n = NULL;
	struct hw_conf *conf = NULL;
	int r;

	r = hw_conf_load_first(w->conf_dir, note_skipped, &skipped, &conf, e);
	if (skipped.current_is_invalid) {
		n = shared_ref(old->network);
		hw_conf_free(conf);
	} else if (r == 0) {
		n = network_conf_new(conf, hw_conf_file(conf));
	} else if (w->built_in) {
		n = new_built_in();
	}
	*ret_warning = buf_take(&skipped.errors);
	return n;
}

static struct network_view *make_view(struct network_watch *w)
{
	struct network_view *view = view_new();
	AUTO(shared_unref) const struct network_conf *n = NULL;
	struct hw_err e;

	n = choose_network(w, &view->warning, &e);
	if (!n) {
		view->message = str_copy(e.msg);
		return view;
	}
	view->name = str_copy(hw_conf_name(n->conf));
	view->file = str_copy(n->file);
	view->network = shared_ref(n);
	view->message = network_watch_find_missing(w, n->conf, n->file);
	view->lacks_plugin = view->message;
	if (!view->lacks_plugin)
		view->message = str_copy(str_or(find_status_error(&w->status, n), ""));
	view->ready = !*view->message;
	return view;
}

/* Called when the thread of a STATUS ends. */
static void on_status(uv_async_t *async)
{
	struct network_watch *w = async->data;
	struct status *s = &w->status;

	if (!s->running)
		return;
	pthread_join(s->thread, NULL);
	s->running = false;
	if (s->has_next) {
		start_status(w);
		return;
	}
	free(s->key);
	free(take_ptr(s->message));
	s->key = network_key(s->network);
	if (s->code < 0)
		s->message = str_printf("%s: %s", s->key, s->error.msg);
	uv_timer_start(&s->timer, on_status_timer,
		       s->message ? STATUS_POLL_FAILED_MS : STATUS_POLL_READY_MS, 0);
	publish_view(w, make_view(w));
}

/* ---- watching ----------------------------------------------------------------------- */

static void on_timer(uv_timer_t *timer)
{
	network_watch_update(timer->data);
}

static void on_event(uv_fs_event_t *event, const char *name, int events, int status)
{
	struct network_watch *w = event->data;

	(void)name;
	(void)events;
	(void)status;
	if (!uv_is_active((uv_handle_t *)&w->timer) ||
	    uv_timer_get_due_in(&w->timer) > UPDATE_DELAY_MS)
		uv_timer_start(&w->timer, on_timer, UPDATE_DELAY_MS, 0);
}

/* Starts or renews the watch if necessary. Return: false if the directory is not watched */
static bool update_dir(struct watched_dir *dir)
{
	struct stat st;
	bool exists = stat(dir->path, &st) == 0;

	if (dir->active && exists && st.st_dev == dir->dev && st.st_ino == dir->ino)
		return true;
	if (dir->active)
		uv_fs_event_stop(&dir->event);
	dir->active = exists && uv_fs_event_start(&dir->event, on_event, dir->path, 0) == 0;
	dir->dev = exists ? st.st_dev : 0;
	dir->ino = exists ? st.st_ino : 0;
	return dir->active;
}

void network_watch_update(struct network_watch *w)
{
	AUTO(shared_unref) const struct network_view *view = NULL;
	bool watched = true;

	for (size_t i = 0; i < w->n_dirs; i++)
		watched &= update_dir(&w->dirs[i]);
	publish_view(w, make_view(w));
	view = network_watch_view(w);
	set_status_network(w, view->lacks_plugin ? NULL : view->network);
	if (watched)
		uv_timer_stop(&w->timer);
	else
		uv_timer_start(&w->timer, on_timer, UPDATE_POLL_MS, 0);
}

/* ---- lifetime ----------------------------------------------------------------------- */

static void add_dir(struct network_watch *w, uv_loop_t *loop, const char *path)
{
	struct watched_dir *dir = &w->dirs[w->n_dirs];

	if (w->n_dirs == DIRS_MAX)
		return;
	uv_fs_event_init(loop, &dir->event);
	dir->event.data = w;
	dir->path = path;
	w->n_dirs++;
}

int network_watch_new(struct uv_loop_s *loop, const struct network_watch_options *options,
		      struct network_watch **ret_watch, struct hw_err *e)
{
	struct network_watch *w;
	struct network_view *view;
	int cancel;

	cancel = eventfd(0, EFD_CLOEXEC);
	if (cancel < 0)
		return err_set(e, -errno, "watch networks: create an eventfd");
	w = mem_new(sizeof(*w));
	view = view_new();
	view->message = str_copy("not checked yet");
	view->warning = str_copy("");
	slot_init(&w->view, &view->shared);
	w->conf_dir = str_copy(options->conf_dir);
	w->built_in = options->built_in;
	w->exec = options->exec;
	strings_split(options->bin_dirs, ':', &w->bin_dirs);
	w->status.cancel_fd = cancel;
	uv_async_init(loop, &w->status.async, on_status);
	uv_timer_init(loop, &w->status.timer);
	uv_timer_init(loop, &w->timer);
	w->status.async.data = w->status.timer.data = w->timer.data = w;
	add_dir(w, loop, w->conf_dir);
	for (size_t i = 0; i < w->bin_dirs.n; i++)
		add_dir(w, loop, w->bin_dirs.v[i]);
	network_watch_update(w);
	*ret_watch = w;
	return 0;
}

static void on_closed(uv_handle_t *handle)
{
	struct network_watch *w = handle->data;

	if (--w->open_handles > 0)
		return;
	free(w->status.key);
	free(w->status.message);
	shared_unref(w->status.network);
	shared_unref(w->status.next);
	mem_close_fd(&w->status.cancel_fd);
	slot_done(&w->view);
	hw_strings_free(&w->bin_dirs);
	free(w->conf_dir);
	free(w);
}

static void close_handle(struct network_watch *w, void *handle)
{
	uv_close(handle, on_closed);
	w->open_handles++;
}

void network_watch_close(struct network_watch *w)
{
	if (!w)
		return;
	while (w->status.running && eventfd_write(w->status.cancel_fd, 1) < 0 && errno == EINTR)
		;
	if (w->status.running)
		pthread_join(w->status.thread, NULL);
	w->status.running = false;
	close_handle(w, &w->status.async);
	close_handle(w, &w->status.timer);
	close_handle(w, &w->timer);
	for (size_t i = 0; i < w->n_dirs; i++)
		close_handle(w, &w->dirs[i].event);
}
