/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/network/test-pod-cidr.c - the pod CIDR, and network configurations generated with it
 */
#include "pod/network/pod-cidr.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/os/file.h"
#include "base/os/remove-tree.h"
#include "base/str.h"

/* From containerd's documentation. */
static const char containerd[] =
	"{\"cniVersion\": \"0.3.1\", \"name\": \"net\", \"plugins\": [{\"type\": \"bridge\",\n"
	"\"ipam\": {\"type\": \"host-local\",\n"
	"\"ranges\": [{{range $i, $range := .PodCIDRRanges}}{{if $i}}, {{end}}"
	"[{\"subnet\": \"{{$range}}\"}]{{end}}],\n"
	"\"routes\": [{{range $i, $route := .Routes}}{{if $i}}, {{end}}"
	"{\"dst\": \"{{$route}}\"}{{end}}]}}]}\n";

static const struct network_view no_network = { .name = NULL };

struct test_cidr {
	struct pod_cidr cidr;
	char *dir, *template, *list;
};

static void write_template(struct test_cidr *t, const char *text)
{
	struct hw_err e;

	assert_int_equal(file_replace(AT_FDCWD, t->template, text, strlen(text), 0600, 0, &e), 0);
}

static int setup(void **state)
{
	struct test_cidr *t = mem_new(sizeof(*t));
	autofree char *net = NULL;

	*state = t;
	t->dir = str_printf("%s/test-pod-cidr-XXXXXX", str_or(getenv("TMPDIR"), "/tmp"));
	if (!mkdtemp(t->dir))
		return -1;
	t->template = str_printf("%s/template", t->dir);
	net = str_printf("%s/net.d", t->dir);
	t->list = str_printf("%s/" POD_CIDR_CONFLIST, net);
	pod_cidr_init(&t->cidr, t->dir, net);
	write_template(t, containerd);
	return 0;
}

static int teardown(void **state)
{
	struct test_cidr *t = *state;
	struct hw_err e;
	int r = remove_tree(AT_FDCWD, t->dir, &e);

	pod_cidr_done(&t->cidr);
	free(t->dir);
	free(t->template);
	free(t->list);
	free(t);
	return r;
}

static bool has_configuration(const struct test_cidr *t, const char *text)
{
	AUTO(buf_done) struct buf b = { 0 };
	struct hw_err e;

	return file_read(AT_FDCWD, t->list, 4096, &b, &e) == 0 && strstr(b.data, text);
}

static void test_malformed(void **state)
{
	struct test_cidr *t = *state;
	struct hw_err e;

	assert_int_equal(pod_cidr_set(&t->cidr, "10.1.0.0", t->template, &no_network, &e), -EINVAL);
	assert_true(str_starts(e.msg, "pod_cidr \"10.1.0.0\": "));
	assert_int_equal(pod_cidr_set(&t->cidr, "10.1.0.0/24,", t->template, &no_network, &e),
			 -EINVAL);
	assert_int_equal(pod_cidr_restore(&t->cidr, t->template, &no_network, &e), 0);
	assert_int_equal(access(t->list, F_OK), -1);
}

static void test_generated(void **state)
{
	static const char both[] = "10.1.0.0/24,fd00::/64";
	struct test_cidr *t = *state;
	struct hw_err e;

	assert_int_equal(pod_cidr_set(&t->cidr, both, t->template, &no_network, &e), 1);
	assert_true(has_configuration(t, "[{\"subnet\": \"10.1.0.0/24\"}], [{\"subnet\": "
					 "\"fd00::/64\"}]],\n\"routes\": [{\"dst\": "
					 "\"0.0.0.0/0\"}, {\"dst\": \"::/0\"}]"));
	assert_int_equal(pod_cidr_set(&t->cidr, both, t->template, &no_network, &e), 0);
	write_template(t, "{\"name\": \"{{.PodCIDR}}\"}");
	assert_int_equal(pod_cidr_set(&t->cidr, "10.2.0.0/24", t->template, &no_network, &e),
			 -EINVAL);
	assert_non_null(strstr(e.msg, "rendered with pod CIDR 10.2.0.0/24"));
	assert_true(has_configuration(t, "10.1.0.0/24"));
}

static void test_restored(void **state)
{
	struct test_cidr *t = *state;
	struct hw_err e;

	assert_int_equal(pod_cidr_restore(&t->cidr, t->template, &no_network, &e), 0);
	assert_int_equal(pod_cidr_set(&t->cidr, "10.1.0.0/24", "", &no_network, &e), 0);
	assert_int_equal(access(t->list, F_OK), -1);
	assert_int_equal(pod_cidr_restore(&t->cidr, "", &no_network, &e), 0);
	assert_int_equal(pod_cidr_restore(&t->cidr, t->template, &no_network, &e), 1);
	assert_true(has_configuration(t, "10.1.0.0/24"));
}

static void test_other_network(void **state)
{
	char name[] = "pods", foreign[] = "/etc/cni/net.d/05-calico.conflist";
	struct test_cidr *t = *state;
	struct network_view other = { .name = name, .file = foreign };
	struct hw_err e;

	assert_int_equal(pod_cidr_set(&t->cidr, "10.1.0.0/24", t->template, &other, &e), 0);
	assert_int_equal(pod_cidr_restore(&t->cidr, t->template, &other, &e), 0);
	assert_int_equal(access(t->list, F_OK), -1);
	other.file = t->list; /* our own: it may be replaced */
	assert_int_equal(pod_cidr_set(&t->cidr, "10.1.0.0/24", t->template, &other, &e), 1);
	assert_int_equal(pod_cidr_set(&t->cidr, "10.2.0.0/24", t->template, &other, &e), 1);
	assert_true(has_configuration(t, "10.2.0.0/24"));
}

#define TEST(name, f)                                                                              \
	{                                                                                          \
		name, f, setup, teardown                                                           \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST("pod-cidr: a malformed CIDR is rejected and not saved", test_malformed),
		TEST("pod-cidr: a valid configuration is written, an invalid one changes nothing",
		     test_generated),
		TEST("pod-cidr: the saved CIDR is used once there is a template", test_restored),
		TEST("pod-cidr: the configuration of another network is left alone",
		     test_other_network),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
