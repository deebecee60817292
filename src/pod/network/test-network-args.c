/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/network/test-network-args.c - tests of pod/network/args.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "pod/network/args.h"
#include "pod/spec/test-pod.h"

static void args(void **state)
{
	AUTO(shared_unref) struct pod_spec *spec = test_spec("web");
	const char *list[NETWORK_ARGS][2];
	struct hw_err e = { 0 };

	(void)state;
	assert_int_equal(network_args(spec, "0123", list, &e), 0);
	assert_string_equal(list[0][0], "IgnoreUnknown");
	assert_string_equal(list[1][1], "default");
	assert_string_equal(list[2][1], "web");
	assert_string_equal(list[3][1], "0123");
	assert_string_equal(list[4][1], "uid-web");
	free(spec->name);
	spec->name = str_copy("a;K8S_POD_NAMESPACE=kube-system");
	assert_int_equal(network_args(spec, "0123", list, &e), -EINVAL);
	assert_string_equal(e.msg, "metadata.name: \";\" and \"=\" are not allowed: "
				   "\"a;K8S_POD_NAMESPACE=kube-system\"");
}

static void capabilities(void **state)
{
	static const char expected[] =
		"{\"aliases\":[\"web-0\",\"web\"],\"cgroupPath\":\"/kubepods/pod1\","
		"\"dns\":{\"servers\":[\"10.0.0.10\"],\"searches\":[],\"options\":[\"ndots:5\"]},"
		"\"io.kubernetes.cri.pod-annotations\":{\"kubernetes.io/"
		"ingress-bandwidth\":\"10M\","
		"\"io.hawser.ips\":\"10.1.0.7,fd00::7\",\"io.hawser.mac\":\"02:00:00:00:00:01\"},"
		"\"portMappings\":[{\"hostPort\":8080,\"containerPort\":80,\"protocol\":\"tcp\"}],"
		"\"ipRanges\":[[{\"subnet\":\"10.1.0.0/24\"}],[{\"subnet\":\"fd00::/64\"}]],"
		"\"bandwidth\":{\"ingressRate\":10000000,\"ingressBurst\":2097152},"
		"\"ips\":[\"10.1.0.7\",\"fd00::7\"],\"mac\":\"02:00:00:00:00:01\"}";
	AUTO(shared_unref) struct pod_spec *spec = test_spec("web");
	AUTO(hw_strings_free) struct hw_strings cidrs = { 0 };
	struct network_host host = { "/kubepods/pod1", &cidrs };
	struct pod_port *ports = mem_new(2 * sizeof(*ports));
	autofree char *first = NULL, *second = NULL;
	struct hw_err e = { 0 };

	(void)state;
	spec->hostname = str_copy("web-0");
	spec->has_dns = true;
	strings_add(&spec->dns.servers, "10.0.0.10");
	strings_add(&spec->dns.options, "ndots:5");
	ports[0] = (struct pod_port){ str_copy("tcp"), 80, 8080, NULL };
	ports[1] = (struct pod_port){ str_copy("tcp"), 81, 0, NULL };
	spec->ports = (struct hw_list){ ports, 2 };
	test_set(&spec->annotations, "kubernetes.io/ingress-bandwidth", "10M");
	test_set(&spec->annotations, NETWORK_IPS, "10.1.0.7,fd00::7");
	test_set(&spec->annotations, NETWORK_MAC, "02:00:00:00:00:01");
	strings_add(&cidrs, "10.1.0.0/24");
	strings_add(&cidrs, "fd00::/64");
	assert_int_equal(network_capabilities(spec, &host, true, &first, &e), 0);
	assert_string_equal(first, expected);
	assert_int_equal(network_capabilities(spec, &host, false, &second, &e), 0);
	assert_null(strstr(second, "portMappings"));
	assert_null(strstr(second, "\"ips\""));
	assert_non_null(strstr(second, "aliases"));
}

static void bandwidth(void **state)
{
	static const struct {
		const char *text, *rate; /* NULL: refused */
	} cases[] = {
		{ "1k", "1000" },
		{ "1.5M", "1500000" },
		{ "2Gi", "2147483648" },
		{ "1e6", "1000000" },
		{ "1P", "1000000000000000" },
		{ "999", NULL },
		{ "2P", NULL },
		{ "", NULL },
		{ "10m", NULL },
		{ "0x1000000", NULL },
		{ "inf", NULL },
		{ "-1M", NULL },
		{ " 1M", NULL },
		{ "1M ", NULL },
		{ "nan", NULL },
		{ "1Mi", "1048576" },
		{ ".", NULL },
		{ "1 M", NULL },
	};
	struct network_host host = { 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		AUTO(shared_unref) struct pod_spec *spec = test_spec("a");
		autofree char *json = NULL, *rate = NULL;
		struct hw_err e = { 0 };
		int r;

		test_set(&spec->annotations, "kubernetes.io/egress-bandwidth", cases[i].text);
		r = network_capabilities(spec, &host, true, &json, &e);
		if (!cases[i].rate) {
			assert_int_equal(r, -EINVAL);
			assert_non_null(strstr(e.msg, "kubernetes.io/egress-bandwidth"));
			continue;
		}
		assert_int_equal(r, 0);
		rate = str_printf("\"egressRate\":%s,", cases[i].rate);
		assert_non_null(strstr(json, rate));
	}
}

static void addresses(void **state)
{
	AUTO(shared_unref) struct pod_spec *spec = test_spec("a"), *other = test_spec("b");
	struct network_host host = { 0 };
	struct hw_err e = { 0 };
	char *json;

	(void)state;
	test_set(&spec->annotations, NETWORK_IPS, "10.1.0.7,x");
	assert_int_equal(network_capabilities(spec, &host, true, &json, &e), -EINVAL);
	assert_true(str_starts(e.msg, "annotations: io.hawser.ips: "));
	test_set(&other->annotations, NETWORK_MAC, "02:00");
	assert_int_equal(network_capabilities(other, &host, true, &json, &e), -EINVAL);
	assert_true(str_starts(e.msg, "annotations: io.hawser.mac: "));
}

static void extras(void **state)
{
	static const struct {
		const char *text, *msg;
	} invalid[] = {
		{ "storage@eth0",
		  "annotations: io.hawser.networks: interface name eth0 occurs twice" },
		{ "a@x,b@x", "annotations: io.hawser.networks: interface name x occurs twice" },
		{ "a,,b", NULL },
		{ "a@", NULL },
		{ "a@b/c", NULL },
		{ "../x", NULL },
	};
	AUTO(shared_unref) struct pod_spec *spec = test_spec("a"), *none = test_spec("b");
	AUTO(network_extras_done) struct network_extras list = { 0 };
	struct hw_err e = { 0 };

	(void)state;
	assert_int_equal(network_extras(none, &list, &e), 0);
	assert_int_equal(list.n, 0);
	test_set(&spec->annotations, NETWORK_NETWORKS, "storage@san0,control");
	assert_int_equal(network_extras(spec, &list, &e), 0);
	assert_int_equal(list.n, 2);
	assert_string_equal(list.v[0].name, "storage");
	assert_string_equal(list.v[0].ifname, "san0");
	assert_string_equal(list.v[1].name, "control");
	assert_string_equal(list.v[1].ifname, "net2");
	for (size_t i = 0; i < ARRAY_SIZE(invalid); i++) {
		AUTO(shared_unref) struct pod_spec *bad = test_spec("c");
		struct network_extras ignored;

		test_set(&bad->annotations, NETWORK_NETWORKS, invalid[i].text);
		assert_int_equal(network_extras(bad, &ignored, &e), -EINVAL);
		assert_true(str_starts(e.msg, "annotations: io.hawser.networks: "));
		if (invalid[i].msg)
			assert_string_equal(e.msg, invalid[i].msg);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "network-args: CNI_ARGS names the pod, and no value adds an argument", args, NULL,
		  NULL, NULL },
		{ "network-args: only the first network gets ports, addresses and limits",
		  capabilities, NULL, NULL, NULL },
		{ "network-args: a bandwidth is a quantity from 1k to 1P", bandwidth, NULL, NULL,
		  NULL },
		{ "network-args: malformed addresses in annotations are refused", addresses, NULL,
		  NULL, NULL },
		{ "network-args: further networks get distinct interface names", extras, NULL, NULL,
		  NULL },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
