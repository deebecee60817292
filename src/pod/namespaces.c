/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/namespaces.c - the namespaces of a pod
 *
 * How:   a new thread calls unshare(), so that nothing else in the daemon moves. It sets what can
 *        be set only inside the namespaces, binds /proc/thread-self/ns/NAME to the pins, and ends.
 *        With a user namespace, it enters the others, but not the user namespace itself: so it keeps its
 *        rights.
 *        The PID namespace needs a first process: the thread starts hawser-pause, which waits until
 *        its process ID is stored in the directory. If the daemon dies before, hawser-pause ends.
 */
#include "pod/namespaces.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/os/file.h"
#include "base/os/mount.h"
#include "base/os/namespace.h"
#include "base/os/netns.h"
#include "base/os/thread.h"
#include "base/os/userns.h"
#include "base/str.h"
#include "base/time.h"
#include "image/store/mount.h"
#include "net/rtnl/link.h"
#include "net/rtnl/rtnl.h"
#include "net/sysctl.h"
#include "oci/pause.h"

#define PAUSE_FILE   "pause"
#define STATUS_MAX   (16 << 10) /* of /proc/PID/status */
#define PAUSE_END_MS 10000	/* for the end of hawser-pause after SIGKILL */

/* ---- pins --------------------------------------------------------------------------- */

static int pin(const char *ns, const char *path, struct hw_err *e)
{
	autoclose int fd = -1;

	fd = open(path, O_RDONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0444);
	if (fd < 0)
		return err_set(e, -errno, "create %s", path);
	if (mount(ns, path, NULL, MS_BIND, NULL) < 0)
		return err_set(e, -errno, "mount %s at %s", ns, path);
	return 0;
}

static int unpin(const char *path, struct hw_err *e)
{
	int r;

	r = mount_detach(path, e);
	if (r < 0)
		return r;
	if (unlink(path) < 0 && errno != ENOENT)
		return err_set(e, -errno, "remove %s", path);
	return 0;
}

static int pin_in_dir(const char *dir, const char *name, const char *ns, struct hw_err *e)
{
	autofree char *path = str_printf("%s/%s", dir, name);

	return pin(ns, path, e);
}

/* ---- inside the new namespaces ------------------------------------------------------ */

struct job {
	const struct namespaces_new *n;
	int user; /* the user namespace; -1: that of the host */
	int pid;
	struct hw_strings later;
	int result;
	struct hw_err *e;
};

static bool has_key(const struct hw_map *map, const char *key)
{
	for (size_t i = 0; i < map->n; i++)
		if (str_equal(map->keys[i], key))
			return true;
	return false;
}

/* Whatever the reason is, the request asks for a value that this kernel does not accept. */
static int sysctl_error(struct hw_err *e)
{
	return err_text(e, -EINVAL, "linux.sysctls: %s", e->msg);
}

/* An interface of the pod exists only after ADD, and so do its sysctls. */
static int set_sysctl(struct job *job, const char *name, const char *value, struct hw_err *e)
{
	int r;

	r = sysctl_write(-1, name, value, e);
	if (r == -ENOENT && pod_sysctl_kind(name) == POD_SYSCTL_NETWORK) {
		strings_add(&job->later, name);
		return 0;
	}
	return r < 0 ? sysctl_error(e) : 0;
}

static int set_sysctls(struct job *job, struct hw_err *e)
{
	const struct hw_map *own = &job->n->spec->sysctls, *all = job->n->default_sysctls;
	bool has_netns = job->n->spec->namespaces.network == POD_MODE_POD;
	int r = 0;

	for (size_t i = 0; r == 0 && has_netns && all && i < all->n; i++)
		if (!has_key(own, all->keys[i]))
			r = sysctl_write(-1, all->keys[i], all->values[i], e);
	for (size_t i = 0; r >= 0 && i < own->n; i++)
		r = set_sysctl(job, own->keys[i], own->values[i], e);
	return r < 0 ? r : 0;
}

static int set_lo_up(struct hw_err *e)
{
	AUTO(rtnl_close) struct rtnl *nl = NULL;
	struct link lo = { .name = "lo" };
	int r;

	r = rtnl_open(-1, &nl, e);
	if (r < 0)
		return r;
	link_set_up(nl, &lo);
	return rtnl_commit(nl, e);
}

static int start_pause(struct job *job, struct hw_err *e)
{
	AUTO(pause_process_done) struct pause_process pause = { .pidfd = -1, .go = -1 };
	char ns[64], text[16];
	int r;

	r = pause_start(job->n->pause, job->n->procs, job->user, &pause, e);
	if (r < 0)
		return r;
	job->pid = pause.pid;
	snprintf(ns, sizeof(ns), "/proc/%d/ns/pid", job->pid);
	snprintf(text, sizeof(text), "%d\n", job->pid);
	r = pin_in_dir(job->n->dir, "pid", ns, e);
	if (r == 0) {
		autofree char *path = str_printf("%s/" PAUSE_FILE, job->n->dir);

		r = file_replace(AT_FDCWD, path, text, strlen(text), 0600, 0, e);
	}
	return r < 0 ? r : pause_go(&pause, e);
}

static int enter(int fd, const char *name, struct hw_err *e)
{
	return fd >= 0 && setns(fd, 0) < 0 ? err_set(e, -errno, "enter the %s namespace", name) : 0;
}

static int pin_fd(const char *dir, const char *name, int fd, struct hw_err *e)
{
	autofree char *path = str_printf("/proc/self/fd/%d", fd);

	return pin_in_dir(dir, name, path, e);
}

/* Creates a user namespace, and enters others that belong to it. */
static int create_with_user(struct job *job, const struct oci_mapping *m, int others,
			    struct hw_err *e)
{
	AUTO(userns_done) struct userns ns = USERNS_NONE;
	int r;

	r = userns_create(m->host_id, m->size, others, &ns, e);
	if (r == 0)
		r = pin_fd(job->n->dir, "user", ns.user, e);
	if (r == 0)
		r = enter(ns.net, "network", e);
	if (r == 0)
		r = enter(ns.uts, "UTS", e);
	if (r == 0)
		r = enter(ns.ipc, "IPC", e);
	if (r == 0)
		job->user = take_fd(ns.user);
	return r;
}

static int create_or_enter(struct job *job, int flags, struct hw_err *e)
{
	const struct oci_mapping *m = pod_user_mapping(&job->n->spec->namespaces);

	if (m)
		return create_with_user(job, m, flags, e);
	return unshare(flags) < 0 ? err_set(e, -errno, "create namespaces") : 0;
}

static int create(struct job *job, struct hw_err *e)
{
	const struct namespaces_new *n = job->n;
	bool net = n->spec->namespaces.network == POD_MODE_POD;
	bool ipc = n->spec->namespaces.ipc == POD_MODE_POD;
	const char *hostname = str_or(n->spec->hostname, "");
	int r;

	r = create_or_enter(job, (net ? CLONE_NEWNET | CLONE_NEWUTS : 0) | (ipc ? CLONE_NEWIPC : 0),
			    e);
	if (r < 0)
		return r;
	if (net && *hostname && sethostname(hostname, strlen(hostname)) < 0)
		return err_set(e, -errno, "set host name \"%s\"", hostname);
	r = set_sysctls(job, e);
	if (r == 0 && net)
		r = set_lo_up(e);
	if (r == 0 && net)
		r = pin("/proc/thread-self/ns/net", n->netns, e);
	if (r == 0 && net)
		r = pin_in_dir(n->dir, "uts", "/proc/thread-self/ns/uts", e);
	if (r == 0 && ipc)
		r = pin_in_dir(n->dir, "ipc", "/proc/thread-self/ns/ipc", e);
	if (r == 0 && n->spec->namespaces.pid == POD_MODE_POD)
		r = start_pause(job, e);
	return r;
}

static void *create_thread(void *arg)
{
	struct job *job = arg;

	job->result = create(job, job->e);
	return NULL;
}

/* ---- interface ---------------------------------------------------------------------- */

int namespaces_create(const struct namespaces_new *n, int *ret_pid, struct hw_strings *ret_later,
		      struct hw_err *e)
{
	struct job job = { .n = n, .user = -1, .e = e };
	pthread_t thread;
	int r;

	r = thread_start(create_thread, &job, &thread, e);
	if (r < 0)
		return r;
	pthread_join(thread, NULL);
	mem_close_fd(&job.user);
	if (job.result < 0) {
		hw_strings_free(&job.later);
		return job.result;
	}
	*ret_pid = job.pid;
	*ret_later = job.later;
	return 0;
}

int namespaces_set_sysctls(const char *netns, const struct pod_spec *spec,
			   const struct hw_strings *names, struct hw_err *e)
{
	autoclose int fd = -1;
	int r = 0;

	if (names->n == 0)
		return 0;
	fd = open(netns, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_set(e, -errno, "open %s", netns);
	for (size_t i = 0; r >= 0 && i < spec->sysctls.n; i++)
		if (strings_has(names, spec->sysctls.keys[i]))
			r = sysctl_write(fd, spec->sysctls.keys[i], spec->sysctls.values[i], e);
	return r < 0 ? sysctl_error(e) : 0;
}

/* Whether a process is hawser-pause, as process 1 of a PID namespace. */
static bool is_pause(int pid)
{
	autofree char *exe = str_printf("/proc/%d/exe", pid);
	autofree char *status = str_printf("/proc/%d/status", pid);
	AUTO(buf_done) struct buf text = { 0 };
	char program[PATH_MAX] = "";
	struct hw_err ignored;
	const char *ids, *end;

	if (readlink(exe, program, sizeof(program) - 1) < 0 ||
	    !strstr(program, "/hawser-pause") || /* perhaps "... (deleted)", after an upgrade */
	    file_read(AT_FDCWD, status, STATUS_MAX, &text, &ignored) < 0 || !text.data)
		return false;
	ids = strstr(text.data, "\nNSpid:"); /* from our namespace to its own */
	end = ids ? strchr(ids + 1, '\n') : NULL;
	return end && end[-1] == '1' && end[-2] == '\t';
}

static bool is_same_namespace(const char *pin, int pid, const char *name)
{
	autofree char *path = str_printf("/proc/%d/ns/%s", pid, name);
	struct namespace_id pinned, found;
	struct hw_err ignored;

	return namespace_get(pin, &pinned, &ignored) > 0 &&
	       namespace_get(path, &found, &ignored) > 0 && pinned.dev == found.dev &&
	       pinned.ino == found.ino;
}

/* Finds the PID namespace of hawser-pause without its pin: the process is also in the pod's other namespaces.
 * Return: 1; 0 if the process is not recognized; or a negative errno */
static int find_pid_namespace(int pid, const char *netns, const char *dir,
			      struct namespace_id *ret_ns, struct hw_err *e)
{
	autofree char *own = str_printf("/proc/%d/ns/pid", pid);
	autofree char *ipc = str_printf("%s/ipc", dir);
	struct namespace_id ns;
	int r;

	/* read first: pause_kill() checks that the process still has this namespace */
	r = namespace_get(own, &ns, e);
	if (r <= 0)
		return r;
	if (!is_pause(pid) ||
	    !(is_same_namespace(ipc, pid, "ipc") || is_same_namespace(netns, pid, "net")))
		return 0;
	*ret_ns = ns;
	return 1;
}

/* The process ID in the file may meanwhile belong to another process: hawser-pause is recognized by its
 * PID namespace. */
static int kill_pause(const char *netns, const char *dir, struct hw_err *e)
{
	autofree char *file = str_printf("%s/" PAUSE_FILE, dir);
	autofree char *ns = str_printf("%s/pid", dir);
	AUTO(buf_done) struct buf text = { 0 };
	struct namespace_id id;
	long long pid;
	int r;

	r = file_read_if_exists(AT_FDCWD, file, 64, &text, e);
	if (r <= 0)
		return r;
	text.data[strcspn(text.data, "\n")] = '\0';
	if (!str_to_int64(text.data, 1, INT32_MAX, &pid))
		return 0;
	r = namespace_get(ns, &id, e);
	if (r == 0)
		r = find_pid_namespace((int)pid, netns, dir, &id, e);
	return r <= 0 ? r : pause_kill((pid_t)pid, &id, time_deadline(PAUSE_END_MS), e);
}

int namespaces_remove(const char *netns, const char *dir, struct hw_err *e)
{
	static const char *const names[] = { "pid", "ipc", "uts", "user" };
	int r;

	r = kill_pause(netns, dir, e);
	if (r == 0)
		r = unpin(netns, e);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(names); i++) {
		autofree char *path = str_printf("%s/%s", dir, names[i]);

		r = unpin(path, e);
	}
	return r;
}

/* ---- probe -------------------------------------------------------------------------- */

#define PROBE_HOST_ID 65536

int namespaces_probe_user(const char *root, const char *state, struct hw_err *e)
{
	autofree char *layer = str_printf("%s/containers", root);
	autofree char *target = str_printf("%s/userns-probe", state);
	autofree char *empty = str_printf("%s/crun", state);
	const struct mount_layer layers[] = { { .path = layer } };
	AUTO(userns_done) struct userns ns = USERNS_NONE;
	struct hw_err ignored;
	int r;

	r = userns_create(PROBE_HOST_ID, PROBE_HOST_ID, 0, &ns, e);
	if (r == 0)
		r = file_mkdirs(AT_FDCWD, target, 0700, e);
	if (r < 0)
		return r;
	r = mount_overlay(&(struct mount_stack){ .layers = layers,
						 .n = ARRAY_SIZE(layers),
						 .empty = empty,
						 .userns = ns.user },
			  target, e);
	if (mount_detach(target, &ignored) == 0)
		rmdir(target);
	return r;
}
