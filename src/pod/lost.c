/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/lost.c - pods and containers that exist, but are not in the database
 *
 * What:  if the database was lost or damaged, pods are found by their directories and network namespaces, and
 *        containers by their bundles. They are kept, and each is logged with the remedy. config.json says
 *        to which pod a container belongs and which layers it uses, and the lock of the bundle says
 *        whether it lives. After a boot, a pod is found by its attachments, which libcni has cached; it
 *        gets a directory, so that it can be removed like any other. A container is then found by its
 *        directory in ROOT.
 * How:   a boot may come after the start that has found the loss, so the file ROOT/pods.lost notes it until
 *        nothing is lost any more. Without that file, such attachments and directories are leftovers of a
 *        power cut, which may lose the last rows; they are removed by network-gc.c and pods_sweep().
 * Rules: nothing of them is removed before a client asks for it, with PODS_FORCE. Their layers are held: all
 *        layers, if it is not known which. A lost container of a pod that is in the database ends with
 *        that pod.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/os/file.h"
#include "base/str.h"
#include "cni/runtime/cache.h"
#include "oci/spec/spec.h"
#include "pod/container.h"

#define REMEDY "remove it with \"hawser rm --force\""

/* ---- finding ------------------------------------------------------------------------ */

/* Adds a pod if it is not in the table. @id: of the pod, or another text */
static void add_pod(struct pods *p, const char *id)
{
	AUTO(shared_unref) struct pod *pod = NULL;

	if (!object_is_id(id))
		return;
	pod = object_get(&p->pods, id);
	if (pod)
		return;
	pod = pod_new(p, id, NULL);
	pod->state = POD_LOST;
	object_add(&pod->o);
	pod_publish(pod);
	log_event(LOG_ERROR, "pod is not in the database; it is kept with its containers: " REMEDY,
		  "pod", pod->o.id, NULL);
}

static int add_directory(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	(void)e;
	if (entry->type == DT_DIR)
		add_pod(ctx, entry->name);
	return 0;
}

static int add_netns(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	(void)e;
	if (str_starts(entry->name, POD_NETNS_PREFIX))
		add_pod(ctx, entry->name + strlen(POD_NETNS_PREFIX));
	return 0;
}

static int add_attachments(struct pods *p, struct hw_err *e)
{
	AUTO(hw_cached_list_free) struct hw_cached_list list = { 0 };
	int r;

	r = hw_cached_attachments(p->options.cni, NULL, NULL, NULL, &list, e);
	for (size_t i = 0; r == 0 && i < list.n; i++) {
		const char *id = list.v[i].container_id;
		autofree char *netns = pod_netns_path(p, id);
		autofree char *dir = pod_dir(p, id);

		/* other runtimes share the cache */
		if (!object_is_id(id) || !str_equal(list.v[i].netns, netns))
			continue;
		add_pod(p, id);
		r = file_mkdirs(AT_FDCWD, dir, 0711, e);
	}
	return r;
}

static int add_container(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	AUTO(shared_unref) struct container *c = NULL;
	struct pods *p = ctx;

	(void)e;
	if (entry->type != DT_DIR || !object_is_id(entry->name))
		return 0;
	c = object_get(&p->containers, entry->name);
	if (c)
		return 0;
	c = container_new(p, entry->name, NULL, NULL);
	c->status.state = CONTAINER_LOST;
	object_add(&c->o);
	container_publish(c);
	return 0;
}

/* ---- the note ----------------------------------------------------------------------- */

static char *note_path(const struct pods *p)
{
	return str_printf("%s/pods.lost", p->root);
}

int lost_note(struct pods *p, struct hw_err *e)
{
	autofree char *path = note_path(p);

	return file_replace(AT_FDCWD, path, "", 0, 0600, FILE_SYNC, e);
}

static bool is_noted(const struct pods *p)
{
	autofree char *path = note_path(p);

	return access(path, F_OK) == 0 || errno != ENOENT;
}

/* Removes the note if nothing is lost any more. */
static int update_note(struct pods *p, struct hw_err *e)
{
	autofree char *path = note_path(p);

	if (!p->rows_lost || pods_have_lost(p))
		return 0;
	p->rows_lost = false;
	return file_remove(AT_FDCWD, path, e);
}

void lost_removed(struct pods *p)
{
	struct hw_err e;

	if (update_note(p, &e) < 0) /* the next start tries again */
		log_event(LOG_WARN, "pods.lost not removed", "error", e.msg, NULL);
}

/* ---- all that is lost --------------------------------------------------------------- */

int lost_find(struct pods *p, struct hw_err *e)
{
	autofree char *pods = str_printf("%s/pods", p->state);
	autofree char *bundles = str_printf("%s/containers", p->state);
	autofree char *containers = str_printf("%s/containers", p->root);
	int r;

	p->rows_lost |= is_noted(p);
	r = file_walk(AT_FDCWD, pods, add_directory, p, e);
	if (r == 0)
		r = file_walk(AT_FDCWD, p->netns_dir, add_netns, p, e);
	if (r == -ENOENT) /* no pod had a network namespace since the boot */
		r = 0;
	if (r == 0 && p->rows_lost)
		r = add_attachments(p, e);
	if (r == 0)
		r = file_walk(AT_FDCWD, bundles, add_container, p, e);
	if (r == 0 && p->rows_lost)
		r = file_walk(AT_FDCWD, containers, add_container, p, e);
	return r < 0 ? r : update_note(p, e);
}

/* ---- containers --------------------------------------------------------------------- */

/* Return: the value; NULL: no such annotation */
static const char *find_annotation(const struct oci_spec *s, const char *key)
{
	for (size_t i = 0; i < s->annotations.n; i++)
		if (str_equal(s->annotations.keys[i], key))
			return s->annotations.values[i];
	return NULL;
}

/* The pod is needed to end the container with it. */
static void set_pod(struct container *c, const char *id)
{
	AUTO(shared_unref) struct pod *pod = NULL;

	if (!object_is_id(id))
		return;
	memcpy(c->pod_id, id, sizeof(c->pod_id));
	pod = object_get(&c->pods->pods, id);
	if (!c->pod && pod && pod->spec)
		c->pod = take_ptr(pod);
}

/* Reads config.json. Return: 0; or a negative errno: it is not known which layers the container uses */
static int read_config(struct container *c, struct oci_spec *spec, struct hw_err *e)
{
	const char *layers;
	int r;

	r = container_read_config(c, spec, e);
	if (r < 0)
		return r;
	set_pod(c, str_or(find_annotation(spec, "io.kubernetes.cri.sandbox-id"), ""));
	layers = find_annotation(spec, CONTAINER_LAYERS);
	if (!layers)
		return err_text(e, -EBADMSG, "annotation " CONTAINER_LAYERS " is missing");
	hw_strings_free(&c->layers);
	if (*layers)
		strings_split(layers, ',', &c->layers);
	return container_check_layers(c, e);
}

static int hold_layers(struct container *c, struct oci_spec *spec, struct hw_err *e)
{
	struct hw_err unknown;

	if (read_config(c, spec, &unknown) == 0)
		return container_hold_layers(c, e);
	log_event(LOG_ERROR, "layers of a container are not known; all layers are kept",
		  "container", c->o.id, "error", unknown.msg, NULL);
	return container_hold_all_layers(c, e);
}

static const char *describe(const struct oci_spec *spec, const char *key)
{
	return str_or(find_annotation(spec, key), "");
}

/* Return: the first process; 0: the container has ended, or was never created */
static int find_process(struct container *c)
{
	autofree char *bundle = container_dir(c->pods, c->o.id);
	AUTO(monitor_done) struct monitor m = { .pidfd = -1 };
	AUTO(shared_unref) struct process *process = NULL;
	struct hw_err ignored;

	if (monitor_adopt(bundle, &m, &ignored) <= 0 || container_set_process(c, &m, &ignored) < 0)
		return 0;
	process = container_process(c);
	return process ? process->pid : 0;
}

int lost_recover(struct container *c, struct hw_err *e)
{
	AUTO(spec_done) struct oci_spec spec = { 0 };
	autofree char *pid = NULL;
	int r;

	r = hold_layers(c, &spec, e);
	if (r < 0)
		return r;
	pid = str_printf("%d", find_process(c));
	container_publish(c);
	log_event(LOG_ERROR, "container is not in the database; it is kept: " REMEDY, "container",
		  c->o.id, "name", describe(&spec, "io.kubernetes.cri.container-name"), "pod",
		  describe(&spec, "io.kubernetes.cri.sandbox-name"), "namespace",
		  describe(&spec, "io.kubernetes.cri.sandbox-namespace"), "image",
		  describe(&spec, "io.kubernetes.cri.image-name"), "pid",
		  str_equal(pid, "0") ? "none" : pid, NULL);
	return 0;
}

/* ---- report ------------------------------------------------------------------------- */

static void count_lost(struct pods *p, size_t *ret_pods, size_t *ret_containers)
{
	AUTO(shared_unref) const struct containers_view *containers = containers_view(p);
	AUTO(shared_unref) const struct pods_view *pods = pods_view(p);

	*ret_pods = *ret_containers = 0;
	for (size_t i = 0; i < pods->n; i++)
		*ret_pods += pods->pods[i]->state == POD_LOST;
	for (size_t i = 0; i < containers->n; i++)
		*ret_containers += containers->containers[i]->status.state == CONTAINER_LOST;
}

bool pods_have_lost(struct pods *p)
{
	size_t pods, containers;

	count_lost(p, &pods, &containers);
	return pods + containers > 0;
}

void lost_report(struct pods *p)
{
	autofree char *n_pods = NULL, *n_containers = NULL;
	size_t pods, containers;

	if (!p->rows_lost)
		return;
	count_lost(p, &pods, &containers);
	n_pods = str_printf("%zu", pods);
	n_containers = str_printf("%zu", containers);
	log_event(LOG_ERROR,
		  "the database of pods was lost; its pods and containers are kept, but not "
		  "served: remove them with \"hawser rm --force\", or restore pods.db while "
		  "hawser-cri is stopped",
		  "pods", n_pods, "containers", n_containers, NULL);
}
