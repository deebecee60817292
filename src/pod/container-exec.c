/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/container-exec.c - commands in running containers; their logs and limits
 */
#include <errno.h>

#include "base/str.h"
#include "oci/oom-score.h"
#include "oci/run/update.h"
#include "oci/spec/limits.h"
#include "oci/spec/spec.h"
#include "pod/container.h"

/* Return: 0 with a reference to a container that runs; -ENODATA; -EPERM */
static int find_running(struct pods *p, const char *id, struct container **ret, struct hw_err *e)
{
	AUTO(shared_unref) struct container *c = NULL;
	enum container_state state;
	int r;

	r = container_get(p, id, &c, e);
	if (r < 0)
		return r;
	if (r == 0 || !c->spec)
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
	AUTO(shared_unref) const struct container_limits *limits = NULL;
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
	/* config.json has the score from before an UpdateContainerResources. */
	limits = container_get_limits(c);
	spec.process.oom_score_adj = (int)limits->resources.oom_score_adj;
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
	r = monitor_reopen_log(bundle, c->log, deadline, e);
	return r == -ESRCH ? err_replace(e, r, -EPERM) : r; /* it is just ending */
}

/* ---- limits ------------------------------------------------------------------------- */

/* Return: 0 also if the score does not change */
static int set_oom_score(struct container *c, const char *cgroup, int64_t from, int64_t to,
			 struct hw_err *e)
{
	return from == to ? 0 : oom_score_set(c->pods->options.cgroups, cgroup, (int)to, e);
}

static int update(struct container *c, const struct oci_resources *update, int64_t deadline,
		  struct hw_err *e)
{
	enum container_state state = container_get_state(c);
	AUTO(shared_unref) const struct container_limits *next = NULL;
	AUTO(resources_done) struct oci_resources merged = { 0 };
	AUTO(spec_limits_done) struct oci_limits limits = { 0 };
	autofree char *cgroup = container_cgroup(c);
	int64_t old_score = c->limits->resources.oom_score_adj;
	struct hw_err ignored;
	struct runtime runtime;
	int r;

	if (state != CONTAINER_CREATED && state != CONTAINER_RUNNING)
		return err_text(e, -EPERM, "container %s is %s", c->o.id,
				container_state_name(state));
	/* the limits change only here, by the owner */
	resources_merge(&c->limits->resources, update, &merged);
	r = spec_limits_init(&limits, &merged, c->pods->options.host, e);
	if (r < 0)
		return err_ctx(e, "linux");
	r = set_oom_score(c, cgroup, old_score, merged.oom_score_adj, e);
	if (r < 0)
		return err_ctx(e, "linux");
	container_runtime(c, &runtime);
	r = update_limits(&runtime, c->pods->options.cgroups, cgroup, c->o.id, &limits, deadline,
			  e);
	if (r < 0) {
		(void)set_oom_score(c, cgroup, merged.oom_score_adj, old_score, &ignored);
		return r;
	}
	next = container_limits_new(&merged);
	return container_set_limits(c, next, e);
}

int containers_update(struct pods *p, const char *id, const struct oci_resources *resources,
		      int64_t deadline, struct hw_err *e)
{
	AUTO(shared_unref) struct container *c = NULL;
	int r;

	r = container_get(p, id, &c, e);
	if (r < 0)
		return r;
	r = c && c->spec ? object_begin(&c->o, deadline, e) : 1;
	if (r == 1)
		return err_text(e, -ENODATA, "no container %.80s", id);
	if (r < 0)
		return r;
	r = update(c, resources, deadline, e);
	object_end(&c->o);
	return r;
}
