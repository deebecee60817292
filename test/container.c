/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test/container.c - command line of the containers of src/pod, for test/faults
 *
 *	container DIR pod [pause] [userns]
 *	                                 create the pod "pod", which uses the host's network; pause: its
 *	                                 containers share a PID namespace; userns: it has a user namespace
 *	container DIR create NAME IMAGE [seccomp | VOLUME]
 *	                                 create a container that prints "ready", and ends with 7 on SIGTERM;
 *	                                 seccomp: with the profile RuntimeDefault; VOLUME: an image, of
 *	                                 which /bin is mounted
 *	container DIR start NAME
 *	container DIR stop NAME GRACE
 *	container DIR remove NAME
 *	container DIR exec NAME WORD...  run a command and print its output
 *	container DIR update NAME BYTES  change the memory limit
 *	container DIR limits NAME        print the memory limit, and that of the kernel
 *	container DIR rmi IMAGE
 *	container DIR recover            wait until nothing is left of interrupted operations
 *	container DIR list               print a line for each container: name, state, exit code, process ID
 *
 * See node.h for what all commands do. The image store is DIR/root, too.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/os/file.h"
#include "base/str.h"
#include "base/time.h"
#include "image/store/store.h"
#include "node.h"
#include "pod/containers.h"

/* Its child outlives it in a PID namespace that it shares. */
#define SCRIPT "trap 'exit 7' TERM; sleep 100000 & echo ready; wait"

static int64_t soon(void)
{
	return time_deadline(NODE_TIMEOUT_MS);
}

/* ---- pod and image ------------------------------------------------------------------ */

static int create_pod(struct node *n, char **args, struct hw_err *e)
{
	AUTO(shared_unref) struct pod_spec *spec = pod_spec_new();
	char id[POD_ID];
	int r;

	spec->name = str_copy("pod");
	spec->namespace = str_copy("default");
	spec->uid = str_copy("uid");
	spec->log_directory = str_copy(n->logs);
	spec->namespaces.network = POD_MODE_NODE;
	spec->namespaces.pid = POD_MODE_CONTAINER;
	for (size_t i = 0; args[i]; i++)
		if (str_equal(args[i], "userns"))
			node_set_user_namespace(spec);
		else
			spec->namespaces.pid = POD_MODE_POD;
	r = pod_spec_seal(spec, e);
	return r < 0 ? r : pods_create(n->pods, spec, soon(), id, e);
}

static int remove_image(struct node *n, char **args, struct hw_err *e)
{
	return store_image_remove(n->store, args[0], e);
}

/* ---- containers --------------------------------------------------------------------- */

static struct container_mount *make_volume(const char *image)
{
	struct container_mount *m = mem_new(sizeof(*m));

	*m = (struct container_mount){ .container_path = str_copy("/mnt"),
				       .image = str_copy(image),
				       .image_sub_path = str_copy("bin"),
				       .readonly = true };
	return m;
}

static int create_container(struct node *n, char **args, struct hw_err *e)
{
	AUTO(shared_unref) struct container_spec *spec = container_spec_new();
	AUTO(shared_unref) const struct pods_view *pods = pods_view(n->pods);
	char pod[POD_ID], id[OBJECT_ID];
	int r;

	if (!node_find_pod(n, "pod", pod))
		return err_text(e, -ENODATA, "no pod");
	spec->name = str_copy(args[0]);
	spec->image = str_copy(args[1]);
	spec->log_path = str_printf("%s.log", args[0]);
	spec->security.has_seccomp =
		args[2] && str_equal(args[2], "seccomp"); /* RuntimeDefault is 0 */
	if (args[2] && !spec->security.has_seccomp)
		spec->mounts = (struct hw_list){ make_volume(args[2]), 1 };
	strings_add(&spec->command, "/bin/sh");
	strings_add(&spec->command, "-c");
	strings_add(&spec->command, SCRIPT);
	spec->security.namespaces.pid = pods_view_find(pods, pod)->spec->namespaces.pid;
	r = container_spec_seal(spec, e);
	return r < 0 ? r : containers_create(n->pods, pod, spec, soon(), id, e);
}

static const char *name_of(const struct container_view *c)
{
	return c->spec ? c->spec->name : c->o.id;
}

/* Return: 1 with the ID, or 0 if there is no such container */
static int find_container(struct node *n, const char *name, char ret_id[OBJECT_ID])
{
	AUTO(shared_unref) const struct containers_view *view = containers_view(n->pods);

	for (size_t i = 0; i < view->n; i++) {
		if (!str_equal(name_of(view->containers[i]), name))
			continue;
		memcpy(ret_id, view->containers[i]->o.id, OBJECT_ID);
		return 1;
	}
	return 0;
}

static int need_container(struct node *n, const char *name, char ret_id[OBJECT_ID],
			  struct hw_err *e)
{
	return find_container(n, name, ret_id) ? 0 : err_text(e, -ENODATA, "no container %s", name);
}

static int start_container(struct node *n, char **args, struct hw_err *e)
{
	char id[OBJECT_ID];
	int r;

	r = need_container(n, args[0], id, e);
	return r < 0 ? r : containers_start(n->pods, id, soon(), e);
}

static int stop_container(struct node *n, char **args, struct hw_err *e)
{
	char id[OBJECT_ID];
	long long grace;

	if (!str_to_int64(args[1], 0, 3600, &grace))
		return err_text(e, -EINVAL, "grace \"%s\"", args[1]);
	return find_container(n, args[0], id) ? containers_stop(n->pods, id, grace, soon(), e) : 0;
}

static int remove_container(struct node *n, char **args, struct hw_err *e)
{
	char id[OBJECT_ID];

	return find_container(n, args[0], id) ? containers_remove(n->pods, id, 0, soon(), e) : 0;
}

static int exec_in_container(struct node *n, char **args, struct hw_err *e)
{
	AUTO(exec_result_done) struct exec_result result = { 0 };
	AUTO(hw_strings_free) struct hw_strings words = { 0 };
	char id[OBJECT_ID];
	int r;

	for (size_t i = 1; args[i]; i++)
		strings_add(&words, args[i]);
	r = need_container(n, args[0], id, e);
	if (r == 0)
		r = containers_exec(n->pods, id, &words, -1, soon(), &result, e);
	if (r < 0)
		return r;
	fwrite(str_or(result.output.data, ""), 1, result.output.len, stdout);
	return result.code == 0 ? 0 : err_text(e, -EIO, "exit code %d", result.code);
}

static int update_container(struct node *n, char **args, struct hw_err *e)
{
	struct oci_resources update = { 0 };
	char id[OBJECT_ID];
	long long bytes;
	int r;

	if (!str_to_int64(args[1], 1, INT64_MAX, &bytes))
		return err_text(e, -EINVAL, "bytes \"%s\"", args[1]);
	update.memory_limit = bytes;
	r = need_container(n, args[0], id, e);
	return r < 0 ? r : containers_update(n->pods, id, &update, soon(), e);
}

static int print_limits(struct node *n, char **args, struct hw_err *e)
{
	AUTO(shared_unref) const struct containers_view *view = containers_view(n->pods);
	const struct cgroup_hierarchy *h = cgroup_find_hierarchy(n->cgroups, "memory");
	AUTO(buf_done) struct buf text = { 0 };
	const struct container_view *c;
	autofree char *path = NULL;
	char id[OBJECT_ID];
	int r;

	r = need_container(n, args[0], id, e);
	if (r < 0)
		return r;
	c = containers_view_find(view, id);
	path = str_printf("%s/hawser/%s/%s/%s", h->dir, c->pod, id,
			  h->v2 ? "memory.max" : "memory.limit_in_bytes");
	r = file_read(AT_FDCWD, path, 100, &text, e);
	if (r == 0)
		printf("%" PRId64 " %s", c->limits->resources.memory_limit, str_or(text.data, ""));
	return r;
}

static bool is_settled(struct node *n)
{
	AUTO(shared_unref) const struct containers_view *view = containers_view(n->pods);

	for (size_t i = 0; i < view->n; i++) {
		enum container_state state = view->containers[i]->status.state;

		if (state == CONTAINER_MAKING || state == CONTAINER_REMOVING)
			return false;
	}
	return true;
}

static int recover_containers(struct node *n, char **args, struct hw_err *e)
{
	(void)args;
	return node_wait(n, is_settled, e);
}

static int list_containers(struct node *n, char **args, struct hw_err *e)
{
	AUTO(shared_unref) const struct containers_view *view = containers_view(n->pods);

	(void)args;
	(void)e;
	for (size_t i = 0; i < view->n; i++) {
		const struct container_view *c = view->containers[i];

		printf("%s %s %d %d\n", name_of(c), container_state_name(c->status.state),
		       c->status.exit_code, c->pid);
	}
	return 0;
}

static const struct node_command commands[] = {
	{ "pod", 0, create_pod },	   { "create", 2, create_container },
	{ "start", 1, start_container },   { "stop", 2, stop_container },
	{ "remove", 1, remove_container }, { "exec", 2, exec_in_container },
	{ "update", 2, update_container }, { "limits", 1, print_limits },
	{ "rmi", 1, remove_image },	   { "recover", 0, recover_containers },
	{ "list", 0, list_containers },
};

int main(int argc, char **argv)
{
	static const struct node_program program = {
		.name = "container",
		.usage = "pod [pause] [userns] | create NAME IMAGE [seccomp | VOLUME] | start NAME "
			 "| "
			 "stop NAME GRACE | "
			 "remove NAME | exec NAME WORD... | update NAME BYTES | limits NAME | "
			 "rmi IMAGE | recover | list",
		.commands = commands,
		.n_commands = ARRAY_SIZE(commands),
		.containers = true,
	};

	return node_main(argc, argv, &program);
}
