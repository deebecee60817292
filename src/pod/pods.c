/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/pods.c - the pods of this node: opening, views, names of their objects
 */
#include "pod/pods.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "base/os/boot.h"
#include "base/os/file.h"
#include "base/str.h"
#include "base/time.h"
#include "pod/container.h"
#include "pod/events.h"
#include "pod/namespaces.h"

const char *pod_state_name(enum pod_state state)
{
	static const char *const names[] = {
		[POD_MAKING] = "making",   [POD_READY] = "ready",	[POD_STOPPING] = "stopping",
		[POD_STOPPED] = "stopped", [POD_REMOVING] = "removing", [POD_LOST] = "lost",
	};

	return (size_t)state < ARRAY_SIZE(names) && names[state] ? names[state] : "unknown";
}

char *pod_dir(const struct pods *p, const char *id)
{
	return str_printf("%s/pods/%s", p->state, id);
}

char *pod_path(const struct pods *p, const char *id, const char *name)
{
	return str_printf("%s/pods/%s/%s", p->state, id, name);
}

char *pod_netns_path(const struct pods *p, const char *id)
{
	return str_printf("%s/" POD_NETNS_PREFIX "%s", p->netns_dir, id);
}

/* ---- pods --------------------------------------------------------------------------- */

/* Lengths are part of the name, because its parts may contain any character. */
static char *pod_name(const struct pod_spec *spec)
{
	return str_printf("%zu %s %zu %s %zu %s %" PRIu32, strlen(spec->name), spec->name,
			  strlen(spec->namespace), spec->namespace, strlen(spec->uid), spec->uid,
			  spec->attempt);
}

static void pod_free(void *object)
{
	struct pod *pod = object;

	object_done(&pod->o);
	shared_unref(pod->spec);
	shared_unref(pod->network);
	shared_unref(pod->resources);
	shared_unref(pod->overhead);
	cgroup_parent_done(&pod->cgroup);
	free(pod->message);
	free(pod);
}

struct pod *pod_new(struct pods *p, const char *id, const struct pod_spec *spec)
{
	struct pod *pod = mem_new(sizeof(*pod));

	object_init(&pod->o, &p->pods, id, spec ? pod_name(spec) : NULL, pod_free);
	pod->pods = p;
	pod->spec = spec ? shared_ref(spec) : NULL;
	pod->resources = spec ? limits_new(&spec->resources) : NULL;
	pod->overhead = spec ? limits_new(&spec->overhead) : NULL;
	return pod;
}

/* ---- views -------------------------------------------------------------------------- */

/* The list of objects is published as a list of pods. */
_Static_assert(offsetof(struct pods_view, n) == offsetof(struct object_list, n) &&
		       offsetof(struct pods_view, pods) == offsetof(struct object_list, v) &&
		       offsetof(struct pod_view, o) == 0,
	       "struct pods_view differs from struct object_list");

static void pod_view_free(void *object)
{
	struct pod_view *view = object;

	shared_unref(view->spec);
	shared_unref(view->network);
	shared_unref(view->resources);
	shared_unref(view->overhead);
	free(view->cgroup);
	free(view->message);
	free(view);
}

static const struct pod_view *pod_view_new(const struct pod *pod)
{
	struct pod_view *view = mem_new(sizeof(*view));

	shared_init(&view->o.shared, pod_view_free);
	memcpy(view->o.id, pod->o.id, sizeof(view->o.id));
	view->state = pod->state;
	view->created_at = pod->created_at;
	view->spec = pod->spec ? shared_ref(pod->spec) : NULL;
	view->network = pod->network ? shared_ref(pod->network) : NULL;
	view->resources = pod->resources ? shared_ref(pod->resources) : NULL;
	view->overhead = pod->overhead ? shared_ref(pod->overhead) : NULL;
	view->pid = pod->pid;
	view->cgroup = str_copy(str_or(pod->cgroup.path, ""));
	view->message = str_copy(str_or(pod->message, ""));
	return view;
}

int pod_get(struct pods *p, const char *id, struct pod **ret, struct hw_err *e)
{
	struct object *o;
	int r;

	r = object_get_unique(&p->pods, id, &o, e);
	if (r > 0)
		*ret = (struct pod *)o;
	return r;
}

void pod_publish(struct pod *pod)
{
	object_publish(&pod->o, &pod_view_new(pod)->o);
}

struct events *pods_events(struct pods *p)
{
	return p->events;
}

const struct pods_view *pods_view(struct pods *p)
{
	return (const void *)object_list(&p->pods);
}

const struct pod_view *pods_view_find(const struct pods_view *view, const char *id)
{
	return (const void *)object_list_find((const void *)view, id);
}

char *pods_namespace(const struct pods *p, const struct pod_view *pod, enum pod_namespace kind)
{
	const struct pod_namespaces *n = &pod->spec->namespaces;
	int mode = kind == POD_PID ? n->pid : kind == POD_IPC ? n->ipc : n->network;
	static const char *const names[] = {
		[POD_IPC] = "ipc", [POD_UTS] = "uts", [POD_PID] = "pid", [POD_USER] = "user"
	};

	if (kind == POD_USER)
		mode = pod_user_mapping(n) ? POD_MODE_POD : POD_MODE_NODE;

	if (mode != POD_MODE_POD || pod->state != POD_READY)
		return NULL;
	return kind == POD_NETWORK ? pod_netns_path(p, pod->o.id)
				   : pod_path(p, pod->o.id, names[kind]);
}

const char *pods_no_userns(const struct pods *p)
{
	return p->no_userns;
}

static void probe_userns(struct pods *p)
{
	struct hw_err e;

	if (namespaces_probe_user(p->root, p->state, &e) == 0)
		return;
	p->no_userns = str_copy(e.msg);
	log_event(LOG_INFO, "pods cannot have user namespaces", "error", e.msg, NULL);
}

/* ---- lifetime ----------------------------------------------------------------------- */

static void copy_sysctls(const struct hw_map *from, struct hw_map *to)
{
	to->keys = mem_new((from->n + 1) * sizeof(char *));
	to->values = mem_new((from->n + 1) * sizeof(char *));
	for (; to->n < from->n; to->n++) {
		to->keys[to->n] = str_copy(from->keys[to->n]);
		to->values[to->n] = str_copy(from->values[to->n]);
	}
}

static int make_directories(struct pods *p, struct hw_err *e)
{
	const struct {
		const char *parent, *name;
		mode_t mode;
	} dirs[] = {
		{ p->state, "pods", 0711 },	 { p->state, "containers", 0711 },
		{ p->state, "exits", 0700 },	 { p->state, "crun", 0700 },
		{ p->root, "containers", 0711 },
	};
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(dirs); i++) {
		autofree char *path = str_printf("%s/%s", dirs[i].parent, dirs[i].name);

		r = file_mkdirs(AT_FDCWD, path, dirs[i].mode, e);
	}
	return r;
}

int pods_open(const struct pods_options *options, struct pods **ret_pods, struct hw_err *e)
{
	struct pods *p = mem_new(sizeof(*p));
	int r;

	p->options = *options;
	p->root = str_copy(options->root);
	p->state = str_copy(options->state);
	p->netns_dir = str_copy(options->netns_dir);
	p->conf_dir = str_copy(options->conf_dir);
	if (options->sysctls)
		copy_sysctls(options->sysctls, &p->sysctls);
	snprintf(p->boot, sizeof(p->boot), "%s", boot_id());
	pthread_mutex_init(&p->write_lock, NULL);
	object_table_init(&p->pods, p);
	object_table_init(&p->containers, p);
	p->events = events_new();
	p->runtime_root = str_printf("%s/crun", p->state);
	r = finisher_init(&p->finisher, e);
	if (r == 0 && str_empty(p->boot)) /* no pod can be told from one of an earlier boot */
		r = err_text(e, -EIO, "the boot ID cannot be read");
	if (r == 0)
		r = make_directories(p, e);
	if (r == 0)
		probe_userns(p);
	if (r == 0)
		r = state_open(p, e);
	if (r == 0)
		r = state_load(p, e);
	if (r == 0)
		r = container_state_load(p, e);
	if (r == 0)
		r = lost_find(p, e);
	if (r == 0)
		r = pause_watch_open(p, e);
	if (r == 0)
		r = exits_open(p, e);
	if (r == 0)
		r = recover_containers(p, e);
	if (r == 0)
		r = stats_open(p, e);
	if (r < 0) {
		pods_close(p);
		return r;
	}
	lost_report(p);
	*ret_pods = p;
	return 0;
}

void pods_close(struct pods *p)
{
	if (!p)
		return;
	stats_close(p);
	exits_close(p);
	pause_watch_close(p);
	finisher_done(&p->finisher);
	db_close(p->db);
	events_free(p->events);
	object_table_done(&p->containers);
	object_table_done(&p->pods);
	pthread_mutex_destroy(&p->write_lock);
	for (size_t i = 0; i < p->sysctls.n; i++) {
		free(p->sysctls.keys[i]);
		free(p->sysctls.values[i]);
	}
	free(p->sysctls.keys);
	free(p->sysctls.values);
	free(p->runtime_root);
	free(p->no_userns);
	free(p->root);
	free(p->state);
	free(p->netns_dir);
	free(p->conf_dir);
	free(p);
}
