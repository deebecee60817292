/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/spec/test-pod-spec.c - tests of pod/spec/spec.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "pod/spec/test-pod.h"

static void assert_refused(struct pod_spec *spec, const char *msg)
{
	struct hw_err e = { 0 };

	assert_int_equal(pod_spec_seal(spec, &e), -EINVAL);
	assert_string_equal(e.msg, msg);
}

static void round_trip(void **state)
{
	AUTO(shared_unref) struct pod_spec *spec = test_spec("a"), *copy = NULL;
	struct pod_port *port = mem_new(sizeof(*port));
	struct hw_err e = { 0 };

	(void)state;
	spec->hostname = str_copy("host-a");
	spec->attempt = 3;
	spec->has_dns = true;
	strings_add(&spec->dns.servers, "10.0.0.10");
	*port = (struct pod_port){ str_copy("udp"), 53, 5353, str_copy("127.0.0.1") };
	spec->ports = (struct hw_list){ port, 1 };
	test_set(&spec->labels, "app", "x");
	test_set(&spec->annotations, "io.example/a", "multi\nline \xc3\xa4");
	test_set(&spec->sysctls, "kernel.shm_rmid_forced", "1");
	spec->namespaces.pid = POD_MODE_CONTAINER;
	spec->namespaces.has_user = true;
	spec->namespaces.user = POD_MODE_NODE;
	spec->has_resources = true;
	spec->resources.cpu_shares = 2;
	assert_int_equal(pod_spec_seal(spec, &e), 0);
	assert_int_equal(pod_spec_decode(spec->text, &copy, &e), 0);
	assert_string_equal(copy->text, spec->text);
	assert_int_equal(copy->attempt, 3);
	assert_true(copy->has_dns);
	assert_false(copy->has_overhead);
	assert_int_equal(copy->resources.cpu_shares, 2);
	assert_int_equal(((struct pod_port *)copy->ports.v)->host_port, 5353);
	assert_string_equal(pod_spec_annotation(copy, "io.example/a"), "multi\nline \xc3\xa4");
	assert_null(pod_spec_annotation(copy, "io.example/b"));
	assert_true(copy->namespaces.has_user);
}

static void metadata(void **state)
{
	AUTO(shared_unref) struct pod_spec *spec = test_spec("a");

	(void)state;
	free(spec->uid);
	spec->uid = str_copy("");
	assert_refused(spec, "metadata.uid is missing");
	free(take_ptr(spec->name));
	assert_refused(spec, "metadata.name is missing");
}

static void modes(void **state)
{
	AUTO(shared_unref) struct pod_spec *spec = test_spec("a");

	(void)state;
	spec->namespaces.network = POD_MODE_CONTAINER;
	assert_refused(spec,
		       "linux.security_context.namespace_options.network: mode CONTAINER (1); "
		       "expected POD or NODE");
	spec->namespaces.network = POD_MODE_POD;
	spec->namespaces.pid = 9;
	assert_refused(spec, "linux.security_context.namespace_options.pid: mode unknown (9); "
			     "expected POD, CONTAINER or NODE");
	spec->namespaces.pid = POD_MODE_TARGET;
	assert_refused(spec, "linux.security_context.namespace_options.pid: mode TARGET (3); "
			     "expected POD, CONTAINER or NODE");
	spec->namespaces.pid = POD_MODE_POD;
	spec->namespaces.ipc = POD_MODE_TARGET;
	assert_refused(spec, "linux.security_context.namespace_options.ipc: mode TARGET (3); "
			     "expected POD or NODE");
}

static void sysctls(void **state)
{
	static const struct {
		const char *name;
		enum pod_sysctl kind;
	} kinds[] = {
		{ "net.ipv4.ip_forward", POD_SYSCTL_NETWORK },
		{ "net/ipv4/conf/eth0.1/forwarding", POD_SYSCTL_NETWORK },
		{ "kernel.shmmax", POD_SYSCTL_IPC },
		{ "kernel.msgmax", POD_SYSCTL_IPC },
		{ "kernel.sem", POD_SYSCTL_IPC },
		{ "fs.mqueue.msg_max", POD_SYSCTL_IPC },
		{ "kernel.domainname", POD_SYSCTL_UTS },
		{ "kernel.panic", POD_SYSCTL_HOST },
		{ "vm.swappiness", POD_SYSCTL_HOST },
		{ "fs.file-max", POD_SYSCTL_HOST },
		{ "network.x", POD_SYSCTL_HOST },
	};
	AUTO(shared_unref) struct pod_spec *spec = test_spec("a"), *host = test_spec("b");
	struct hw_err e = { 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		assert_int_equal(pod_sysctl_kind(kinds[i].name), kinds[i].kind);
	test_set(&spec->sysctls, "vm.swappiness", "1");
	assert_refused(spec, "linux.sysctls: vm.swappiness: not a sysctl of a namespace");
	test_set(&host->sysctls, "net.core.somaxconn", "1");
	host->namespaces.network = POD_MODE_NODE;
	assert_refused(host,
		       "linux.sysctls: net.core.somaxconn: the pod uses the network namespace "
		       "of the host");
	host->namespaces.network = POD_MODE_POD;
	assert_int_equal(pod_spec_seal(host, &e), 0);
}

static void texts(void **state)
{
	AUTO(shared_unref) struct pod_spec *spec = test_spec("a");

	(void)state;
	spec->hostname = str_copy("a b");
	assert_refused(spec, "hostname: invalid character in \"a b\"");
	free(spec->hostname);
	spec->hostname = mem_new(66);
	memset(spec->hostname, 'x', 65);
	assert_refused(spec, "hostname: longer than 64 bytes");
	spec->hostname[64] = '\0';
	spec->log_directory = str_copy("logs");
	assert_refused(spec, "log_directory: path must be absolute");
	free(take_ptr(spec->log_directory));
	spec->has_dns = true;
	strings_add(&spec->dns.searches, "a\nnameserver 6.6.6.6");
	assert_refused(spec, "dns_config.searches[0]: invalid character");
}

static void ports(void **state)
{
	AUTO(shared_unref) struct pod_spec *spec = test_spec("a");
	struct pod_port *port = mem_new(sizeof(*port));
	struct hw_err e = { 0 };

	(void)state;
	*port = (struct pod_port){ str_copy("tcp"), 80, 65536, NULL };
	spec->ports = (struct hw_list){ port, 1 };
	assert_refused(spec, "port_mappings[0].host_port: 65536 is not a port");
	port->host_port = 80;
	port->container_port = 0;
	assert_refused(spec, "port_mappings[0].container_port is missing");
	port->container_port = -1;
	assert_refused(spec, "port_mappings[0].container_port: -1 is not a port");
	port->container_port = 80;
	port->host_ip = str_copy("localhost");
	assert_int_equal(pod_spec_seal(spec, &e), -EINVAL);
	assert_true(str_starts(e.msg, "port_mappings[0].host_ip: "));
}

static void labels(void **state)
{
	AUTO(shared_unref) struct pod_spec *many = test_spec("a"), *large = test_spec("b");
	autofree char *text = mem_new(POD_LABELS_MAX + 1);
	struct hw_err e = { 0 };
	char key[32];

	(void)state;
	for (int i = 0; i < 10000; i++) {
		snprintf(key, sizeof(key), "label-%d", i);
		test_set(&many->labels, key, "value");
	}
	assert_int_equal(pod_spec_seal(many, &e), 0);
	memset(text, 'x', POD_LABELS_MAX);
	test_set(&large->annotations, "k", text);
	assert_refused(large, "labels and annotations: more than 1048576 bytes in all");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "spec: an encoded spec decodes to the same spec", round_trip, NULL, NULL, NULL },
		{ "spec: missing metadata is refused", metadata, NULL, NULL, NULL },
		{ "spec: modes that a pod cannot have are refused", modes, NULL, NULL, NULL },
		{ "spec: a sysctl of a host namespace is refused", sysctls, NULL, NULL, NULL },
		{ "spec: texts that would damage a file are refused", texts, NULL, NULL, NULL },
		{ "spec: invalid ports are refused", ports, NULL, NULL, NULL },
		{ "spec: 10,000 labels are accepted, more than 1 MiB is refused", labels, NULL,
		  NULL, NULL },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
