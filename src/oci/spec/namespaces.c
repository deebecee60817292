/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/spec/namespaces.c - namespaces of a container, its user and group mappings, and its cgroup
 */
#include "oci/spec/namespaces.h"

#include <errno.h>

#include "base/str.h"

static void add_namespace(struct oci_spec *s, const char *type, const char *path)
{
	struct oci_namespace *ns;

	if (!path)
		return;
	ns = spec_append(&s->namespaces, sizeof(*ns));
	ns->type = str_copy(type);
	ns->path = str_copy(path);
}

static bool overlap(uint32_t a, uint32_t a_size, uint32_t b, uint32_t b_size)
{
	return (uint64_t)a < (uint64_t)b + b_size && (uint64_t)b < (uint64_t)a + a_size;
}

static int check_mappings(const char *what, const struct hw_list *list, struct hw_err *e)
{
	const struct oci_mapping *v = list ? list->v : NULL;

	for (size_t i = 0; v && i < list->n; i++) {
		if (v[i].size == 0 || (uint64_t)v[i].host_id + v[i].size > UINT32_MAX ||
		    (uint64_t)v[i].container_id + v[i].size > UINT32_MAX)
			return err_text(e, -EINVAL, "%s mapping %u %u %u: invalid size", what,
					v[i].container_id, v[i].host_id, v[i].size);
		for (size_t j = 0; j < i; j++)
			if (overlap(v[i].container_id, v[i].size, v[j].container_id, v[j].size) ||
			    overlap(v[i].host_id, v[i].size, v[j].host_id, v[j].size))
				return err_text(e, -EINVAL, "%s mappings overlap", what);
	}
	return 0;
}

static void copy_mappings(const struct hw_list *from, struct hw_list *to)
{
	if (from && from->n)
		*to = (struct hw_list){ mem_copy(from->v, from->n * sizeof(struct oci_mapping)),
					from->n };
}

int spec_set_namespaces(struct oci_spec *s, const struct spec_namespaces *n, struct hw_err *e)
{
	bool uids = n->uid_mappings && n->uid_mappings->n,
	     gids = n->gid_mappings && n->gid_mappings->n;
	int r;

	if ((n->user && !(uids && gids)) || (!n->user && (uids || gids)))
		return err_text(
			e, -EINVAL,
			"a user namespace needs mappings of users and groups, and the reverse");
	r = check_mappings("uid", n->uid_mappings, e);
	if (r == 0)
		r = check_mappings("gid", n->gid_mappings, e);
	if (r < 0)
		return r;
	add_namespace(s, "user", n->user);
	add_namespace(s, "mount", "");
	add_namespace(s, "pid", n->pid);
	add_namespace(s, "network", n->network);
	add_namespace(s, "ipc", n->ipc);
	add_namespace(s, "uts", n->uts);
	add_namespace(s, "cgroup", n->cgroup);
	copy_mappings(n->uid_mappings, &s->uid_mappings);
	copy_mappings(n->gid_mappings, &s->gid_mappings);
	s->cgroups_path = str_copy(n->cgroups_path);
	return 0;
}
