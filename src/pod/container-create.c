/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/container-create.c - create and start containers
 *
 * How:   as in create.c: first the name, then the row, then the objects. The last one is the container
 *        itself: conmon starts crun, which sets everything up and waits. A create that fails is undone by
 *        container_remove().
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "base/os/file.h"
#include "base/os/signal-name.h"
#include "base/str.h"
#include "base/time.h"
#include "pod/container.h"

/* For crun. kubelet waits for two minutes; the rest is for the undo, so that kubelet gets the error. */
#define CREATE_MS 90000
#define START_MS  60000

/* ---- objects ------------------------------------------------------------------------ */

static int create_bundle(struct container *c, struct hw_err *e)
{
	autofree char *dir = container_dir(c->pods, c->o.id);

	if (mkdir(dir, 0700) < 0)
		return err_set(e, -errno, "create %s", dir);
	return 0;
}

static int create_log_directory(const struct container *c, struct hw_err *e)
{
	autofree char *dir = NULL;
	int r;

	if (!c->log)
		return 0;
	dir = str_ncopy(c->log, (size_t)(strrchr(c->log, '/') - c->log));
	r = file_mkdirs(AT_FDCWD, dir, 0755, e);
	return r < 0 ? err_ctx(e, "log_path") : 0;
}

static int start_monitor(struct container *c, struct hw_err *e)
{
	autofree char *bundle = container_dir(c->pods, c->o.id);
	autofree char *exits = str_printf("%s/exits", c->pods->state);
	AUTO(monitor_done) struct monitor m = { .pidfd = -1 };
	struct runtime runtime;
	struct monitor_create create = {
		.program = c->pods->options.conmon,
		.runtime = &runtime,
		.fs = c->pods->options.cgroups,
		.id = c->o.id,
		.bundle = bundle,
		.log = c->log,
		.exits = exits,
		.terminal = c->spec->tty,
		.open_stdin = c->spec->stdin,
		.stdin_once = c->spec->stdin_once,
		.user_namespace = pod_user_mapping(&c->pod->spec->namespaces) != NULL,
		.cancel_fd = c->o.cancel_fd,
		.deadline = time_deadline(CREATE_MS),
	};
	int r;

	if (!create.program)
		return err_text(e, -EPERM, "conmon not found");
	container_runtime(c, &runtime);
	r = monitor_create(&create, &m, e);
	if (r < 0)
		return r;
	r = container_set_process(c, &m, e);
	return r < 0 ? r : exits_watch(c, &m, e);
}

static int create_objects(struct container *c, const struct image_config *image, struct hw_err *e)
{
	autoclose int target = -1;
	int r;

	r = create_bundle(c, e);
	if (r == 0)
		r = container_mount(c, e);
	if (r == 0)
		r = container_write_config(c, image, &target, e);
	if (r == 0) /* the configuration is accepted */
		r = create_log_directory(c, e);
	if (r == 0)
		r = start_monitor(c, e);
	return r;
}

/* ---- the pod ------------------------------------------------------------------------ */

/* While the caller creates a container, a stop of the pod waits. Return: 0; -EPERM if the pod is not
 * ready */
static int enter_pod(struct pod *pod, struct hw_err *e)
{
	const struct pod_view *view;
	int r = 0;

	pthread_mutex_lock(&pod->o.table->lock);
	view = (const void *)pod->o.view;
	if (pod->o.gone || view->state != POD_READY)
		r = err_text(e, -EPERM, "pod sandbox %s is not ready", pod->o.id);
	else
		pod->creates++;
	pthread_mutex_unlock(&pod->o.table->lock);
	return r;
}

static void leave_pod(struct pod *pod)
{
	pthread_mutex_lock(&pod->o.table->lock);
	pod->creates--;
	pthread_cond_broadcast(&pod->o.changed);
	pthread_mutex_unlock(&pod->o.table->lock);
}

/* ---- create ------------------------------------------------------------------------- */

/* The signal that a stop sends. */
static int find_stop_signal(const struct container_spec *spec, const struct image_config *image)
{
	int of_image = signal_parse(str_or(image->stop_signal, ""));

	if (spec->stop_signal)
		return spec->stop_signal;
	return of_image > 0 ? of_image : SIGTERM;
}

static int set_log(struct container *c, struct hw_err *e)
{
	const char *dir = c->pod->spec->log_directory, *file = c->spec->log_path;

	if (str_empty(dir) || str_empty(file))
		return 0;
	if (strlen(dir) + 1 + strlen(file) >= PATH_MAX)
		return err_text(e, -EINVAL,
				"log_path: more than %d bytes with log_directory of the pod",
				PATH_MAX - 1);
	c->log = str_printf("%s/%s", dir, file);
	return 0;
}

static bool finish_create(struct container_status *status, void *ctx)
{
	(void)ctx;
	if (status->state != CONTAINER_MAKING) /* it has already ended */
		return false;
	status->state = CONTAINER_CREATED;
	return true;
}

static void undo(struct container *c)
{
	struct hw_err e;

	/* if that fails, the row says "making", which means the same after a restart */
	(void)container_set_state(c, CONTAINER_REMOVING, &e);
	if (container_remove(c, 0, &e) < 0)
		log_event(LOG_WARN, "failed create not undone yet", "container", c->o.id, "error",
			  e.msg, NULL);
}

static int create_stored(struct container *c, const struct image_config *image, struct hw_err *e)
{
	int r;

	r = create_objects(c, image, e);
	if (r == 0)
		r = container_state_change(c, finish_create, NULL, e);
	return r;
}

/* The caller owns the container, which is in the table. */
static int create(struct container *c, struct hw_err *e)
{
	AUTO(image_config_free) struct image_config *image = NULL;
	bool entered = false, stored = false;
	int r;

	r = enter_pod(c->pod, e);
	entered = r == 0;
	if (r == 0)
		r = container_find_image(c, &image, e);
	if (r == 0) {
		c->stop_signal = find_stop_signal(c->spec, image);
		r = set_log(c, e);
	}
	if (r == 0) {
		r = container_state_insert(c, e);
		stored = r == 0;
	}
	if (r == 0)
		r = create_stored(c, image, e);
	if (r < 0)
		object_set_error(&c->o, e);
	object_end_create(&c->o);
	if (r < 0 && stored) {
		undo(c);
	} else if (r < 0) {
		object_remove(&c->o);
		container_release_layers(c);
	}
	if (entered)
		leave_pod(c->pod);
	return r;
}

/* Return: 0 with a container that the caller owns; 1 with a reference to the one that has the name */
static int reserve(struct pods *p, struct pod *pod, const struct container_spec *spec,
		   struct container **ret, struct hw_err *e)
{
	AUTO(shared_unref) struct container *c = NULL;
	struct object *found;
	char id[OBJECT_ID];
	int r;

	r = object_new_id(id, e);
	if (r < 0)
		return r;
	c = container_new(p, id, pod, spec);
	c->created_at = time_real();
	c->status.state = CONTAINER_MAKING;
	r = object_begin_create(&c->o, e);
	if (r < 0)
		return r;
	found = object_add(&c->o);
	*ret = found ? (struct container *)found : take_ptr(c);
	return found ? 1 : 0;
}

/* Return: 0: @c is what the caller wants; 1: it is gone, try again; or a negative errno */
static int join(struct pods *p, struct container *c, const struct container_spec *spec,
		int64_t deadline, struct hw_err *e)
{
	enum container_state state;
	int r;

	if (!str_equal(c->spec->text, spec->text))
		return err_text(e, -ENOTUNIQ,
				"container %s, attempt %" PRIu32
				" of pod %s exists with another configuration: %s",
				spec->name, spec->attempt, c->pod->o.id, c->o.id);
	r = object_join(&c->o, deadline, e);
	if (r != 0)
		return r;
	state = container_get_state(c);
	if (state != CONTAINER_MAKING && state != CONTAINER_REMOVING)
		return 0;
	/* an earlier create that failed, or was interrupted */
	r = containers_remove(p, c->o.id, 0, deadline, e);
	return r < 0 ? r : 1;
}

int containers_create(struct pods *p, const char *pod_id, const struct container_spec *spec,
		      int64_t deadline, char ret_id[OBJECT_ID], struct hw_err *e)
{
	AUTO(shared_unref) struct pod *pod = NULL;
	int r;

	r = pod_get(p, pod_id, &pod, e);
	if (r < 0)
		return r;
	if (r == 0 || !pod->spec)
		return err_text(e, -ENODATA, "no pod sandbox %.80s", pod_id);
	for (;;) {
		AUTO(shared_unref) struct container *c = NULL;

		r = reserve(p, pod, spec, &c, e);
		if (r < 0)
			return r;
		if (r == 1) {
			r = join(p, c, spec, deadline, e);
		} else {
			r = create(c, e);
			object_end(&c->o);
		}
		if (r == 0)
			memcpy(ret_id, c->o.id, OBJECT_ID);
		if (r <= 0)
			return r;
	}
}

/* ---- start -------------------------------------------------------------------------- */

static bool set_starting(struct container_status *status, void *ctx)
{
	status->started_at = *(int64_t *)ctx;
	return true;
}

/* It may have ended before this is called. */
static bool set_started(struct container_status *status, void *ctx)
{
	(void)ctx;
	if (status->state != CONTAINER_CREATED)
		return false;
	status->state = CONTAINER_RUNNING;
	return true;
}

/* Replaces the exit that our kill has caused. */
static bool set_start_error(struct container_status *status, void *ctx)
{
	if (status->state != CONTAINER_CREATED && status->state != CONTAINER_EXITED)
		return false;
	status->state = CONTAINER_EXITED;
	status->started_at = 0;
	status->exit_code = 128;
	status->finished_at = time_real();
	status->reason = CONTAINER_START_ERROR;
	free(status->message);
	status->message = str_copy(ctx);
	return true;
}

/* conmon may still have to write the exit code. Return: true if the container has ended with an exit code of its
 * own */
static bool has_own_exit(struct container *c, int64_t deadline)
{
	autofree char *bundle = container_dir(c->pods, c->o.id);
	struct monitor_exit exit;
	struct hw_err ignored;

	return container_wait_for_exit(c, deadline, &ignored) == 0 &&
	       monitor_get_exit(bundle, &exit, &ignored) == 1;
}

/* An earlier process of ours may have been killed after it had started the container, which may even have ended
 * since. */
static bool is_started(struct container *c, const struct runtime *runtime, int64_t deadline)
{
	struct runtime_state state;
	struct hw_err ignored;

	if (runtime_get_state(runtime, c->o.id, deadline, &state, &ignored) != 1)
		return false;
	return state.status == RUNTIME_RUNNING ||
	       (state.status == RUNTIME_STOPPED && has_own_exit(c, deadline));
}

int container_start(struct container *c, struct hw_err *e)
{
	int64_t deadline = time_deadline(START_MS);
	struct runtime runtime;
	struct hw_err ignored;
	int r;

	container_runtime(c, &runtime);
	r = runtime_start(&runtime, c->o.id, deadline, e);
	if (r < 0 && !is_started(c, &runtime, deadline)) {
		bool alive = container_get_state(c) == CONTAINER_CREATED;

		(void)container_kill(c, time_deadline(START_MS), &ignored);
		if (alive)
			(void)container_state_change(c, set_start_error, e->msg, &ignored);
		return r;
	}
	return container_state_change(c, set_started, NULL, e);
}

static int start(struct container *c, struct hw_err *e)
{
	enum container_state state = container_get_state(c);
	int64_t started_at = time_real();
	struct hw_err ignored;
	int r;

	if (state != CONTAINER_CREATED)
		return err_text(e, -EPERM, "container %s is %s, not created", c->o.id,
				container_state_name(state));
	r = container_state_change(c, set_starting, &started_at, e);
	if (r < 0) /* the status has changed nevertheless, and a stop would complete the start */
		(void)container_state_change(c, set_starting, &(int64_t){ 0 }, &ignored);
	return r < 0 ? r : container_start(c, e);
}

int containers_start(struct pods *p, const char *id, int64_t deadline, struct hw_err *e)
{
	AUTO(shared_unref) struct container *c = NULL;
	int r;

	r = container_get(p, id, &c, e);
	if (r < 0)
		return r;
	r = c && c->spec ? object_begin(&c->o, deadline, e) : 1;
	if (r == 1)
		return err_text(e, -ENODATA, "no container %.80s", id);
	if (r < 0)
		return r;
	r = start(c, e);
	object_end(&c->o);
	return r;
}
