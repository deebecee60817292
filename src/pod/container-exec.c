/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/container-exec.c - commands in running containers; their logs and limits
 */
#include <errno.h>
#include <limits.h>
#include <string.h>

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
	AUTO(shared_unref) const struct limits *limits = NULL;
	AUTO(spec_done) struct oci_spec spec = { 0 };
	autofree char *bundle = NULL;
	struct runtime runtime;
	struct exec_command x = { .runtime = &runtime, .args = args, .process = &spec.process };
	int r;

	if (args->n == 0)
		return err_text(e, -EINVAL, "cmd is missing");
	if (!*args->v[0] || strlen(args->v[0]) >= PATH_MAX)
		return err_text(e, -EINVAL, "cmd[0]: expected 1 to %d bytes", PATH_MAX - 1);
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

static char *journal_of(const struct container *c)
{
	autofree char *bundle = container_dir(c->pods, c->o.id);

	return str_printf("%s/update", bundle);
}

int container_recover_limits(struct container *c, struct hw_err *e)
{
	autofree char *journal = journal_of(c), *cgroup = container_cgroup(c);
	int r;

	r = update_recover(journal, c->limits->text, e);
	if (r == 1)
		r = oom_score_set(c->pods->options.cgroups, cgroup,
				  (int)c->limits->resources.oom_score_adj, e);
	return r < 0 ? r : 0;
}

struct new_limits {
	struct container *container;
	const char *cgroup;
	const struct limits *limits;
};

/* While it runs, the journal exists: after a kill, container_recover_limits() also restores the score. */
static int store_limits(void *ctx, struct hw_err *e)
{
	const struct new_limits *n = ctx;
	int64_t before = n->container->limits->resources.oom_score_adj;
	int64_t after = n->limits->resources.oom_score_adj;
	struct hw_err ignored;
	int r;

	r = set_oom_score(n->container, n->cgroup, before, after, e);
	if (r < 0)
		err_ctx(e, "linux");
	else
		r = container_set_limits(n->container, n->limits, e);
	if (r < 0)
		(void)set_oom_score(n->container, n->cgroup, after, before, &ignored);
	return r;
}

static int update(struct container *c, const struct oci_resources *update, int64_t deadline,
		  struct hw_err *e)
{
	enum container_state state = container_get_state(c);
	AUTO(shared_unref) const struct limits *next = NULL;
	AUTO(spec_limits_done) struct oci_limits limits = { 0 };
	autofree char *cgroup = container_cgroup(c), *journal = journal_of(c);
	struct runtime runtime;
	int r;

	if (state != CONTAINER_CREATED && state != CONTAINER_RUNNING)
		return err_text(e, -EPERM, "container %s is %s", c->o.id,
				container_state_name(state));
	/* the limits change only here, by the owner */
	r = limits_update(c->limits, update, &next, e);
	if (r == 0)
		r = spec_limits_init(&limits, &next->resources, c->pods->options.host, e);
	if (r < 0)
		return err_ctx(e, "linux");
	container_runtime(c, &runtime);
	return update_limits(
		&(struct limits_update){ .runtime = &runtime,
					 .fs = c->pods->options.cgroups,
					 .cgroup = cgroup,
					 .id = c->o.id,
					 .limits = &limits,
					 .text = next->text,
					 .journal = journal,
					 .commit = store_limits,
					 .ctx = &(struct new_limits){ c, cgroup, next } },
		deadline, e);
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
