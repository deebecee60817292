/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/test-cgroup-parent.c - cgroup parents of pods
 */
#include "oci/cgroup-parent.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "oci/cgroup.h"

#define POD "0123"

struct valid {
	enum cgroup_driver driver;
	const char *given, *path, *child, *oci;
};

static const struct valid valid[] = {
	{ CGROUP_CGROUPFS, "", "/hawser/0123", "/hawser/0123/c1", "/hawser/0123/c1" },
	{ CGROUP_CGROUPFS, "/kubepods/burstable/pod1", "/kubepods/burstable/pod1",
	  "/kubepods/burstable/pod1/c1", "/kubepods/burstable/pod1/c1" },
	{ CGROUP_CGROUPFS, "tests", "/tests", "/tests/c1", "/tests/c1" },
	{ CGROUP_CGROUPFS, "/", "/", "/c1", "/c1" },
	{ CGROUP_SYSTEMD, "", "/hawser.slice/hawser-0123.slice",
	  "/hawser.slice/hawser-0123.slice/hawser-c1.scope", "hawser-0123.slice:hawser:c1" },
	{ CGROUP_SYSTEMD, "kubepods-burstable-pod1_2.slice",
	  "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1_2.slice",
	  "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1_2.slice/"
	  "hawser-c1.scope",
	  "kubepods-burstable-pod1_2.slice:hawser:c1" },
	{ CGROUP_SYSTEMD, "/kubepods.slice/kubepods-pod1.slice",
	  "/kubepods.slice/kubepods-pod1.slice",
	  "/kubepods.slice/kubepods-pod1.slice/hawser-c1.scope", "kubepods-pod1.slice:hawser:c1" },
	{ CGROUP_SYSTEMD, "kubepods.slice/kubepods-pod1.slice",
	  "/kubepods.slice/kubepods-pod1.slice",
	  "/kubepods.slice/kubepods-pod1.slice/hawser-c1.scope", "kubepods-pod1.slice:hawser:c1" },
	{ CGROUP_SYSTEMD, "/test.slice", "/test.slice", "/test.slice/hawser-c1.scope",
	  "test.slice:hawser:c1" },
};

static void valid_parents(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(valid); i++) {
		const struct valid *v = &valid[i];
		AUTO(cgroup_parent_done) struct cgroup_parent p = { 0 };
		autofree char *child = NULL, *oci = NULL;
		struct hw_err e;

		if (cgroup_parent_init(&p, v->driver, v->given, POD, &e) < 0)
			fail_msg("%s", e.msg);
		child = cgroup_parent_child(&p, "c1");
		oci = cgroup_parent_oci_path(&p, "c1");
		assert_string_equal(p.path, v->path);
		assert_string_equal(child, v->child);
		assert_string_equal(oci, v->oci);
		assert_int_equal(p.own, str_empty(v->given));
		assert_true(cgroup_path_is_valid(child));
	}
}

struct invalid {
	enum cgroup_driver driver;
	const char *given, *message;
};

static const struct invalid invalid[] = {
	{ CGROUP_CGROUPFS, "kubepods-pod1.slice",
	  "cgroup parent \"kubepods-pod1.slice\" is a slice, but the cgroup driver is cgroupfs" },
	{ CGROUP_CGROUPFS, "/test.slice",
	  "cgroup parent \"/test.slice\" is a slice, but the cgroup driver is cgroupfs" },
	{ CGROUP_CGROUPFS, "/a/../b", "cgroup parent \"/a/../b\" is not a valid path" },
	{ CGROUP_CGROUPFS, "..", "cgroup parent \"..\" is not a valid path" },
	{ CGROUP_CGROUPFS, "/a/", "cgroup parent \"/a/\" is not a valid path" },
	{ CGROUP_SYSTEMD, "/kubepods/pod1",
	  "cgroup parent \"/kubepods/pod1\" is not a slice, but the cgroup driver is systemd" },
	{ CGROUP_SYSTEMD, ".slice",
	  "cgroup parent \".slice\" is not a slice, but the cgroup driver is systemd" },
	{ CGROUP_SYSTEMD, "-.slice",
	  "cgroup parent \"-.slice\" is not a slice, but the cgroup driver is systemd" },
	{ CGROUP_SYSTEMD, "a--b.slice",
	  "cgroup parent \"a--b.slice\" is not a slice, but the cgroup driver is systemd" },
	{ CGROUP_SYSTEMD, "a-.slice",
	  "cgroup parent \"a-.slice\" is not a slice, but the cgroup driver is systemd" },
	{ CGROUP_SYSTEMD, "a:b c.slice",
	  "cgroup parent \"a:b c.slice\" is not a slice, but the cgroup driver is systemd" },
	{ CGROUP_SYSTEMD, "/x.slice/a-b.slice",
	  "cgroup parent \"/x.slice/a-b.slice\": the path of a-b.slice is /a.slice/a-b.slice" },
	{ CGROUP_SYSTEMD, "../a.slice",
	  "cgroup parent \"../a.slice\": the path of a.slice is /a.slice" },
};

static void invalid_parents(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(invalid); i++) {
		struct cgroup_parent p = { 0 };
		struct hw_err e;

		assert_int_equal(
			cgroup_parent_init(&p, invalid[i].driver, invalid[i].given, POD, &e),
			-EINVAL);
		assert_string_equal(e.msg, invalid[i].message);
		assert_null(p.path);
	}
}

/* Return: @n times @part, and @end */
static char *repeat(const char *part, size_t n, const char *end)
{
	AUTO(buf_done) struct buf b = { 0 };

	while (n-- > 0)
		buf_puts(&b, part);
	buf_puts(&b, end);
	return buf_take(&b);
}

static void long_parents(void **state)
{
	autofree char *longest = repeat("/abc", 256, ""), *longer = repeat("/abc", 256, "d");
	autofree char *name = repeat("x", 256, ""), *deep = repeat("a-", 120, "a.slice");
	autofree char *slice = repeat("x", 250, ".slice");
	AUTO(cgroup_parent_done) struct cgroup_parent p = { 0 };
	struct hw_err e;

	(void)state;
	if (cgroup_parent_init(&p, CGROUP_CGROUPFS, longest, POD, &e) < 0)
		fail_msg("%s", e.msg);
	cgroup_parent_done(&p);
	assert_int_equal(cgroup_parent_init(&p, CGROUP_CGROUPFS, longer, POD, &e), -EINVAL);
	assert_true(str_ends(e.msg, " has more than 1024 bytes"));
	assert_int_equal(cgroup_parent_init(&p, CGROUP_CGROUPFS, name, POD, &e), -EINVAL);
	assert_int_equal(cgroup_parent_init(&p, CGROUP_SYSTEMD, slice, POD, &e), -EINVAL);
	assert_int_equal(cgroup_parent_init(&p, CGROUP_SYSTEMD, deep, POD, &e), -EINVAL);
	assert_true(str_ends(e.msg, "is nested too deeply"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "cgroup-parent: paths of a pod and its containers for both drivers",
		  valid_parents, NULL, NULL, NULL },
		{ "cgroup-parent: a parent that does not fit the driver is refused",
		  invalid_parents, NULL, NULL, NULL },
		{ "cgroup-parent: the length of a parent is limited", long_parents, NULL, NULL,
		  NULL },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
