/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/service/stats.c - statistics of containers and pods in runtime.v1.RuntimeService
 *
 * What:  ContainerStats, ListContainerStats, StreamContainerStats, PodSandboxStats,
 *        ListPodSandboxStats, StreamPodSandboxStats.
 * Rules: lists have the containers that run and the pods that are ready. A container or pod that is asked
 *        for by its ID is in the answer in every state.
 *        A message or field whose value is not known is left out.
 */
#include <errno.h>

#include "api/call.h"
#include "api/cri-v1.pb-c.h"
#include "base/arena.h"
#include "base/str.h"
#include "cri/service/convert.h"
#include "cri/service/messages.h"
#include "cri/service/services.h"
#include "cri/service/subjects.h"
#include "net/rtnl/link-stats.h"
#include "pod/stats.h"

#define STATS_PER_MESSAGE 200 /* in responses of streams */

/* ---- values ------------------------------------------------------------------------- */

static Runtime__V1__UInt64Value *make_number(struct arena *a, uint64_t value)
{
	Runtime__V1__UInt64Value *m;

	if (value == CGROUP_UNKNOWN)
		return NULL;
	m = arena_new(a, sizeof(*m));
	runtime__v1__uint64_value__init(m);
	m->value = value;
	return m;
}

static Runtime__V1__PsiData *make_stall(struct arena *a, const struct cgroup_stall *stall)
{
	Runtime__V1__PsiData *m;

	if (!stall->known)
		return NULL;
	m = arena_new(a, sizeof(*m));
	runtime__v1__psi_data__init(m);
	m->total = stall->total;
	m->avg10 = stall->avg10;
	m->avg60 = stall->avg60;
	m->avg300 = stall->avg300;
	return m;
}

static Runtime__V1__PsiStats *make_pressure(struct arena *a, const struct stats *s,
					    enum cgroup_resource resource)
{
	const struct cgroup_pressure *p = &s->cgroup.pressure[resource];
	Runtime__V1__PsiStats *m;

	if (!p->some.known && !p->full.known)
		return NULL;
	m = arena_new(a, sizeof(*m));
	runtime__v1__psi_stats__init(m);
	m->some = make_stall(a, &p->some);
	m->full = make_stall(a, &p->full);
	return m;
}

static Runtime__V1__CpuUsage *make_cpu(struct arena *a, const struct stats *s)
{
	Runtime__V1__CpuUsage *m;

	if (!s->time)
		return NULL;
	m = arena_new(a, sizeof(*m));
	runtime__v1__cpu_usage__init(m);
	m->timestamp = s->time;
	m->usage_core_nano_seconds = make_number(a, s->cgroup.v[CGROUP_CPU_USAGE]);
	m->usage_nano_cores = make_number(a, s->cpu_rate);
	m->psi = make_pressure(a, s, CGROUP_CPU);
	return m;
}

static Runtime__V1__MemoryUsage *make_memory(struct arena *a, const struct stats *s)
{
	uint64_t working_set = cgroup_stats_working_set(&s->cgroup);
	const uint64_t *v = s->cgroup.v;
	Runtime__V1__MemoryUsage *m;

	if (!s->time)
		return NULL;
	m = arena_new(a, sizeof(*m));
	runtime__v1__memory_usage__init(m);
	m->timestamp = s->time;
	m->working_set_bytes = make_number(a, working_set);
	m->available_bytes = make_number(a, cgroup_stats_left(v[CGROUP_MEMORY_LIMIT], working_set));
	m->usage_bytes = make_number(a, v[CGROUP_MEMORY_USAGE]);
	m->rss_bytes = make_number(a, v[CGROUP_MEMORY_ANONYMOUS]);
	m->page_faults = make_number(a, v[CGROUP_PAGE_FAULTS]);
	m->major_page_faults = make_number(a, v[CGROUP_MAJOR_PAGE_FAULTS]);
	m->psi = make_pressure(a, s, CGROUP_MEMORY);
	return m;
}

static Runtime__V1__SwapUsage *make_swap(struct arena *a, const struct stats *s)
{
	uint64_t usage = s->cgroup.v[CGROUP_SWAP_USAGE];
	Runtime__V1__SwapUsage *m;

	if (!s->time || usage == CGROUP_UNKNOWN)
		return NULL;
	m = arena_new(a, sizeof(*m));
	runtime__v1__swap_usage__init(m);
	m->timestamp = s->time;
	m->swap_usage_bytes = make_number(a, usage);
	m->swap_available_bytes =
		make_number(a, cgroup_stats_left(s->cgroup.v[CGROUP_SWAP_LIMIT], usage));
	return m;
}

static Runtime__V1__IoUsage *make_io(struct arena *a, const struct stats *s)
{
	Runtime__V1__PsiStats *pressure;
	Runtime__V1__IoUsage *m;

	pressure = make_pressure(a, s, CGROUP_IO);
	if (!pressure)
		return NULL;
	m = arena_new(a, sizeof(*m));
	runtime__v1__io_usage__init(m);
	m->timestamp = s->time;
	m->psi = pressure;
	return m;
}

static Runtime__V1__FilesystemUsage *make_layer(struct arena *a, const struct stats *s,
						const char *root)
{
	Runtime__V1__FilesystemUsage *m;

	if (!s->layer.time)
		return NULL;
	m = arena_new(a, sizeof(*m));
	runtime__v1__filesystem_usage__init(m);
	m->timestamp = s->layer.time;
	m->fs_id = arena_new(a, sizeof(*m->fs_id));
	runtime__v1__filesystem_identifier__init(m->fs_id);
	m->fs_id->mountpoint = no_const(root);
	m->used_bytes = make_number(a, s->layer.bytes);
	m->inodes_used = make_number(a, s->layer.inodes);
	return m;
}

static Runtime__V1__NetworkInterfaceUsage *make_link(struct arena *a, const struct link_stats *link)
{
	Runtime__V1__NetworkInterfaceUsage *m = arena_new(a, sizeof(*m));

	runtime__v1__network_interface_usage__init(m);
	m->name = arena_copy(a, link->name);
	m->rx_bytes = make_number(a, link->received.bytes);
	m->rx_errors = make_number(a, link->received.errors);
	m->tx_bytes = make_number(a, link->sent.bytes);
	m->tx_errors = make_number(a, link->sent.errors);
	return m;
}

/* The interface of the pod's first network is the default one. If a container has renamed or deleted it, the
 * usage is left out: a kubelet reads default_interface without a check, and would crash. */
static Runtime__V1__NetworkUsage *make_network(struct arena *a, const struct stats *s,
					       const struct pod_network *network)
{
	const struct pod_attachment *first = network->attachments.v;
	const struct link_stats *links = s->links.v;
	Runtime__V1__NetworkUsage *m;

	if (!s->links_time)
		return NULL;
	m = arena_new(a, sizeof(*m));
	runtime__v1__network_usage__init(m);
	m->timestamp = s->links_time;
	m->interfaces = arena_new(a, s->links.n * sizeof(Runtime__V1__NetworkInterfaceUsage *));
	for (size_t i = 0; i < s->links.n; i++) {
		if (network->attachments.n && str_equal(links[i].name, first->ifname))
			m->default_interface = make_link(a, &links[i]);
		else
			m->interfaces[m->n_interfaces++] = make_link(a, &links[i]);
	}
	return m->default_interface ? m : NULL;
}

static Runtime__V1__ProcessUsage *make_processes(struct arena *a, const struct stats *s)
{
	Runtime__V1__ProcessUsage *m;

	if (!s->time || s->cgroup.v[CGROUP_TASKS] == CGROUP_UNKNOWN)
		return NULL;
	m = arena_new(a, sizeof(*m));
	runtime__v1__process_usage__init(m);
	m->timestamp = s->time;
	m->process_count = make_number(a, s->cgroup.v[CGROUP_TASKS]);
	return m;
}

/* ---- containers --------------------------------------------------------------------- */

static Runtime__V1__ContainerAttributes *make_container_attributes(struct arena *a,
								   const struct container_view *c)
{
	Runtime__V1__ContainerAttributes *m = arena_new(a, sizeof(*m));

	runtime__v1__container_attributes__init(m);
	m->id = no_const(c->o.id);
	m->metadata = message_container_metadata(a, c->spec);
	m->n_labels = c->spec->labels.n;
	m->labels = convert_entries(a, &runtime__v1__container_attributes__labels_entry__descriptor,
				    &c->spec->labels);
	m->n_annotations = c->spec->annotations.n;
	m->annotations = convert_entries(
		a, &runtime__v1__container_attributes__annotations_entry__descriptor,
		&c->spec->annotations);
	return m;
}

static Runtime__V1__ContainerStats *make_container(struct arena *a, const struct container_view *c,
						   const struct stats *s, const char *root)
{
	Runtime__V1__ContainerStats *m = arena_new(a, sizeof(*m));

	runtime__v1__container_stats__init(m);
	m->attributes = make_container_attributes(a, c);
	m->cpu = make_cpu(a, s);
	m->memory = make_memory(a, s);
	m->swap = make_swap(a, s);
	m->io = make_io(a, s);
	m->writable_layer = make_layer(a, s, root);
	return m;
}

static bool container_matches(const struct container_view *c,
			      const Runtime__V1__ContainerStatsFilter *filter)
{
	return !filter ||
	       (str_starts(c->pod, filter->pod_sandbox_id) &&
		convert_map_contains(&c->spec->labels, CONVERT_MAP(filter, label_selector)));
}

/* Return: the containers that the filter selects, to be freed by the caller */
static struct stats_subject *select_containers(const struct containers_view *view,
					       const Runtime__V1__ContainerStatsFilter *filter,
					       size_t *ret_n)
{
	bool by_id = filter && *filter->id;
	const struct container_view *one = by_id ? containers_view_find(view, filter->id) : NULL;
	const struct container_view *const *all = by_id ? &one : view->containers;
	size_t total = by_id ? one != NULL : view->n, n = 0;
	struct stats_subject *subjects = mem_new(total * sizeof(*subjects));

	for (size_t i = 0; i < total; i++)
		if ((by_id ? message_container_is_listed(all[i])
			   : subjects_container_runs(all[i])) &&
		    container_matches(all[i], filter))
			subjects[n++].container = all[i];
	*ret_n = n;
	return subjects;
}

/* Return: 0, the number of items in *ret_n */
static int read_containers(const struct runtime_service *s, struct rpc_call *call, struct arena *a,
			   const struct stats_subject *subjects, size_t n,
			   Runtime__V1__ContainerStats ***ret_items, struct hw_err *e)
{
	AUTO(stats_list_done) struct stats_list list = { 0 };
	int r;

	r = pods_stats(s->pods, subjects, n, STATS_USAGE, rpc_deadline(call), &list, e);
	if (r < 0)
		return r;
	*ret_items = arena_new(a, n * sizeof(Runtime__V1__ContainerStats *));
	for (size_t i = 0; i < n; i++)
		(*ret_items)[i] =
			make_container(a, subjects[i].container, &list.v[i], store_root(s->store));
	return 0;
}

int serve_container_stats(const void *ctx, struct rpc_call *call, const ProtobufCMessage *message,
			  struct hw_err *e)
{
	const Runtime__V1__ContainerStatsRequest *request = (const void *)message;
	Runtime__V1__ContainerStatsResponse response = RUNTIME__V1__CONTAINER_STATS_RESPONSE__INIT;
	const struct runtime_service *s = ctx;
	AUTO(shared_unref) const struct containers_view *view = containers_view(s->pods);
	AUTO(arena_done) struct arena arena = { 0 };
	Runtime__V1__ContainerStats **items;
	struct stats_subject subject = { 0 };
	int r;

	if (!*request->container_id)
		return err_text(e, -EINVAL, "container_id is missing");
	subject.container = containers_view_find(view, request->container_id);
	if (!subject.container || !message_container_is_listed(subject.container))
		return err_text(e, -ENODATA, "no container %.80s", request->container_id);
	r = read_containers(s, call, &arena, &subject, 1, &items, e);
	if (r < 0)
		return r;
	response.stats = items[0];
	return api_send(call, &response.base, e);
}

int serve_list_container_stats(const void *ctx, struct rpc_call *call,
			       const ProtobufCMessage *message, struct hw_err *e)
{
	const Runtime__V1__ListContainerStatsRequest *request = (const void *)message;
	Runtime__V1__ListContainerStatsResponse response =
		RUNTIME__V1__LIST_CONTAINER_STATS_RESPONSE__INIT;
	const struct runtime_service *s = ctx;
	AUTO(shared_unref) const struct containers_view *view = containers_view(s->pods);
	AUTO(arena_done) struct arena arena = { 0 };
	autofree struct stats_subject *subjects = NULL;
	int r;

	subjects = select_containers(view, request->filter, &response.n_stats);
	r = read_containers(s, call, &arena, subjects, response.n_stats, &response.stats, e);
	return r < 0 ? r : api_send(call, &response.base, e);
}

int serve_stream_container_stats(const void *ctx, struct rpc_call *call,
				 const ProtobufCMessage *message, struct hw_err *e)
{
	const Runtime__V1__StreamContainerStatsRequest *request = (const void *)message;
	const struct runtime_service *s = ctx;
	AUTO(shared_unref) const struct containers_view *view = containers_view(s->pods);
	autofree struct stats_subject *subjects = NULL;
	int r = 0;
	size_t n;

	subjects = select_containers(view, request->filter, &n);
	for (size_t i = 0; r == 0 && i < n; i += STATS_PER_MESSAGE) {
		Runtime__V1__StreamContainerStatsResponse response =
			RUNTIME__V1__STREAM_CONTAINER_STATS_RESPONSE__INIT;
		AUTO(arena_done) struct arena arena = { 0 };

		response.n_container_stats = n - i < STATS_PER_MESSAGE ? n - i : STATS_PER_MESSAGE;
		r = read_containers(s, call, &arena, subjects + i, response.n_container_stats,
				    &response.container_stats, e);
		if (r == 0)
			r = api_send(call, &response.base, e);
	}
	return r;
}

/* ---- pods --------------------------------------------------------------------------- */

/* Which pods a request asks for. */
struct pod_wish {
	const struct pod_view *pod; /* this one, in every state; NULL: those that are ready */
	const Runtime__V1__PodSandboxStatsFilter *filter;
};

static bool is_wanted(const void *ctx, const struct pod_view *pod)
{
	const struct pod_wish *wish = ctx;

	if (wish->pod ? !str_equal(pod->o.id, wish->pod->o.id) : pod->state != POD_READY)
		return false;
	return !wish->filter ||
	       convert_map_contains(&pod->spec->labels, CONVERT_MAP(wish->filter, label_selector));
}

static bool is_unwanted(const void *ctx, const struct pod_view *pod)
{
	(void)ctx;
	(void)pod;
	return false;
}

static void select_pods(struct pods *pods, const Runtime__V1__PodSandboxStatsFilter *filter,
			struct subjects *ret)
{
	AUTO(shared_unref) const struct pods_view *view = pods_view(pods);
	struct pod_wish wish = { .filter = filter };
	bool by_id = filter && *filter->id;

	if (by_id)
		wish.pod = pods_view_find(view, filter->id);
	subjects_init(pods, by_id && !wish.pod ? is_unwanted : is_wanted, &wish, ret);
}

static Runtime__V1__PodSandboxAttributes *make_pod_attributes(struct arena *a,
							      const struct pod_view *pod)
{
	Runtime__V1__PodSandboxAttributes *m = arena_new(a, sizeof(*m));

	runtime__v1__pod_sandbox_attributes__init(m);
	m->id = no_const(pod->o.id);
	m->metadata = message_pod_metadata(a, pod->spec);
	m->n_labels = pod->spec->labels.n;
	m->labels =
		convert_entries(a, &runtime__v1__pod_sandbox_attributes__labels_entry__descriptor,
				&pod->spec->labels);
	m->n_annotations = pod->spec->annotations.n;
	m->annotations = convert_entries(
		a, &runtime__v1__pod_sandbox_attributes__annotations_entry__descriptor,
		&pod->spec->annotations);
	return m;
}

static Runtime__V1__PodSandboxStats *make_pod(struct arena *a, const struct pod_view *pod,
					      const struct stats *s)
{
	Runtime__V1__PodSandboxStats *m = arena_new(a, sizeof(*m));

	runtime__v1__pod_sandbox_stats__init(m);
	m->attributes = make_pod_attributes(a, pod);
	m->linux = arena_new(a, sizeof(*m->linux));
	runtime__v1__linux_pod_sandbox_stats__init(m->linux);
	m->linux->cpu = make_cpu(a, s);
	m->linux->memory = make_memory(a, s);
	m->linux->network = make_network(a, s, pod->network);
	m->linux->process = make_processes(a, s);
	m->linux->io = make_io(a, s);
	return m;
}

/* Return: 0, the number of pods in *ret_n */
static int read_pods(const struct runtime_service *s, struct rpc_call *call, struct arena *a,
		     const struct stats_subject *subjects, size_t n, size_t *ret_n,
		     Runtime__V1__PodSandboxStats ***ret_items, struct hw_err *e)
{
	AUTO(stats_list_done) struct stats_list list = { 0 };
	Runtime__V1__PodSandboxStats **items =
		arena_new(a, n * sizeof(Runtime__V1__PodSandboxStats *));
	size_t n_pods = 0;
	int r;

	r = pods_stats(s->pods, subjects, n, STATS_USAGE, rpc_deadline(call), &list, e);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n;) {
		Runtime__V1__PodSandboxStats *m = make_pod(a, subjects[i].pod, &list.v[i]);
		Runtime__V1__LinuxPodSandboxStats *l = m->linux;
		size_t count = subjects_count_containers(subjects, n, i);

		l->containers = arena_new(a, count * sizeof(Runtime__V1__ContainerStats *));
		for (i++; l->n_containers < count; i++)
			l->containers[l->n_containers++] = make_container(
				a, subjects[i].container, &list.v[i], store_root(s->store));
		items[n_pods++] = m;
	}
	*ret_items = items;
	*ret_n = n_pods;
	return 0;
}

int serve_pod_sandbox_stats(const void *ctx, struct rpc_call *call, const ProtobufCMessage *message,
			    struct hw_err *e)
{
	const Runtime__V1__PodSandboxStatsRequest *request = (const void *)message;
	Runtime__V1__PodSandboxStatsResponse response =
		RUNTIME__V1__POD_SANDBOX_STATS_RESPONSE__INIT;
	Runtime__V1__PodSandboxStatsFilter filter = RUNTIME__V1__POD_SANDBOX_STATS_FILTER__INIT;
	const struct runtime_service *s = ctx;
	AUTO(subjects_done) struct subjects subjects = { 0 };
	AUTO(arena_done) struct arena arena = { 0 };
	Runtime__V1__PodSandboxStats **items;
	size_t n;
	int r;

	if (!*request->pod_sandbox_id)
		return err_text(e, -EINVAL, "pod_sandbox_id is missing");
	filter.id = request->pod_sandbox_id;
	select_pods(s->pods, &filter, &subjects);
	if (!subjects.n)
		return err_text(e, -ENODATA, "no pod sandbox %.80s", request->pod_sandbox_id);
	r = read_pods(s, call, &arena, subjects.v, subjects.n, &n, &items, e);
	if (r < 0)
		return r;
	response.stats = items[0];
	return api_send(call, &response.base, e);
}

int serve_list_pod_sandbox_stats(const void *ctx, struct rpc_call *call,
				 const ProtobufCMessage *message, struct hw_err *e)
{
	const Runtime__V1__ListPodSandboxStatsRequest *request = (const void *)message;
	Runtime__V1__ListPodSandboxStatsResponse response =
		RUNTIME__V1__LIST_POD_SANDBOX_STATS_RESPONSE__INIT;
	const struct runtime_service *s = ctx;
	AUTO(subjects_done) struct subjects subjects = { 0 };
	AUTO(arena_done) struct arena arena = { 0 };
	int r;

	select_pods(s->pods, request->filter, &subjects);
	r = read_pods(s, call, &arena, subjects.v, subjects.n, &response.n_stats, &response.stats,
		      e);
	return r < 0 ? r : api_send(call, &response.base, e);
}

int serve_stream_pod_sandbox_stats(const void *ctx, struct rpc_call *call,
				   const ProtobufCMessage *message, struct hw_err *e)
{
	const Runtime__V1__StreamPodSandboxStatsRequest *request = (const void *)message;
	const struct runtime_service *s = ctx;
	AUTO(subjects_done) struct subjects subjects = { 0 };
	int r = 0;

	select_pods(s->pods, request->filter, &subjects);
	for (size_t first = 0, end; r == 0 && first < subjects.n; first = end) {
		Runtime__V1__StreamPodSandboxStatsResponse response =
			RUNTIME__V1__STREAM_POD_SANDBOX_STATS_RESPONSE__INIT;
		AUTO(arena_done) struct arena arena = { 0 };

		end = subjects_end_of_message(&subjects, first, STATS_PER_MESSAGE);
		r = read_pods(s, call, &arena, subjects.v + first, end - first,
			      &response.n_pod_sandbox_stats, &response.pod_sandbox_stats, e);
		if (r == 0)
			r = api_send(call, &response.base, e);
	}
	return r;
}
