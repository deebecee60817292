/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/update.c - new limits of a pod
 *
 * Not:   the cgroup of the pod is not changed: its client has created it, and changes it before the
 *        call, as a kubelet does. The limits are checked, stored and shown.
 */
#include <errno.h>

#include "oci/spec/limits.h"
#include "pod/pod.h"

int pod_check_limits(const struct pods *p, const struct oci_resources *resources, const char *field,
		     struct hw_err *e)
{
	AUTO(spec_limits_done) struct oci_limits limits = { 0 };
	int r;

	r = spec_limits_init(&limits, resources, p->options.host, e);
	return r < 0 ? err_ctx(e, "%s", field) : 0;
}

static int merge(const struct pods *p, const struct limits *from,
		 const struct oci_resources *update, const char *field,
		 const struct limits **ret_limits, struct hw_err *e)
{
	int r;

	r = limits_update(from, update, ret_limits, e);
	if (r < 0)
		return err_ctx(e, "%s", field);
	return pod_check_limits(p, &(*ret_limits)->resources, field, e);
}

static int update(struct pod *pod, const struct oci_resources *resources,
		  const struct oci_resources *overhead, struct hw_err *e)
{
	AUTO(shared_unref) const struct limits *next = NULL, *next_overhead = NULL;
	int r;

	if (pod->state != POD_READY)
		return err_text(e, -EPERM, "pod sandbox %s is %s, not ready", pod->o.id,
				pod_state_name(pod->state));
	r = merge(pod->pods, pod->resources, resources, "resources", &next, e);
	if (r == 0)
		r = merge(pod->pods, pod->overhead, overhead, "overhead", &next_overhead, e);
	return r < 0 ? r : state_set_limits(pod, next, next_overhead, e);
}

int pods_update(struct pods *p, const char *id, const struct oci_resources *resources,
		const struct oci_resources *overhead, int64_t deadline, struct hw_err *e)
{
	AUTO(shared_unref) struct pod *pod = NULL;
	int r;

	r = pod_get(p, id, &pod, e);
	if (r < 0)
		return r;
	r = pod && pod->spec ? object_begin(&pod->o, deadline, e) : 1;
	if (r == 1)
		return err_text(e, -ENODATA, "no pod sandbox %.80s", id);
	if (r < 0)
		return r;
	r = update(pod, resources, overhead, e);
	object_end(&pod->o);
	return r;
}
