/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/containers.c - the containers of pods: views, names of their objects, the first process
 */
#include "pod/containers.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/json/field.h"
#include "base/str.h"
#include "oci/run/pid.h"
#include "pod/container.h"

const char *container_state_name(enum container_state state)
{
	static const char *const names[] = {
		[CONTAINER_MAKING] = "making",	   [CONTAINER_CREATED] = "created",
		[CONTAINER_RUNNING] = "running",   [CONTAINER_EXITED] = "exited",
		[CONTAINER_REMOVING] = "removing", [CONTAINER_LOST] = "lost",
	};

	return (size_t)state < ARRAY_SIZE(names) && names[state] ? names[state] : "unknown";
}

char *container_dir(const struct pods *p, const char *id)
{
	return str_printf("%s/containers/%s", p->state, id);
}

char *container_rootfs(const struct pods *p, const char *id)
{
	return str_printf("%s/containers/%s/rootfs", p->state, id);
}

char *container_cgroup(const struct container *c)
{
	return cgroup_parent_child(&c->pod->cgroup, c->o.id);
}

void container_runtime(const struct container *c, struct runtime *ret)
{
	const struct oci_handler *h =
		handlers_find(c->pods->options.handlers, c->pod ? c->pod->spec->handler : "");

	*ret = (struct runtime){
		.program = h ? h->program : c->pods->options.handlers->v[0].program,
		.root = c->pods->runtime_root,
		.systemd_cgroup = c->pod && c->pod->cgroup.driver == CGROUP_SYSTEMD,
	};
}

/* ---- containers --------------------------------------------------------------------- */

static char *container_name(const struct pod *pod, const struct container_spec *spec)
{
	return str_printf("%s %" PRIu32 " %s", pod->o.id, spec->attempt, spec->name);
}

static void container_free(void *object)
{
	struct container *c = object;

	object_done(&c->o);
	shared_unref(c->pod);
	shared_unref(c->spec);
	store_hold_leave(c->hold); /* of a container that was not removed */
	hw_strings_free(&c->layers);
	hw_strings_free(&c->mount_ids);
	hw_strings_free(&c->mount_refs);
	hw_strings_free(&c->mount_sources);
	free(c->image_id);
	free(c->image_ref);
	free(c->log);
	free(c->groups.v);
	free(c->status.message);
	shared_unref(c->limits);
	shared_unref(c->main);
	free(c);
}

struct container *container_new(struct pods *p, const char *id, struct pod *pod,
				const struct container_spec *spec)
{
	struct container *c = mem_new(sizeof(*c));

	object_init(&c->o, &p->containers, id, spec ? container_name(pod, spec) : NULL,
		    container_free);
	c->pods = p;
	c->pod = pod ? shared_ref(pod) : NULL;
	c->spec = spec ? shared_ref(spec) : NULL;
	c->limits = spec ? limits_new(&spec->resources) : NULL;
	c->status.reason = "";
	return c;
}

int container_get(struct pods *p, const char *id, struct container **ret, struct hw_err *e)
{
	struct object *o;
	int r;

	r = object_get_unique(&p->containers, id, &o, e);
	if (r > 0)
		*ret = (struct container *)o;
	return r;
}

/* ---- the first process -------------------------------------------------------------- */

static void process_free(void *object)
{
	struct process *process = object;

	mem_close_fd(&process->pidfd);
	free(process);
}

/* The parent is compared when the process is open: until then the number may have become that of another one.
 * Return: 1; 0 if the container has ended; or a negative errno */
static int open_process(const struct monitor *m, int *ret_pidfd, struct hw_err *e)
{
	autoclose int fd = -1;
	pid_t parent;

	if (m->container <= 0)
		return 0;
	fd = (int)syscall(SYS_pidfd_open, m->container, 0);
	if (fd < 0)
		return errno == ESRCH ? 0 : err_set(e, -errno, "open process %d", m->container);
	parent = pid_get_parent(m->container);
	if (parent < 0)
		return err_set(e, parent, "read the parent of process %d", m->container);
	if (parent != m->pid)
		return 0;
	*ret_pidfd = take_fd(fd);
	return 1;
}

int container_set_process(struct container *c, const struct monitor *m, struct hw_err *e)
{
	struct process *process, *old;
	int fd = -1, r;

	r = open_process(m, &fd, e);
	if (r <= 0)
		return r < 0 ? err_ctx(e, "container %s", c->o.id) : 0;
	process = mem_new(sizeof(*process));
	shared_init(&process->shared, process_free);
	process->pid = m->container;
	process->pidfd = fd;
	pthread_mutex_lock(&c->o.table->lock);
	old = c->main;
	c->main = process;
	pthread_mutex_unlock(&c->o.table->lock);
	shared_unref(old);
	return 0;
}

void container_drop_process(struct container *c)
{
	struct process *old;

	pthread_mutex_lock(&c->o.table->lock);
	old = take_ptr(c->main);
	pthread_mutex_unlock(&c->o.table->lock);
	shared_unref(old);
}

struct process *container_process(struct container *c)
{
	struct process *process;

	pthread_mutex_lock(&c->o.table->lock);
	process = c->main ? shared_ref(c->main) : NULL;
	pthread_mutex_unlock(&c->o.table->lock);
	return process;
}

/* ---- views -------------------------------------------------------------------------- */

/* The list of objects is published as a list of containers. */
_Static_assert(offsetof(struct containers_view, n) == offsetof(struct object_list, n) &&
		       offsetof(struct containers_view, containers) ==
			       offsetof(struct object_list, v) &&
		       offsetof(struct container_view, o) == 0,
	       "struct containers_view differs from struct object_list");

static void view_free(void *object)
{
	struct container_view *view = object;

	shared_unref(view->spec);
	shared_unref(view->limits);
	free(view->status.message);
	free(view->image_id);
	free(view->image_ref);
	hw_strings_free(&view->mount_refs);
	free(view->log);
	free(view->groups.v);
	free(view);
}

static struct hw_list copy_groups(const struct hw_list *from)
{
	struct hw_list copy = { mem_new((from->n + 1) * sizeof(uint32_t)), from->n };

	if (from->n)
		memcpy(copy.v, from->v, from->n * sizeof(uint32_t));
	return copy;
}

void container_publish(struct container *c)
{
	AUTO(shared_unref) struct process *process = container_process(c);
	struct container_view *view = mem_new(sizeof(*view));

	shared_init(&view->o.shared, view_free);
	memcpy(view->o.id, c->o.id, sizeof(view->o.id));
	memcpy(view->pod, c->pod ? c->pod->o.id : c->pod_id, sizeof(view->pod));
	view->status = c->status;
	view->status.message = str_copy(str_or(c->status.message, ""));
	if (view->status.state == CONTAINER_CREATED) /* it is being started */
		view->status.started_at = 0;
	view->created_at = c->created_at;
	view->spec = c->spec ? shared_ref(c->spec) : NULL;
	view->limits = c->limits ? shared_ref(c->limits) : NULL;
	view->image_id = str_copy(str_or(c->image_id, ""));
	view->image_ref = str_copy(str_or(c->image_ref, ""));
	for (size_t i = 0; i < c->mount_refs.n; i++)
		strings_add(&view->mount_refs, c->mount_refs.v[i]);
	view->log = str_copy(str_or(c->log, ""));
	if (process && (c->status.state == CONTAINER_RUNNING || c->status.state == CONTAINER_LOST))
		view->pid = process->pid;
	view->stop_signal = c->stop_signal;
	view->uid = c->uid;
	view->gid = c->gid;
	view->groups = copy_groups(&c->groups);
	object_publish(&c->o, &view->o);
}

const struct containers_view *containers_view(struct pods *p)
{
	return (const void *)object_list(&p->containers);
}

const struct container_view *containers_view_find(const struct containers_view *view,
						  const char *id)
{
	return (const void *)object_list_find((const void *)view, id);
}
