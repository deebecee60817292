/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/container-stop.c - stop, kill and remove containers
 *
 * How:   a stop signals the first process and waits. It does not own the container, so several stops may
 *        wait at once; .kill_at is the earliest time that one of them has asked for. At that time, or when
 *        the first process has ended, all processes in the container's cgroup are killed: in a PID
 *        namespace that it shares, they outlive the first one. The end is noticed by exits.c.
 *        Every step of a removal succeeds if its object does not exist. The row is deleted last.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "base/os/file.h"
#include "base/os/mount.h"
#include "base/os/remove-tree.h"
#include "base/str.h"
#include "base/time.h"
#include "pod/container.h"

#define KILL_MS	  30000 /* for the end of processes after SIGKILL */
#define DELETE_MS 60000 /* for crun and conmon */
#define EXIT_MS                                                                                    \
	10000 /* for conmon, after the last process has ended: it may have to write output */

/* ---- kill --------------------------------------------------------------------------- */

static bool is_alive(enum container_state state)
{
	return state == CONTAINER_MAKING || state == CONTAINER_CREATED ||
	       state == CONTAINER_RUNNING;
}

int container_wait_for_exit(struct container *c, int64_t deadline, struct hw_err *e)
{
	bool alive, in_time = true;

	pthread_mutex_lock(&c->o.table->lock);
	for (;;) {
		const struct container_view *view = (const void *)c->o.view;

		alive = is_alive(view->status.state) &&
			(c->main || view->status.state != CONTAINER_MAKING);
		if (!alive || !in_time)
			break;
		in_time = object_wait(&c->o, deadline);
	}
	pthread_mutex_unlock(&c->o.table->lock);
	if (alive)
		return err_text(e, -ETIMEDOUT, "container %s has not ended in time", c->o.id);
	return 0;
}

/* A conmon that does not report the end of its container hangs, perhaps in the file system of the log. When it
 * is killed, exits.c notes the end, if it watches conmon. */
static int end_monitor(struct container *c, struct hw_err *e)
{
	autofree char *bundle = container_dir(c->pods, c->o.id);
	int64_t deadline = time_deadline(EXIT_MS);
	int r;

	r = monitor_end(bundle, deadline, e);
	if (r == 0 && !exits_is_watched(c) && is_alive(container_get_state(c)))
		r = exits_collect(c, e);
	return r < 0 ? r : container_wait_for_exit(c, deadline, e);
}

/* The time that conmon has does not start again with each attempt: those in the background are shorter.
 * Return: the end of that time */
static int64_t note_killed(struct container *c)
{
	int64_t end;

	pthread_mutex_lock(&c->o.table->lock);
	if (!c->monitor_until)
		c->monitor_until = time_deadline(EXIT_MS);
	end = c->monitor_until;
	pthread_mutex_unlock(&c->o.table->lock);
	return end;
}

int container_kill(struct container *c, int64_t deadline, struct hw_err *e)
{
	autofree char *cgroup = container_cgroup(c);
	int64_t end;
	int r;

	r = cgroup_kill(c->pods->options.cgroups, cgroup, deadline, e);
	if (r < 0)
		return err_ctx(e, "kill container %s", c->o.id);
	end = note_killed(c);
	r = container_wait_for_exit(c, time_earlier(deadline, end), e);
	return r == -ETIMEDOUT && time_has_passed(end) ? end_monitor(c, e) : r;
}

/* ---- stop --------------------------------------------------------------------------- */

/* Return: true if this is the first stop of the container */
static bool begin_stop(struct container *c, int64_t kill_at)
{
	bool first;

	pthread_mutex_lock(&c->o.table->lock);
	first = c->kill_at == 0;
	if (first || kill_at < c->kill_at)
		c->kill_at = kill_at;
	pthread_cond_broadcast(&c->o.changed);
	pthread_mutex_unlock(&c->o.table->lock);
	return first;
}

static int send_signal(struct container *c, int signal, struct hw_err *e)
{
	AUTO(shared_unref) struct process *process = NULL;

	process = container_process(c);
	if (!process || syscall(SYS_pidfd_send_signal, process->pidfd, signal, NULL, 0) == 0 ||
	    errno == ESRCH)
		return 0;
	return err_set(e, -errno, "send signal %d to container %s", signal, c->o.id);
}

/* Waits until the container has ended, or until it is time to kill it. Return: true if it has ended */
static bool wait_for_grace(struct container *c, int64_t deadline)
{
	const struct container_view *view;
	bool alive;

	pthread_mutex_lock(&c->o.table->lock);
	for (;;) {
		view = (const void *)c->o.view;
		alive = is_alive(view->status.state) && !c->o.gone;
		if (!alive || time_has_passed(c->kill_at) || time_has_passed(deadline))
			break;
		object_wait(&c->o, time_earlier(c->kill_at, deadline));
	}
	pthread_mutex_unlock(&c->o.table->lock);
	return !alive;
}

/* Waits for a start that runs, or completes one that was interrupted, because the container would run after
 * its stop. */
static int finish_start(struct container *c, int64_t deadline, struct hw_err *e)
{
	struct hw_err ignored;
	int r;

	if (!container_is_starting(c))
		return 0;
	r = object_begin(&c->o, deadline, e);
	if (r != 0)
		return r < 0 ? r : 0;
	if (container_is_starting(c))
		container_start(c, &ignored); /* if it fails, the container has ended */
	object_end(&c->o);
	return 0;
}

/* Waits until the first process has ended, or for the grace. */
static int stop_first(struct container *c, int64_t grace_s, int64_t deadline, struct hw_err *e)
{
	int64_t kill_at;
	int r = 0;

	kill_at = time_now() + (grace_s > 0 ? grace_s * 1000000000 : 0);
	if (begin_stop(c, kill_at) && grace_s > 0)
		r = send_signal(c, c->stop_signal, e);
	if (r < 0)
		return r;
	if (!wait_for_grace(c, deadline) && time_has_passed(deadline))
		return err_text(e, -ETIMEDOUT, "container %s still runs", c->o.id);
	return 0;
}

static int stop(struct container *c, int64_t grace_s, int64_t deadline, struct hw_err *e)
{
	enum container_state state;
	int r;

	r = finish_start(c, deadline, e);
	if (r < 0)
		return r;
	state = container_get_state(c);
	if (state != CONTAINER_RUNNING && state != CONTAINER_EXITED)
		return 0;
	if (state == CONTAINER_RUNNING)
		r = stop_first(c, grace_s, deadline, e);
	if (r < 0)
		return r;
	return container_kill(c, time_earlier(deadline, time_deadline(KILL_MS)), e);
}

int containers_stop(struct pods *p, const char *id, int64_t grace_s, int64_t deadline,
		    struct hw_err *e)
{
	AUTO(shared_unref) struct container *c = NULL;
	int r;

	r = container_get(p, id, &c, e);
	if (r <= 0 || !c->spec)
		return r < 0 ? r : 0;
	/* a longer grace than a day would overflow when it is added to the time */
	return stop(c, grace_s < 86400 ? grace_s : 86400, deadline, e);
}

/* ---- remove ------------------------------------------------------------------------- */

static int end_processes(struct container *c, unsigned flags, struct hw_err *e)
{
	int kill_ms = flags & POD_BACKGROUND ? POD_BACKGROUND_KILL_MS : KILL_MS;
	autofree char *bundle = container_dir(c->pods, c->o.id);
	struct runtime runtime;
	int r = 0;

	if (c->pod)
		r = container_kill(c, time_deadline(kill_ms), e);
	if (r < 0)
		return r;
	if (access(bundle, F_OK) < 0)
		return 0;
	container_runtime(c, &runtime);
	r = monitor_end(bundle, time_deadline(DELETE_MS), e);
	return r < 0 ? r : runtime_delete(&runtime, c->o.id, time_deadline(DELETE_MS), e);
}

static int remove_cgroup(struct container *c, struct hw_err *e)
{
	autofree char *cgroup = NULL;

	if (!c->pod)
		return 0;
	cgroup = container_cgroup(c);
	return cgroup_remove(c->pods->options.cgroups, cgroup, time_deadline(KILL_MS), e);
}

static int remove_files(struct container *c, struct hw_err *e)
{
	autofree char *path = str_printf("%s/containers", c->pods->state);
	autofree char *exit = str_printf("%s/exits/%s", c->pods->state, c->o.id);
	autoclose int dir = -1;

	if (unlink(exit) < 0 && errno != ENOENT)
		return err_set(e, -errno, "remove %s", exit);
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return err_set(e, -errno, "open %s", path);
	return remove_tree(dir, c->o.id, e);
}

static bool set_removing(struct container_status *status, void *ctx)
{
	(void)ctx;
	if (status->state == CONTAINER_REMOVING)
		return false;
	status->state = CONTAINER_REMOVING;
	return true;
}

static int remove_objects(struct container *c, unsigned flags, struct hw_err *e)
{
	int r;

	r = end_processes(c, flags, e);
	if (r == 0)
		r = container_state_change(c, set_removing, NULL, e);
	if (r == 0)
		r = container_unmount(c->pods, c->o.id, e);
	if (r == 0)
		r = remove_cgroup(c, e);
	if (r == 0)
		r = remove_files(c, e);
	return r;
}

int container_remove(struct container *c, unsigned flags, struct hw_err *e)
{
	int r;

	if (container_get_state(c) == CONTAINER_LOST && !(flags & PODS_FORCE))
		return err_text(
			e, -EBUSY,
			"container %s was lost from the database: remove it with \"hawser rm "
			"--force\"",
			c->o.id);
	r = remove_objects(c, flags, e);
	if (r < 0)
		err_ctx(e, "container %s", c->o.id);
	else
		r = container_state_delete(c, e);
	if (r < 0)
		finisher_add_failed(&c->o);
	else
		container_release_layers(c);
	return r;
}

int containers_remove(struct pods *p, const char *id, unsigned flags, int64_t deadline,
		      struct hw_err *e)
{
	AUTO(shared_unref) struct container *c = NULL;
	int r;

	r = container_get(p, id, &c, e);
	if (r <= 0)
		return r;
	object_cancel(&c->o); /* a running create ends soon */
	r = object_begin(&c->o, deadline, e);
	if (r != 0)
		return r < 0 ? r : 0;
	r = container_remove(c, flags, e);
	object_end(&c->o);
	return r;
}

/* ---- all containers of a pod ----------------------------------------------------------- */

/* Calls @each for each container of the pod. Continues after an error. */
static int for_each(struct pod *pod,
		    int (*each)(struct container *c, unsigned flags, int64_t deadline,
				struct hw_err *e),
		    unsigned flags, int64_t deadline, struct hw_err *e)
{
	AUTO(shared_unref) const struct containers_view *view = containers_view(pod->pods);
	struct errors errors = { 0 };

	for (size_t i = 0; i < view->n; i++) {
		AUTO(shared_unref) struct container *c = NULL;

		if (!str_equal(view->containers[i]->pod, pod->o.id))
			continue;
		c = object_get(&pod->pods->containers, view->containers[i]->o.id);
		if (c && each(c, flags, deadline, e) < 0)
			errors_add(&errors, e);
	}
	return errors_result(&errors, e);
}

static int cancel_one(struct container *c, unsigned flags, int64_t deadline, struct hw_err *e)
{
	(void)flags;
	(void)deadline;
	(void)e;
	object_cancel(&c->o);
	return 0;
}

static int kill_one(struct container *c, unsigned flags, int64_t deadline, struct hw_err *e)
{
	(void)flags;
	if (!c->pod) /* a lost container of a lost pod: its cgroup is not known */
		return 0;
	begin_stop(c, time_now()); /* a stop with a grace ends, too */
	return container_kill(c, deadline, e);
}

static int remove_one(struct container *c, unsigned flags, int64_t deadline, struct hw_err *e)
{
	int r;

	r = object_begin(&c->o, deadline, e);
	if (r != 0)
		return r < 0 ? r : 0;
	/* a lost container ends with its pod */
	r = container_remove(c, c->pod ? flags | PODS_FORCE : flags, e);
	object_end(&c->o);
	return r;
}

/* New creates are refused, because the pod is not ready. */
static int wait_for_creates(struct pod *pod, int64_t deadline, struct hw_err *e)
{
	bool in_time = true;
	unsigned left;

	pthread_mutex_lock(&pod->o.table->lock);
	while (pod->creates > 0 && in_time)
		in_time = object_wait(&pod->o, deadline);
	left = pod->creates;
	pthread_mutex_unlock(&pod->o.table->lock);
	return left ? err_text(e, -ETIMEDOUT, "%u containers are still being created", left) : 0;
}

int containers_kill_all(struct pod *pod, int64_t deadline, struct hw_err *e)
{
	int r;

	r = for_each(pod, cancel_one, 0, deadline, e);
	if (r == 0)
		r = wait_for_creates(pod, deadline, e);
	return r < 0 ? r : for_each(pod, kill_one, 0, deadline, e);
}

int containers_remove_all(struct pod *pod, unsigned flags, struct hw_err *e)
{
	return for_each(pod, remove_one, flags, time_deadline(DELETE_MS), e);
}
