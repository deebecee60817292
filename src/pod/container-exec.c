/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/container-exec.c - commands in containers, and their logs
 */
#include <errno.h>

#include "base/str.h"
#include "oci/spec/spec.h"
#include "pod/container.h"

/* Return: 0 with a reference to a container that runs; -ENODATA; -EPERM */
static int find_running(struct pods *p, const char *id, struct container **ret, struct hw_err *e)
{
	AUTO(shared_unref) struct container *c = NULL;
	enum container_state state;

	c = object_get(&p->containers, id);
	if (!c || !c->spec)
		return err_text(e, -ENODATA, "no container %.80s", id);
	state = container_get_state(c);
	if (state != CONTAINER_RUNNING)
		return err_text(e, -EPERM, "container %s is %s, not running", c->o.id,
				container_state_name(state));
	*ret = take_ptr(c);
	return 0;
}

int containers_exec(struct pods *p, const char *id, const struct hw_strings *args, int cancel_fd,
		    int64_t deadline, struct exec_result *ret, struct hw_err *e)
{
	AUTO(shared_unref) struct container *c = NULL;
	AUTO(spec_done) struct oci_spec spec = { 0 };
	autofree char *bundle = NULL;
	struct runtime runtime;
	struct exec_command x = { .runtime = &runtime, .args = args, .process = &spec.process };
	int r;

	if (args->n == 0)
		return err_text(e, -EINVAL, "cmd is missing");
	r = find_running(p, id, &c, e);
	if (r < 0)
		return r;
	r = container_read_config(c, &spec, e);
	if (r < 0)
		return r;
	container_runtime(c, &runtime);
	bundle = container_dir(p, c->o.id);
	x.bundle = bundle;
	x.id = c->o.id;
	return exec_sync(&x, cancel_fd, deadline, ret, e);
}

int containers_reopen_log(struct pods *p, const char *id, int64_t deadline, struct hw_err *e)
{
	AUTO(shared_unref) struct container *c = NULL;
	autofree char *bundle = NULL;
	int r;

	r = find_running(p, id, &c, e);
	if (r < 0)
		return r;
	if (!c->log)
		return err_text(e, -EPERM, "container %s has no log", c->o.id);
	bundle = container_dir(p, c->o.id);
	return monitor_reopen_log(bundle, c->log, deadline, e);
}
