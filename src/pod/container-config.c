/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/container-config.c - config.json: what a client and an image ask for, as an OCI configuration
 *
 * How:   one function for each concern of oci/spec. What cannot be honoured is refused with the
 *        name of its field.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/os/file.h"
#include "base/str.h"
#include "oci/spec/capabilities.h"
#include "oci/spec/cdi.h"
#include "oci/spec/devices.h"
#include "oci/spec/limits.h"
#include "oci/spec/mounts.h"
#include "oci/spec/namespaces.h"
#include "oci/spec/process.h"
#include "oci/spec/security.h"
#include "oci/spec/spec.h"
#include "oci/user.h"
#include "pod/container.h"

#define CONFIG_MAX (16 << 20)
#define SECURITY   "linux.security_context."
/* Kubelet looks for it at the start of the message. */
#define RRO_UNSUPPORTED "RROUnsupported"

/* ---- namespaces --------------------------------------------------------------------- */

/* The PID namespace of the container that is meant by POD_MODE_TARGET. The path is that of a descriptor: when
 * crun opens it, the number of the process may belong to another one. */
static int find_target(const struct container *c, char **ret_path, int *ret_fd, struct hw_err *e)
{
	autofree char *path = NULL;
	autoclose int fd = -1;
	const char *id = c->spec->security.namespaces.target;
	AUTO(shared_unref) struct process *process = NULL;
	AUTO(shared_unref) struct container *target = NULL;

	target = object_get(&c->pods->containers, id);
	if (!target || target->pod != c->pod)
		return err_text(
			e, -EINVAL,
			SECURITY "namespace_options.target_id: no container %.80s in the pod", id);
	process = container_process(target);
	path = str_printf("/proc/%d/ns/pid", process ? process->pid : 0);
	fd = process ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (process && fd < 0 && errno != ENOENT && errno != ESRCH)
		return err_set(e, -errno, SECURITY "namespace_options.target_id: open %s", path);
	/* the process still lives, so the namespace is its own */
	if (fd < 0 || container_get_state(target) != CONTAINER_RUNNING ||
	    pidfd_send_signal(process->pidfd, 0, NULL, 0) < 0)
		return err_text(e, -EPERM,
				SECURITY "namespace_options.target_id: container %s does not run",
				target->o.id);
	*ret_path = str_printf("/proc/%d/fd/%d", getpid(), fd);
	*ret_fd = take_fd(fd);
	return 0;
}

/* *ret_path: NULL: that of the host; "": a new one. *ret_fd: open while @ret_path is used */
static int find_pid_namespace(const struct container *c, char **ret_path, int *ret_fd,
			      struct hw_err *e)
{
	switch (c->spec->security.namespaces.pid) {
	case POD_MODE_TARGET:
		return find_target(c, ret_path, ret_fd, e);
	case POD_MODE_NODE:
		*ret_path = NULL;
		return 0;
	case POD_MODE_CONTAINER:
		*ret_path = str_copy("");
		return 0;
	default:
		if (c->pod->spec->namespaces.pid != POD_MODE_POD)
			return err_text(e, -EINVAL,
					SECURITY
					"namespace_options.pid: the pod has no PID namespace "
					"that its containers share");
		*ret_path = pod_path(c->pods, c->pod->o.id, "pid");
		return 0;
	}
}

/* A client that sends nothing sends POD, so this means the namespace of the pod, even if that is the node's. */
static int check_mode(const char *field, int mode, int of_pod, struct hw_err *e)
{
	if (mode == POD_MODE_POD || mode == of_pod)
		return 0;
	return err_text(e, -EINVAL,
			SECURITY
			"namespace_options.%s: mode %s (%d) differs from %s (%d) of the pod",
			field, pod_mode_name(mode), mode, pod_mode_name(of_pod), of_pod);
}

static bool has_mapping(const struct pod_namespaces *n, const struct oci_mapping *want)
{
	const struct oci_mapping *found;

	found = pod_user_mapping(n);
	return found && want ? memcmp(found, want, sizeof(*found)) == 0 : !found && !want;
}

/* A client that sends nothing means that of the pod. */
static int check_user(const struct pod_namespaces *own, const struct pod_namespaces *of_pod,
		      struct hw_err *e)
{
	if (!own->has_user || has_mapping(own, pod_user_mapping(of_pod)))
		return 0;
	return err_text(e, -EINVAL,
			SECURITY "namespace_options.userns_options: differs from that of the pod");
}

static int set_namespaces(struct oci_spec *s, const struct container *c, int *ret_target,
			  struct hw_err *e)
{
	const struct pod_namespaces *n = &c->pod->spec->namespaces;
	const struct oci_mapping *mapping = pod_user_mapping(n);
	autofree char *user = pod_path(c->pods, c->pod->o.id, "user");
	autofree char *network = pod_netns_path(c->pods, c->pod->o.id);
	autofree char *ipc = pod_path(c->pods, c->pod->o.id, "ipc");
	autofree char *uts = pod_path(c->pods, c->pod->o.id, "uts");
	autofree char *cgroup = cgroup_parent_oci_path(&c->pod->cgroup, c->o.id);
	autofree char *pid = NULL;
	struct spec_namespaces ns = {
		.network = n->network == POD_MODE_POD ? network : NULL,
		.uts = n->network == POD_MODE_POD ? uts : NULL,
		.ipc = n->ipc == POD_MODE_POD ? ipc : NULL,
		/* on v1 the host's, as other runtimes do it */
		.cgroup = c->pods->options.cgroups->mode == CGROUP_V2 ? "" : NULL,
		.cgroups_path = cgroup,
		.user = mapping ? user : NULL,
		.uid_mappings = mapping ? &n->uids : NULL,
		.gid_mappings = mapping ? &n->gids : NULL,
	};
	int r;

	r = check_mode("network", c->spec->security.namespaces.network, n->network, e);
	if (r == 0)
		r = check_mode("ipc", c->spec->security.namespaces.ipc, n->ipc, e);
	if (r == 0)
		r = check_user(&c->spec->security.namespaces, n, e);
	if (r == 0)
		r = find_pid_namespace(c, &pid, ret_target, e);
	if (r < 0)
		return r;
	ns.pid = pid;
	return spec_set_namespaces(s, &ns, e);
}

/* ---- process ------------------------------------------------------------------------ */

/* The root file system is mounted. */
static int find_user(struct container *c, const struct image_config *image, struct user *ret,
		     struct hw_err *e)
{
	const struct container_security *s = &c->spec->security;
	const struct user_request request = {
		.has_uid = s->has_user,
		.has_gid = s->has_group,
		.uid = (uint32_t)s->user,
		.gid = (uint32_t)s->group,
		.name = s->username,
		.groups = s->groups.v,
		.n_groups = s->groups.n,
		.strict = s->groups_policy == GROUPS_STRICT,
		.image = image->user,
	};
	autofree char *path = container_rootfs(c->pods, c->o.id);
	autoclose int root = -1;
	int r;

	root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return err_set(e, -errno, "open %s", path);
	r = user_find(root, &request, ret, e);
	return r < 0 && !str_empty(s->username) ? err_ctx(e, SECURITY "run_as_username") : r;
}

static void set_user(struct container *c, struct user *u)
{
	c->uid = u->uid;
	c->gid = u->gid;
	c->groups = u->groups;
	u->groups = (struct hw_list){ 0 };
}

/* In a user namespace only the IDs of its mapping exist. */
static int check_mapped(const struct container *c, struct hw_err *e)
{
	const uint32_t *groups = c->groups.v;
	const struct oci_mapping *m;

	m = pod_user_mapping(&c->pod->spec->namespaces);
	if (!m)
		return 0;
	if (c->uid >= m->size)
		return err_text(e, -EINVAL, "user %u is not mapped by the pod's userns_options",
				c->uid);
	for (size_t i = 0; i < c->groups.n; i++)
		if (groups[i] >= m->size)
			return err_text(e, -EINVAL,
					"group %u is not mapped by the pod's userns_options",
					groups[i]);
	return 0;
}

static int set_process(struct oci_spec *s, const struct container *c,
		       const struct image_config *image, const char *home, struct hw_err *e)
{
	const struct container_spec *spec = c->spec;
	const struct pod_spec *pod = c->pod->spec;
	struct utsname node;
	struct spec_process p = {
		.entrypoint = &image->entrypoint,
		.cmd = &image->cmd,
		.image_env = &image->env,
		.image_cwd = image->working_dir,
		.command = &spec->command,
		.args = &spec->args,
		.env = &spec->env,
		.cwd = spec->working_dir,
		.home = home,
		.hostname = pod->hostname,
		.terminal = spec->tty,
		.no_new_privileges = spec->security.no_new_privs,
		.uid = c->uid,
		.gid = c->gid,
		.groups = c->groups.v,
		.n_groups = c->groups.n,
		.oom_score_adj = (int)spec->resources.oom_score_adj,
	};

	/* conmon opens /dev/null of the node for a crun that has a terminal, and crun changes its owner */
	if (spec->tty && pod_user_mapping(&pod->namespaces))
		return err_text(e, -EPERM, "tty is not supported in a pod with a user namespace");
	if (str_empty(p.hostname) || pod->namespaces.network == POD_MODE_NODE) {
		uname(&node);
		p.hostname = node.nodename;
	}
	return spec_set_process(s, &p, e);
}

static int set_capabilities(struct oci_spec *s, const struct container *c, struct hw_err *e)
{
	const struct container_security *security = &c->spec->security;
	struct spec_capabilities capabilities = {
		.defaults = c->pods->options.capabilities,
		.add = &security->add_capabilities,
		.drop = &security->drop_capabilities,
		.ambient = &security->ambient_capabilities,
		.privileged = security->privileged,
		.available = spec_own_capabilities(),
	};

	if (security->privileged && !c->pod->spec->privileged)
		return err_text(e, -EPERM, SECURITY "privileged: the pod is not privileged");
	return spec_set_capabilities(s, &capabilities, e) < 0 ? err_ctx(e, SECURITY "capabilities")
							      : 0;
}

/* ---- mounts ------------------------------------------------------------------------- */

/* Return: whether a list of mappings is empty, or that of the pod */
static bool is_mapping(const struct oci_mapping *of_pod, const struct hw_list *mappings)
{
	return mappings->n == 0 ||
	       (mappings->n == 1 && of_pod && memcmp(mappings->v, of_pod, sizeof(*of_pod)) == 0);
}

static int set_mounts(struct oci_spec *s, const struct container *c,
		      const struct oci_handler *handler, struct hw_err *e)
{
	const struct pod_spec *pod = c->pod->spec;
	const struct container_mount *from = c->spec->mounts.v;
	size_t n = c->spec->mounts.n, images = 0;
	autofree struct spec_mount *requested = mem_new((n + 1) * sizeof(*requested));
	autofree char *hostname = pod_path(c->pods, c->pod->o.id, "hostname");
	autofree char *hosts = pod_path(c->pods, c->pod->o.id, "hosts");
	autofree char *resolv = pod_path(c->pods, c->pod->o.id, "resolv.conf");
	autofree char *shm = pod_path(c->pods, c->pod->o.id, "shm");
	bool readonly = c->spec->security.readonly_rootfs;
	const struct spec_mount injected[] = {
		{ .container_path = "/etc/hostname", .host_path = hostname, .readonly = readonly },
		{ .container_path = "/etc/hosts", .host_path = hosts, .readonly = readonly },
		{ .container_path = "/etc/resolv.conf", .host_path = resolv, .readonly = readonly },
		{ .container_path = "/dev/shm",
		  .host_path = pod->namespaces.ipc == POD_MODE_POD ? shm : "/dev/shm" },
	};
	struct spec_mounts mounts = {
		.injected = injected,
		.n_injected = ARRAY_SIZE(injected),
		.requested = requested,
		.n_requested = n,
		.privileged = c->spec->security.privileged,
		.bind_sys = pod_user_mapping(&pod->namespaces) &&
			    pod->namespaces.network == POD_MODE_NODE,
		.rro = handler->rro,
		.idmap = handler->idmap,
	};
	const struct oci_mapping *pod_ids = pod_user_mapping(&pod->namespaces);
	struct hw_list of_devices = s->mounts; /* of CDI; they come after all others */
	int r;

	for (size_t i = 0; i < n; i++) {
		bool has_image = !str_empty(from[i].image);

		if (has_image && !(is_mapping(pod_ids, &from[i].uid_mappings) &&
				   is_mapping(pod_ids, &from[i].gid_mappings)))
			return err_text(e, -EINVAL,
					"mounts[%zu].uidMappings: an image has the mappings of "
					"the pod",
					i);
		/* a kubelet sends it on every host; without SELinux there are no labels to
		 * change */
		if (from[i].selinux_relabel && access("/sys/fs/selinux/enforce", F_OK) == 0)
			return err_text(e, -EINVAL,
					"mounts[%zu].selinux_relabel is not supported yet", i);
		requested[i] = (struct spec_mount){
			.container_path = from[i].container_path,
			.host_path = has_image ? c->mount_sources.v[images++] : from[i].host_path,
			.readonly = from[i].readonly,
			.recursive_readonly = from[i].recursive_read_only,
			.propagation = (enum spec_propagation)from[i].propagation,
			.options = &from[i].options,
			/* an image is mounted with the IDs of the pod */
			.uid_mappings = has_image ? NULL : &from[i].uid_mappings,
			.gid_mappings = has_image ? NULL : &from[i].gid_mappings,
		};
	}
	s->mounts = (struct hw_list){ 0 };
	r = spec_set_mounts(s, &mounts, e);
	for (size_t i = 0; i < of_devices.n; i++)
		*(struct oci_mount *)spec_append(&s->mounts, sizeof(struct oci_mount)) =
			((struct oci_mount *)of_devices.v)[i];
	free(of_devices.v);
	return r == -EOPNOTSUPP ? err_ctx(e, RRO_UNSUPPORTED) : r;
}

static int set_devices(struct oci_spec *s, const struct container *c, struct hw_err *e)
{
	const struct container_device *from = c->spec->devices.v;
	size_t n = c->spec->devices.n;
	autofree struct spec_device *devices = mem_new((n + 1) * sizeof(*devices));
	int r;

	for (size_t i = 0; i < n; i++)
		devices[i] = (struct spec_device){ from[i].host_path, from[i].container_path,
						   from[i].permissions };
	r = spec_set_devices(s,
			     &(struct spec_devices){ .v = devices,
						     .n = n,
						     .privileged = c->spec->security.privileged },
			     e);
	if (r == 0 && c->spec->cdi_devices.n)
		r = cdi_apply(CDI_DIRECTORIES, &c->spec->cdi_devices, s, e);
	return r;
}

/* ---- security and limits ------------------------------------------------------------ */

static int set_security(struct oci_spec *s, const struct container *c,
			const struct oci_handler *handler, struct hw_err *e)
{
	AUTO(container_seccomp_done) struct container_seccomp seccomp = { 0 };
	const struct container_security *security = &c->spec->security;
	struct spec_security to = {
		.privileged = security->privileged,
		.readonly_root = security->readonly_rootfs,
		.masked_paths = &security->masked_paths,
		.readonly_paths = &security->readonly_paths,
		.root = "",
	};

	if (container_find_seccomp(c, handler, &s->process.capabilities.bounding, &seccomp, e) < 0)
		return e->code;
	to.seccomp_bpf = seccomp.filter.data;
	to.seccomp_len = seccomp.filter.len;
	to.seccomp = seccomp.profile;
	/* a privileged container may mount, for example; a profile that was chosen for it applies */
	if (security->has_apparmor && security->apparmor.type == PROFILE_RUNTIME_DEFAULT &&
	    !security->privileged)
		to.apparmor = SPEC_APPARMOR_DEFAULT;
	if (security->has_apparmor && security->apparmor.type == PROFILE_LOCALHOST)
		to.apparmor = security->apparmor.ref;
	/* the paths are absolute, so only the profile can be refused */
	return spec_set_security(s, &to, e) < 0 ? err_ctx(e, SECURITY "apparmor") : 0;
}

static int set_limits(struct oci_spec *s, const struct container *c, struct hw_err *e)
{
	struct oci_limits limits;
	struct hw_list rules = s->limits.device_rules;
	int r;

	r = spec_limits_init(&limits, &c->spec->resources, c->pods->options.host, e);
	if (r < 0)
		return err_ctx(e, "linux.resources");
	if (limits.cpu_quota < 0) /* as in a new cgroup; crun 1.8 cannot write it on v1 */
		limits.cpu_quota = 0;
	s->limits = limits;
	s->limits.device_rules = rules;
	return 0;
}

/* Annotations that runtimes other than crun look for, and that lost.c needs. */
static void set_annotations(struct oci_spec *s, const struct container *c)
{
	const struct hw_map *own = &c->spec->annotations;
	const struct pod_spec *pod = c->pod->spec;
	AUTO(buf_done) struct buf layers = { 0 };

	for (size_t i = 0; i < own->n; i++)
		spec_annotate(s, own->keys[i], own->values[i]);
	spec_annotate(s, "io.kubernetes.cri.container-type", "container");
	spec_annotate(s, "io.kubernetes.cri.container-name", c->spec->name);
	spec_annotate(s, "io.kubernetes.cri.image-name", c->spec->image);
	spec_annotate(s, "io.kubernetes.cri.sandbox-id", c->pod->o.id);
	spec_annotate(s, "io.kubernetes.cri.sandbox-name", pod->name);
	spec_annotate(s, "io.kubernetes.cri.sandbox-namespace", pod->namespace);
	spec_annotate(s, "io.kubernetes.cri.sandbox-uid", pod->uid);
	for (size_t i = 0; i < c->layers.n; i++)
		buf_printf(&layers, "%s%s", i > 0 ? "," : "", c->layers.v[i]);
	spec_annotate(s, CONTAINER_LAYERS, str_or(layers.data, ""));
}

/* ---- config.json -------------------------------------------------------------------- */

static int build(struct oci_spec *s, struct container *c, const struct image_config *image,
		 int *ret_target, struct hw_err *e)
{
	const struct oci_handler *handler =
		handlers_find(c->pods->options.handlers, c->pod->spec->handler);
	AUTO(user_done) struct user user = { 0 };
	int r;

	s->root = container_rootfs(c->pods, c->o.id);
	r = find_user(c, image, &user, e);
	if (r < 0)
		return r;
	set_user(c, &user);
	r = check_mapped(c, e);
	if (r == 0)
		r = set_process(s, c, image, user.home, e);
	if (r == 0)
		r = set_capabilities(s, c, e);
	if (r == 0)
		r = set_namespaces(s, c, ret_target, e);
	if (r == 0)
		r = set_devices(s, c, e);
	if (r == 0)
		r = set_limits(s, c, e);
	if (r < 0)
		return r;
	set_annotations(s, c);
	r = set_security(s, c, handler, e); /* its annotation replaces one of the client */
	if (r == 0)			    /* last, because it creates missing directories */
		r = set_mounts(s, c, handler, e);
	return r;
}

int container_write_config(struct container *c, const struct image_config *image, int *ret_target,
			   struct hw_err *e)
{
	autofree char *dir = container_dir(c->pods, c->o.id), *json = NULL, *path = NULL;
	AUTO(spec_done) struct oci_spec s = { 0 };
	int r;

	r = build(&s, c, image, ret_target, e);
	if (r < 0)
		return r;
	r = spec_encode(&s, &json, e);
	if (r < 0)
		return r;
	path = str_printf("%s/config.json", dir);
	return file_replace(AT_FDCWD, path, json, strlen(json), 0600, 0, e);
}

int container_read_config(const struct container *c, struct oci_spec *ret_spec, struct hw_err *e)
{
	autofree char *dir = container_dir(c->pods, c->o.id);
	autofree char *path = str_printf("%s/config.json", dir);
	AUTO(buf_done) struct buf text = { 0 };
	int r;

	r = file_read(AT_FDCWD, path, CONFIG_MAX, &text, e);
	return r < 0 ? r : spec_decode(text.data, text.len, ret_spec, e);
}
