/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/spec/test-namespaces.c - namespaces of a container
 */
#include "oci/spec/namespaces.h"

#include <errno.h>

#include "oci/spec/test.h"

static void assert_refused(const struct spec_namespaces *n, const char *msg)
{
	AUTO(spec_done) struct oci_spec s = { 0 };
	struct hw_err e;

	assert_int_equal(spec_set_namespaces(&s, n, &e), -EINVAL);
	assert_string_equal(e.msg, msg);
}

static void host_new_or_by_path(void **state)
{
	AUTO(spec_done) struct oci_spec s = { 0 }, host = { 0 };
	struct hw_err e;

	(void)state;
	assert_ok(spec_set_namespaces(&s,
				      &(struct spec_namespaces){
					      .pid = "",
					      .network = "/run/n",
					      .ipc = "/run/i",
					      .uts = "/run/u",
					      .cgroup = "",
					      .cgroups_path = "/p/c",
				      },
				      &e),
		  &e);
	assert_spec(&s, "linux",
		    "{'namespaces':[{'type':'mount'},{'type':'pid'},{'type':'network','path':"
		    "'/run/n'},{'type':'ipc','path':'/run/i'},{'type':'uts','path':'/run/u'},"
		    "{'type':'cgroup'}],'cgroupsPath':'/p/c'}");
	assert_ok(spec_set_namespaces(&host, &(struct spec_namespaces){ 0 }, &e), &e);
	assert_spec(&host, "linux", "{'namespaces':[{'type':'mount'}]}");
}

static void a_user_namespace_has_mappings(void **state)
{
	struct oci_mapping v[] = { { 0, 100000, 65536 }, { 70000, 300000, 10 } };
	const struct hw_list one = { v, 1 }, two = { v, 2 };
	AUTO(spec_done) struct oci_spec s = { 0 };
	struct hw_err e;

	(void)state;
	assert_ok(spec_set_namespaces(&s,
				      &(struct spec_namespaces){ .user = "/run/user",
								 .uid_mappings = &two,
								 .gid_mappings = &one },
				      &e),
		  &e);
	assert_spec(&s, "linux",
		    "{'namespaces':[{'type':'user','path':'/run/user'},{'type':'mount'}],"
		    "'uidMappings':[{'containerID':0,'hostID':100000,'size':65536},{'containerID':"
		    "70000,'hostID':300000,'size':10}],'gidMappings':[{'containerID':0,'hostID':"
		    "100000,'size':65536}]}");
	assert_refused(&(struct spec_namespaces){ .user = "", .uid_mappings = &one },
		       "a user namespace needs mappings of users and groups, and the reverse");
	assert_refused(&(struct spec_namespaces){ .uid_mappings = &one, .gid_mappings = &one },
		       "a user namespace needs mappings of users and groups, and the reverse");
}

static void impossible_mappings_are_refused(void **state)
{
	struct oci_mapping empty = { 0, 1, 0 }, beyond = { 0, UINT32_MAX - 1, 2 };
	struct oci_mapping inside[] = { { 0, 10, 10 }, { 9, 100, 1 } };
	struct oci_mapping outside[] = { { 0, 10, 10 }, { 10, 19, 1 } };
	const struct {
		struct hw_list uids;
		const char *msg;
	} v[] = {
		{ { &empty, 1 }, "uid mapping 0 1 0: invalid size" },
		{ { &beyond, 1 }, "uid mapping 0 4294967294 2: invalid size" },
		{ { inside, 2 }, "uid mappings overlap" },
		{ { outside, 2 }, "uid mappings overlap" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(v); i++)
		assert_refused(&(struct spec_namespaces){ .user = "",
							  .uid_mappings = &v[i].uids,
							  .gid_mappings = &v[i].uids },
			       v[i].msg);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "namespaces: a namespace is the host's, new, or given by path",
		  host_new_or_by_path },
		{ "namespaces: a user namespace has mappings", a_user_namespace_has_mappings },
		{ "namespaces: impossible mappings are refused", impossible_mappings_are_refused },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
