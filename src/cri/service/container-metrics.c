/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/service/container-metrics.c - metrics of containers in runtime.v1.RuntimeService
 *
 * What:  ListMetricDescriptors, ListPodSandboxMetrics and StreamPodSandboxMetrics, which a kubelet passes on
 *        to Prometheus. The names are those of cAdvisor; critest lists them. metrics.c has the daemon's own.
 * How:   one table describes the metrics and adds their values.
 * Rules: a metric whose value is not known is left out. Seconds are whole numbers, as CRI wants them.
 *        A metric without a timestamp is as old as the response.
 */
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "api/call.h"
#include "api/cri-v1.pb-c.h"
#include "base/arena.h"
#include "base/os/file.h"
#include "base/str.h"
#include "cri/service/convert.h"
#include "cri/service/services.h"
#include "cri/service/subjects.h"
#include "net/rtnl/link-stats.h"
#include "pod/stats.h"

#define PER_MESSAGE  50 /* pods and containers in responses of StreamPodSandboxMetrics */
#define NS	     1000000000
#define EXTRA_LABELS 4
#define SANDBOX	     "POD" /* name of the container in the metrics of a pod */

/* Every metric has these labels. */
static const char *const base_labels[] = { "id", "name", "image", "container", "namespace", "pod" };

/* The metrics of one pod or container, while they are built. */
struct builder {
	struct arena *arena;
	const struct pod_view *pod;
	const struct container_view *container; /* NULL: metrics of the pod */
	const struct stats *stats;
	const struct file_space *disk;
	const char *labels[ARRAY_SIZE(base_labels)];
	Runtime__V1__Metric **v;
	size_t n, room;
};

struct metric {
	const char *name, *help;
	Runtime__V1__MetricType type;
	const char *labels[EXTRA_LABELS + 1]; /* in addition to base_labels */
	void (*add)(struct builder *b, const struct metric *m);
	unsigned value;	  /* what add() adds: an enum value, or an offset */
	unsigned divisor; /* 0: 1 */
};

/* ---- adding values ------------------------------------------------------------------ */

static size_t count_labels(const struct metric *m)
{
	size_t n = 0;

	while (m->labels[n])
		n++;
	return n;
}

static void append(struct builder *b, Runtime__V1__Metric *metric)
{
	if (b->n == b->room) {
		Runtime__V1__Metric **old = b->v;

		b->room = b->room ? 2 * b->room : 64;
		b->v = arena_new(b->arena, b->room * sizeof(Runtime__V1__Metric *));
		for (size_t i = 0; i < b->n; i++)
			b->v[i] = old[i];
	}
	b->v[b->n++] = metric;
}

/* @extra: values of m->labels, which live as long as the arena. @time: 0: now */
static void add_at(struct builder *b, const struct metric *m, uint64_t value, int64_t time,
		   const char *const *extra)
{
	size_t n_extra = count_labels(m), n = ARRAY_SIZE(base_labels);
	Runtime__V1__Metric *metric;

	if (value == CGROUP_UNKNOWN)
		return;
	metric = arena_new(b->arena, sizeof(*metric));
	runtime__v1__metric__init(metric);
	metric->name = no_const(m->name);
	metric->timestamp = time;
	metric->metric_type = m->type;
	metric->value = arena_new(b->arena, sizeof(*metric->value));
	runtime__v1__uint64_value__init(metric->value);
	metric->value->value = value / (m->divisor ? m->divisor : 1);
	metric->n_label_values = n + n_extra;
	metric->label_values = arena_new(b->arena, (n + n_extra) * sizeof(char *));
	for (size_t i = 0; i < n + n_extra; i++)
		metric->label_values[i] = no_const(i < n ? b->labels[i] : extra[i - n]);
	append(b, metric);
}

static void add_number(struct builder *b, const struct metric *m, uint64_t value)
{
	add_at(b, m, value, 0, NULL);
}

static void add_value(struct builder *b, const struct metric *m)
{
	add_number(b, m, b->stats->cgroup.v[m->value]);
}

static void add_cpu(struct builder *b, const struct metric *m)
{
	static const char *const labels[] = { "total" };

	add_at(b, m, b->stats->cgroup.v[m->value], 0, labels);
}

static void add_working_set(struct builder *b, const struct metric *m)
{
	add_number(b, m, cgroup_stats_working_set(&b->stats->cgroup));
}

static void add_faults(struct builder *b, const struct metric *m)
{
	static const char *const labels[][2] = {
		{ "pgfault", "container" },
		{ "pgfault", "hierarchy" },
		{ "pgmajfault", "container" },
		{ "pgmajfault", "hierarchy" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(labels); i++)
		add_at(b, m,
		       b->stats->cgroup.v[i < 2 ? CGROUP_PAGE_FAULTS : CGROUP_MAJOR_PAGE_FAULTS], 0,
		       labels[i]);
}

static void add_waiting(struct builder *b, const struct metric *m)
{
	const struct cgroup_stall *some = &b->stats->cgroup.pressure[m->value].some;

	if (some->known)
		add_number(b, m, some->total);
}

static void add_stalled(struct builder *b, const struct metric *m)
{
	const struct cgroup_stall *full = &b->stats->cgroup.pressure[m->value].full;

	if (full->known)
		add_number(b, m, full->total);
}

/* A member of struct stats. */
static void add_member(struct builder *b, const struct metric *m)
{
	add_number(b, m, *(const uint64_t *)((const char *)b->stats + m->value));
}

static void add_tasks_limit(struct builder *b, const struct metric *m)
{
	const uint64_t *v = b->stats->cgroup.v;

	if (v[CGROUP_TASKS] != CGROUP_UNKNOWN) /* 0: there is no limit */
		add_number(b, m, v[m->value] == CGROUP_UNKNOWN ? 0 : v[m->value]);
}

static void add_files_limit(struct builder *b, const struct metric *m)
{
	static const char *const labels[] = { "max_open_files" };

	add_at(b, m, b->stats->files_limit, 0, labels);
}

/* A limit of the container, a member of struct oci_resources. */
static void add_limit(struct builder *b, const struct metric *m)
{
	int64_t limit =
		*(const int64_t *)((const char *)&b->container->limits->resources + m->value);

	if (limit > 0)
		add_number(b, m, (uint64_t)limit);
}

static void add_start_time(struct builder *b, const struct metric *m)
{
	if (b->container->status.started_at > 0)
		add_number(b, m, (uint64_t)b->container->status.started_at);
}

static void add_last_seen(struct builder *b, const struct metric *m)
{
	if (b->stats->time)
		add_number(b, m, (uint64_t)b->stats->time);
}

/* ---- disks -------------------------------------------------------------------------- */

/* A member of struct file_space. */
static void add_disk(struct builder *b, const struct metric *m)
{
	uint64_t value = *(const uint64_t *)((const char *)b->disk + m->value);

	if (b->disk->bytes && (value || b->disk->inodes)) /* not all file systems count inodes */
		add_number(b, m, value);
}

static void add_layer(struct builder *b, const struct metric *m)
{
	if (b->stats->layer.time)
		add_at(b, m, b->stats->layer.bytes, b->stats->layer.time, NULL);
}

/* Return: "/dev/sda", or "8:0" if the device has no name */
static const char *device_name(struct arena *a, const struct cgroup_device *d)
{
	autofree char *link = str_printf("/sys/dev/block/%u:%u", d->major, d->minor), *text = NULL;
	char target[256], *slash;
	ssize_t n;

	n = readlink(link, target, sizeof(target) - 1);
	target[n > 0 ? n : 0] = '\0';
	slash = strrchr(target, '/');
	text = slash ? str_printf("/dev%s", slash) : str_printf("%u:%u", d->major, d->minor);
	return arena_copy(a, text);
}

/* A member of struct cgroup_device. */
static void add_device(struct builder *b, const struct metric *m)
{
	const struct cgroup_device *d = b->stats->cgroup.devices.v;

	for (size_t i = 0; i < b->stats->cgroup.devices.n; i++) {
		const char *labels[] = { device_name(b->arena, &d[i]) };

		add_at(b, m, *(const uint64_t *)((const char *)&d[i] + m->value), 0, labels);
	}
}

static void add_device_usage(struct builder *b, const struct metric *m)
{
	const struct cgroup_device *d = b->stats->cgroup.devices.v;

	for (size_t i = 0; i < b->stats->cgroup.devices.n; i++) {
		autofree char *major = str_printf("%u", d[i].major);
		autofree char *minor = str_printf("%u", d[i].minor);
		const char *labels[] = { device_name(b->arena, &d[i]), arena_copy(b->arena, major),
					 arena_copy(b->arena, minor), "read" };

		add_at(b, m, d[i].read_bytes, 0, labels);
		labels[3] = "write";
		add_at(b, m, d[i].written_bytes, 0, labels);
	}
}

/* A member of struct cgroup_hugepages. */
static void add_hugepages(struct builder *b, const struct metric *m)
{
	const struct cgroup_hugepages *h = b->stats->cgroup.hugepages.v;

	for (size_t i = 0; i < b->stats->cgroup.hugepages.n; i++) {
		const char *labels[] = { arena_copy(b->arena, h[i].size) };

		add_at(b, m, *(const uint64_t *)((const char *)&h[i] + m->value), 0, labels);
	}
}

/* ---- interfaces --------------------------------------------------------------------- */

/* A member of struct link_stats, for a pod. */
static void add_link(struct builder *b, const struct metric *m)
{
	const struct link_stats *links = b->stats->links.v;

	for (size_t i = 0; i < b->stats->links.n; i++) {
		const char *labels[] = { arena_copy(b->arena, links[i].name) };

		add_at(b, m, *(const uint64_t *)((const char *)&links[i] + m->value), 0, labels);
	}
}

/* ---- the table ---------------------------------------------------------------------- */

#define COUNTER	    RUNTIME__V1__METRIC_TYPE__COUNTER
#define GAUGE	    RUNTIME__V1__METRIC_TYPE__GAUGE
#define DISK(f)	    add_disk, offsetof(struct file_space, f)
#define DEVICE(f)   add_device, offsetof(struct cgroup_device, f)
#define HUGEPAGE(f) add_hugepages, offsetof(struct cgroup_hugepages, f)
#define LIMIT(f)    add_limit, offsetof(struct oci_resources, f)
#define LINK(f)	    add_link, offsetof(struct link_stats, f)
#define MEMBER(f)   add_member, offsetof(struct stats, f)

/* clang-format off */
static const struct metric metrics[] = {
	{ "container_blkio_device_usage_total", "Bytes read from and written to a block device.",
	  COUNTER, { "device", "major", "minor", "operation" }, add_device_usage },
	{ "container_cpu_cfs_periods_total", "Periods of the CPU quota that have elapsed.",
	  COUNTER, { 0 }, add_value, CGROUP_CPU_PERIODS },
	{ "container_cpu_cfs_throttled_periods_total",
	  "Periods in which the container was throttled.",
	  COUNTER, { 0 }, add_value, CGROUP_CPU_THROTTLED_PERIODS },
	{ "container_cpu_cfs_throttled_seconds_total",
	  "Time for which the container was throttled, in seconds.",
	  COUNTER, { 0 }, add_value, CGROUP_CPU_THROTTLED_TIME, NS },
	{ "container_cpu_system_seconds_total", "CPU time used in the kernel, in seconds.",
	  COUNTER, { 0 }, add_value, CGROUP_CPU_SYSTEM, NS },
	{ "container_cpu_usage_seconds_total", "CPU time used, in seconds.",
	  COUNTER, { "cpu" }, add_cpu, CGROUP_CPU_USAGE, NS },
	{ "container_cpu_user_seconds_total", "CPU time used outside the kernel, in seconds.",
	  COUNTER, { 0 }, add_value, CGROUP_CPU_USER, NS },
	{ "container_file_descriptors", "Open file descriptors of all processes.",
	  GAUGE, { 0 }, MEMBER(files) },
	{ "container_fs_inodes_free", "Free inodes of the file system that containers write to.",
	  GAUGE, { 0 }, DISK(inodes_free) },
	{ "container_fs_inodes_total", "Inodes of the file system that containers write to.",
	  GAUGE, { 0 }, DISK(inodes) },
	{ "container_fs_limit_bytes", "Size of the file system that containers write to, in bytes.",
	  GAUGE, { 0 }, DISK(bytes) },
	{ "container_fs_reads_bytes_total", "Bytes read from a block device.",
	  COUNTER, { "device" }, DEVICE(read_bytes) },
	{ "container_fs_reads_total", "Completed reads from a block device.",
	  COUNTER, { "device" }, DEVICE(reads) },
	{ "container_fs_usage_bytes",
	  "Disk space of what the container has written to its root file system, in bytes.",
	  GAUGE, { 0 }, add_layer },
	{ "container_fs_writes_bytes_total", "Bytes written to a block device.",
	  COUNTER, { "device" }, DEVICE(written_bytes) },
	{ "container_fs_writes_total", "Completed writes to a block device.",
	  COUNTER, { "device" }, DEVICE(writes) },
	{ "container_hugetlb_max_usage_bytes", "Largest size of huge pages in use, in bytes.",
	  GAUGE, { "pagesize" }, HUGEPAGE(peak) },
	{ "container_hugetlb_usage_bytes", "Size of huge pages in use, in bytes.",
	  GAUGE, { "pagesize" }, HUGEPAGE(usage) },
	{ "container_last_seen", "When the container was last seen, in seconds since 1970.",
	  GAUGE, { 0 }, add_last_seen, 0, NS },
	{ "container_memory_cache", "Memory of the page cache, in bytes.",
	  GAUGE, { 0 }, add_value, CGROUP_MEMORY_CACHE },
	{ "container_memory_failcnt", "How often memory usage has reached its limit.",
	  COUNTER, { 0 }, add_value, CGROUP_MEMORY_LIMIT_HITS },
	{ "container_memory_failures_total", "Page faults.",
	  COUNTER, { "failure_type", "scope" }, add_faults },
	{ "container_memory_kernel_usage",
	  "Memory that the kernel uses for the container, in bytes.",
	  GAUGE, { 0 }, add_value, CGROUP_MEMORY_KERNEL },
	{ "container_memory_mapped_file", "Memory of mapped files, in bytes.",
	  GAUGE, { 0 }, add_value, CGROUP_MEMORY_MAPPED },
	{ "container_memory_max_usage_bytes", "Largest memory usage, in bytes.",
	  GAUGE, { 0 }, add_value, CGROUP_MEMORY_PEAK },
	{ "container_memory_rss", "Anonymous memory, in bytes.",
	  GAUGE, { 0 }, add_value, CGROUP_MEMORY_ANONYMOUS },
	{ "container_memory_swap", "Swap in use, in bytes.",
	  GAUGE, { 0 }, add_value, CGROUP_SWAP_USAGE },
	{ "container_memory_usage_bytes", "Memory usage, with all of the page cache, in bytes.",
	  GAUGE, { 0 }, add_value, CGROUP_MEMORY_USAGE },
	{ "container_memory_working_set_bytes", "Memory usage without inactive files, in bytes.",
	  GAUGE, { 0 }, add_working_set },
	{ "container_network_receive_bytes_total", "Bytes received.",
	  COUNTER, { "interface" }, LINK(received.bytes) },
	{ "container_network_receive_errors_total", "Errors while receiving.",
	  COUNTER, { "interface" }, LINK(received.errors) },
	{ "container_network_receive_packets_dropped_total", "Packets dropped while receiving.",
	  COUNTER, { "interface" }, LINK(received.dropped) },
	{ "container_network_receive_packets_total", "Packets received.",
	  COUNTER, { "interface" }, LINK(received.packets) },
	{ "container_network_transmit_bytes_total", "Bytes sent.",
	  COUNTER, { "interface" }, LINK(sent.bytes) },
	{ "container_network_transmit_errors_total", "Errors while sending.",
	  COUNTER, { "interface" }, LINK(sent.errors) },
	{ "container_network_transmit_packets_dropped_total", "Packets dropped while sending.",
	  COUNTER, { "interface" }, LINK(sent.dropped) },
	{ "container_network_transmit_packets_total", "Packets sent.",
	  COUNTER, { "interface" }, LINK(sent.packets) },
	{ "container_oom_events_total", "Processes killed for lack of memory.",
	  COUNTER, { 0 }, add_value, CGROUP_OOM_KILLS },
	{ "container_pressure_cpu_stalled_seconds_total",
	  "Time for which all tasks have waited for the CPU, in seconds.",
	  COUNTER, { 0 }, add_stalled, CGROUP_CPU, NS },
	{ "container_pressure_cpu_waiting_seconds_total",
	  "Time for which some tasks have waited for the CPU, in seconds.",
	  COUNTER, { 0 }, add_waiting, CGROUP_CPU, NS },
	{ "container_pressure_io_stalled_seconds_total",
	  "Time for which all tasks have waited for a device, in seconds.",
	  COUNTER, { 0 }, add_stalled, CGROUP_IO, NS },
	{ "container_pressure_io_waiting_seconds_total",
	  "Time for which some tasks have waited for a device, in seconds.",
	  COUNTER, { 0 }, add_waiting, CGROUP_IO, NS },
	{ "container_pressure_memory_stalled_seconds_total",
	  "Time for which all tasks have waited for memory, in seconds.",
	  COUNTER, { 0 }, add_stalled, CGROUP_MEMORY, NS },
	{ "container_pressure_memory_waiting_seconds_total",
	  "Time for which some tasks have waited for memory, in seconds.",
	  COUNTER, { 0 }, add_waiting, CGROUP_MEMORY, NS },
	{ "container_processes", "Processes in the container.",
	  GAUGE, { 0 }, MEMBER(processes) },
	{ "container_sockets", "Open sockets of all processes.",
	  GAUGE, { 0 }, MEMBER(sockets) },
	{ "container_spec_cpu_period", "Period of the CPU quota, in microseconds.",
	  GAUGE, { 0 }, LIMIT(cpu_period) },
	{ "container_spec_cpu_quota", "CPU quota, in microseconds in each period.",
	  GAUGE, { 0 }, LIMIT(cpu_quota) },
	{ "container_spec_cpu_shares", "CPU shares.",
	  GAUGE, { 0 }, LIMIT(cpu_shares) },
	{ "container_spec_memory_limit_bytes", "Limit of memory, in bytes.",
	  GAUGE, { 0 }, LIMIT(memory_limit) },
	{ "container_spec_memory_reservation_limit_bytes",
	  "Memory that is reserved if possible, in bytes.",
	  GAUGE, { 0 }, add_value, CGROUP_MEMORY_RESERVATION },
	{ "container_spec_memory_swap_limit_bytes", "Limit of memory and swap together, in bytes.",
	  GAUGE, { 0 }, LIMIT(memory_swap_limit) },
	{ "container_start_time_seconds", "When the container was started, in seconds since 1970.",
	  GAUGE, { 0 }, add_start_time, 0, NS },
	{ "container_threads", "Threads of all processes.",
	  GAUGE, { 0 }, add_value, CGROUP_TASKS },
	{ "container_threads_max", "Limit of the number of threads; 0: no limit.",
	  GAUGE, { 0 }, add_tasks_limit, CGROUP_TASKS_LIMIT },
	{ "container_ulimits_soft", "Soft limits of the first process.",
	  GAUGE, { "ulimit" }, add_files_limit },
};
/* clang-format on */

static bool is_of_pod(const struct metric *m)
{
	return m->add == add_link;
}

/* ---- descriptors -------------------------------------------------------------------- */

static Runtime__V1__MetricDescriptor *make_descriptor(struct arena *a, const struct metric *m)
{
	size_t n = ARRAY_SIZE(base_labels), n_extra = count_labels(m);
	Runtime__V1__MetricDescriptor *d = arena_new(a, sizeof(*d));

	runtime__v1__metric_descriptor__init(d);
	d->name = no_const(m->name);
	d->help = no_const(m->help);
	d->n_label_keys = n + n_extra;
	d->label_keys = arena_new(a, (n + n_extra) * sizeof(char *));
	for (size_t i = 0; i < n + n_extra; i++)
		d->label_keys[i] = no_const(i < n ? base_labels[i] : m->labels[i - n]);
	return d;
}

int serve_list_metric_descriptors(const void *ctx, struct rpc_call *call,
				  const ProtobufCMessage *message, struct hw_err *e)
{
	Runtime__V1__ListMetricDescriptorsResponse response =
		RUNTIME__V1__LIST_METRIC_DESCRIPTORS_RESPONSE__INIT;
	Runtime__V1__MetricDescriptor *list[ARRAY_SIZE(metrics)];
	AUTO(arena_done) struct arena arena = { 0 };

	(void)ctx;
	(void)message;
	for (size_t i = 0; i < ARRAY_SIZE(metrics); i++)
		list[i] = make_descriptor(&arena, &metrics[i]);
	response.n_descriptors = ARRAY_SIZE(list);
	response.descriptors = list;
	return api_send(call, &response.base, e);
}

/* ---- metrics ------------------------------------------------------------------------ */

static void build(struct builder *b)
{
	const struct container_spec *spec = b->container ? b->container->spec : NULL;
	const char *const labels[] = {
		b->container ? b->container->o.id : b->pod->o.id,
		spec ? spec->name : SANDBOX,
		spec ? str_or(str_empty(spec->user_image) ? spec->image : spec->user_image, "")
		     : "",
		spec ? spec->name : SANDBOX,
		b->pod->spec->namespace,
		b->pod->spec->name,
	};

	for (size_t i = 0; i < ARRAY_SIZE(labels); i++)
		b->labels[i] = labels[i];
	for (size_t i = 0; i < ARRAY_SIZE(metrics); i++)
		if (is_of_pod(&metrics[i]) == !b->container)
			metrics[i].add(b, &metrics[i]);
}

static Runtime__V1__PodSandboxMetrics *make_pod(struct arena *a, const struct stats_subject *pod,
						const struct stats *s)
{
	Runtime__V1__PodSandboxMetrics *m = arena_new(a, sizeof(*m));
	struct builder b = { .arena = a, .pod = pod->pod, .stats = s };

	runtime__v1__pod_sandbox_metrics__init(m);
	build(&b);
	m->pod_sandbox_id = no_const(pod->pod->o.id);
	m->n_metrics = b.n;
	m->metrics = b.v;
	return m;
}

static Runtime__V1__ContainerMetrics *make_container(struct arena *a,
						     const struct stats_subject *container,
						     const struct stats *s,
						     const struct file_space *disk)
{
	Runtime__V1__ContainerMetrics *m = arena_new(a, sizeof(*m));
	struct builder b = { .arena = a,
			     .pod = container->pod,
			     .container = container->container,
			     .stats = s,
			     .disk = disk };

	runtime__v1__container_metrics__init(m);
	build(&b);
	m->container_id = no_const(container->container->o.id);
	m->n_metrics = b.n;
	m->metrics = b.v;
	return m;
}

static bool is_ready(const void *ctx, const struct pod_view *pod)
{
	(void)ctx;
	return pod->state == POD_READY;
}

/* The file system that containers write to. */
static void get_disk(const struct store *store, struct file_space *ret)
{
	struct hw_err ignored;
	autoclose int fd = -1;

	fd = open(store_root(store), O_PATH | O_CLOEXEC);
	if (fd < 0 || file_space(fd, ret, &ignored) < 0)
		*ret = (struct file_space){ 0 };
}

/* Return: 0, the number of pods in *ret_n */
static int read_pods(const struct runtime_service *s, struct rpc_call *call, struct arena *a,
		     const struct stats_subject *subjects, size_t n, size_t *ret_n,
		     Runtime__V1__PodSandboxMetrics ***ret_items, struct hw_err *e)
{
	Runtime__V1__PodSandboxMetrics **items =
		arena_new(a, n * sizeof(Runtime__V1__PodSandboxMetrics *));
	AUTO(stats_list_done) struct stats_list list = { 0 };
	struct file_space disk;
	size_t n_pods = 0;
	int r;

	r = pods_stats(s->pods, subjects, n, STATS_METRICS, rpc_deadline(call), &list, e);
	if (r < 0)
		return r;
	get_disk(s->store, &disk);
	for (size_t i = 0; i < n;) {
		Runtime__V1__PodSandboxMetrics *m = make_pod(a, &subjects[i], &list.v[i]);
		size_t count = subjects_count_containers(subjects, n, i);

		m->container_metrics =
			arena_new(a, count * sizeof(Runtime__V1__ContainerMetrics *));
		for (i++; m->n_container_metrics < count; i++)
			m->container_metrics[m->n_container_metrics++] =
				make_container(a, &subjects[i], &list.v[i], &disk);
		items[n_pods++] = m;
	}
	*ret_items = items;
	*ret_n = n_pods;
	return 0;
}

int serve_list_pod_sandbox_metrics(const void *ctx, struct rpc_call *call,
				   const ProtobufCMessage *message, struct hw_err *e)
{
	Runtime__V1__ListPodSandboxMetricsResponse response =
		RUNTIME__V1__LIST_POD_SANDBOX_METRICS_RESPONSE__INIT;
	const struct runtime_service *s = ctx;
	AUTO(subjects_done) struct subjects subjects = { 0 };
	AUTO(arena_done) struct arena arena = { 0 };
	int r;

	(void)message;
	subjects_init(s->pods, is_ready, NULL, &subjects);
	r = read_pods(s, call, &arena, subjects.v, subjects.n, &response.n_pod_metrics,
		      &response.pod_metrics, e);
	return r < 0 ? r : api_send(call, &response.base, e);
}

int serve_stream_pod_sandbox_metrics(const void *ctx, struct rpc_call *call,
				     const ProtobufCMessage *message, struct hw_err *e)
{
	const struct runtime_service *s = ctx;
	AUTO(subjects_done) struct subjects subjects = { 0 };
	int r = 0;

	(void)message;
	subjects_init(s->pods, is_ready, NULL, &subjects);
	for (size_t first = 0, end; r == 0 && first < subjects.n; first = end) {
		Runtime__V1__StreamPodSandboxMetricsResponse response =
			RUNTIME__V1__STREAM_POD_SANDBOX_METRICS_RESPONSE__INIT;
		AUTO(arena_done) struct arena arena = { 0 };

		end = subjects_end_of_message(&subjects, first, PER_MESSAGE);
		r = read_pods(s, call, &arena, subjects.v + first, end - first,
			      &response.n_pod_sandbox_metrics, &response.pod_sandbox_metrics, e);
		if (r == 0)
			r = api_send(call, &response.base, e);
	}
	return r;
}
