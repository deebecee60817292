/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/iface/test-iface.c - configure and check a pod's interface in a network namespace
 *
 * Each test has its own namespace that contains both ends of a veth pair, eth0 and peer.
 */
#include "net/test.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_addr.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "net/iface/iface.h"
#include "net/rtnl/addr.h"
#include "net/rtnl/link.h"
#include "net/rtnl/route.h"
#include "net/sysctl.h"

struct test_pod {
	struct rtnl *nl;
	int netns_fd;
	struct link link;
	struct hw_iface ifaces[2];
	struct hw_ipconf ips[4];
	struct hw_route routes[4];
	struct hw_result result;
};

static struct link get_eth0(const struct test_pod *pod)
{
	return test_link(pod->nl, "eth0");
}

/* Disables IPv6 for new links, so that the tests can check that iface_configure() enables it. */
static int pod_new(void **state)
{
	struct test_pod *pod = mem_new(sizeof(*pod));
	struct hw_err e;

	*state = pod;
	pod->netns_fd = -1;
	if (!test_has_netns || unshare(CLONE_NEWNET) < 0)
		return 0;
	pod->netns_fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	assert_int_equal(rtnl_open(-1, &pod->nl, &e), 0);
	sysctl_write(-1, "net/ipv6/conf/default/disable_ipv6", "1", &e);
	test_put_veth(pod->nl, "eth0", "peer");
	test_commit(pod->nl);
	pod->link = test_link(pod->nl, "peer");
	link_set_up(pod->nl, &pod->link);
	test_commit(pod->nl);
	pod->link = get_eth0(pod);
	pod->ifaces[0].name = (char *)"cni0";
	pod->ifaces[1].name = (char *)"eth0";
	pod->result = (struct hw_result){
		.ifaces = pod->ifaces, .n_ifaces = 2, .ips = pod->ips, .routes = pod->routes
	};
	return 0;
}

static int pod_free(void **state)
{
	struct test_pod *pod = *state;

	rtnl_close(pod->nl);
	mem_close_fd(&pod->netns_fd);
	free(pod);
	return 0;
}

static struct test_pod *require_pod(void **state)
{
	struct test_pod *pod = *state;

	if (pod->netns_fd < 0) {
		print_message("not permitted to create a network namespace\n");
		skip();
	}
	return pod;
}

static struct test_pod *require_pod_with_ipv6(void **state)
{
	struct test_pod *pod = require_pod(state);

	if (access("/proc/sys/net/ipv6/conf/all/disable_ipv6", W_OK) < 0) {
		print_message("no IPv6, or /proc/sys is read-only\n");
		skip();
	}
	return pod;
}

static void add_ip(struct test_pod *pod, const char *address, const char *gateway)
{
	pod->ips[pod->result.n_ips++] =
		(struct hw_ipconf){ .has_iface = true,
				    .iface = 1,
				    .address = test_prefix(address),
				    .gateway = gateway ? test_ip(gateway) : (struct hw_ip){ 0 } };
}

static struct hw_route *add_route(struct test_pod *pod, const char *dst, const char *gw)
{
	struct hw_route *route = &pod->routes[pod->result.n_routes++];

	*route = (struct hw_route){ .dst = test_prefix(dst),
				    .gw = gw ? test_ip(gw) : (struct hw_ip){ 0 } };
	return route;
}

static void configure(struct test_pod *pod, enum iface_dad dad)
{
	struct iface_options options = { .dad = dad, .notify = true };
	struct hw_err e = { 0 };

	iface_configure(pod->nl, pod->netns_fd, &pod->link, &pod->result, &options, &e);
	assert_string_equal(e.msg, "");
}

static void assert_sysctl(int family, const char *key, const char *want)
{
	autofree char *value = NULL;
	struct hw_err e = { 0 };

	sysctl_read_conf(-1, family, "eth0", key, &value, &e);
	assert_string_equal(e.msg, "");
	assert_string_equal(value, want);
}

static void assert_check(struct test_pod *pod, const char *message)
{
	struct link link = get_eth0(pod);
	struct hw_err e = { 0 };
	int r = iface_check(pod->nl, &link, &pod->result, &e);

	assert_string_equal(e.msg, message);
	assert_int_equal(r < 0, message[0] != '\0');
}

static void both_families(void **state)
{
	struct test_pod *pod = require_pod_with_ipv6(state);
	AUTO(addr_list_done) struct addr_list list = { 0 };
	AUTO(route_list_done) struct route_list routes = { 0 };
	struct hw_err e;

	add_ip(pod, "10.1.2.3/24", "10.1.2.1");
	add_ip(pod, "fd00:1::3/64", "fd00:1::1");
	add_route(pod, "0.0.0.0/0", NULL);
	add_route(pod, "::/0", NULL);
	add_route(pod, "192.168.0.0/16", "10.1.2.9")->mtu = 1400;
	add_route(pod, "fd00:2::/64", "fd00:1::9")->advmss = 1200;
	configure(pod, IFACE_DAD_OFF);

	assert_true(get_eth0(pod).flags & IFF_UP);
	assert_int_equal(addr_get(pod->nl, &pod->link, AF_UNSPEC, &list, &e), 0);
	for (size_t i = 0; i < 2; i++)
		assert_true(addr_list_has(&list, &pod->ips[i].address));
	for (size_t i = 0; i < list.n; i++)
		if (list.v[i].scope != RT_SCOPE_LINK) /* the kernel's link-local address */
			assert_false(list.v[i].flags & IFA_F_TENTATIVE);
	assert_int_equal(route_get(pod->nl, &pod->link, AF_UNSPEC, 0, &routes, &e), 0);
	assert_non_null(route_find(&routes, &(struct route){ .dst = test_prefix("0.0.0.0/0"),
							     .gw = test_ip("10.1.2.1") }));
	assert_non_null(route_find(&routes, &(struct route){ .dst = test_prefix("::/0"),
							     .gw = test_ip("fd00:1::1") }));
	assert_int_equal(route_find_dst(&routes, &pod->routes[2].dst)->mtu, 1400);
	assert_int_equal(route_find_dst(&routes, &pod->routes[3].dst)->advmss, 1200);
	assert_int_equal(route_find_dst(&routes, &pod->routes[3].dst)->proto, RTPROT_BOOT);
	assert_sysctl(AF_INET6, "disable_ipv6", "0");
	assert_sysctl(AF_INET6, "keep_addr_on_down", "1");
	assert_sysctl(AF_INET6, "accept_dad", "0");
	assert_sysctl(AF_INET, "arp_notify", "1");
	assert_check(pod, "");
}

static void ipv6_stays_disabled(void **state)
{
	struct test_pod *pod = require_pod_with_ipv6(state);

	add_ip(pod, "10.1.2.3/24", NULL);
	configure(pod, IFACE_DAD_SKIP);
	assert_sysctl(AF_INET6, "disable_ipv6", "1");
	assert_sysctl(AF_INET6, "accept_dad", "1");
	assert_check(pod, "");
}

static void duplicate_address_detection(void **state)
{
	struct test_pod *pod = require_pod_with_ipv6(state);
	AUTO(addr_list_done) struct addr_list list = { 0 };
	struct hw_err e;

	add_ip(pod, "fd00:1::3/64", "fd00:1::1");
	configure(pod, IFACE_DAD_ON);
	assert_int_equal(addr_get(pod->nl, &pod->link, AF_INET6, &list, &e), 0);
	assert_true(addr_list_has(&list, &pod->ips[0].address));
	for (size_t i = 0; i < list.n; i++)
		assert_false(list.v[i].flags & IFA_F_TENTATIVE);
	assert_sysctl(AF_INET6, "accept_dad", "1");
	assert_sysctl(AF_INET6, "enhanced_dad", "1");
}

/* The peer, which is in the same namespace, has the same address. */
static void duplicate_address(void **state)
{
	struct test_pod *pod = require_pod_with_ipv6(state);
	struct link peer = test_link(pod->nl, "peer");
	struct hw_err e;

	add_ip(pod, "fd00:1::3/64", "fd00:1::1");
	assert_true(sysctl_write_conf(-1, AF_INET6, "peer", "disable_ipv6", "0", &e) >= 0);
	addr_put_add(pod->nl, &peer, &pod->ips[0].address, IFA_F_NODAD);
	test_commit(pod->nl);
	assert_int_equal(
		iface_configure(pod->nl, pod->netns_fd, &pod->link, &pod->result, NULL, &e),
		-EADDRINUSE);
	assert_string_equal(e.msg, "link eth0 has address fd00:1::3 in DADFAILED state");
	assert_check(pod, "link eth0 has address fd00:1::3 in DADFAILED state");
}

static void no_carrier(void **state)
{
	struct test_pod *pod = require_pod_with_ipv6(state);
	struct link peer = test_link(pod->nl, "peer");

	link_set_down(pod->nl, &peer);
	test_commit(pod->nl);
	add_ip(pod, "fd00:1::3/64", "fd00:1::1");
	configure(pod, IFACE_DAD_LEAVE);
	assert_check(pod, "");
}

/* Compares only the beginning: the kernel's text after it differs between versions. */
static void assert_rejected(struct test_pod *pod, int code, const char *beginning)
{
	struct hw_err e = { 0 };

	assert_int_equal(
		iface_configure(pod->nl, pod->netns_fd, &pod->link, &pod->result, NULL, &e), code);
	e.msg[strlen(beginning)] = '\0';
	assert_string_equal(e.msg, beginning);
}

static void bad_results(void **state)
{
	struct test_pod *pod = require_pod(state);

	add_ip(pod, "10.1.2.3/24", NULL);
	pod->ips[0].iface = 2;
	assert_rejected(pod, -EINVAL,
			"failed to add IP addr 10.1.2.3/24 to \"eth0\": invalid interface index");
	pod->ips[0].iface = 0;
	assert_rejected(pod, -EINVAL,
			"failed to add IP addr 10.1.2.3/24 to \"eth0\": invalid interface index");
	pod->ips[0].iface = -1;
	assert_rejected(pod, -EINVAL,
			"failed to add IP addr 10.1.2.3/24 to \"eth0\": invalid interface index");
	pod->result.n_ifaces = 0;
	assert_rejected(pod, -EINVAL, "no interfaces to configure");
	assert_false(get_eth0(pod).flags & IFF_UP);
}

static void address_without_interface(void **state)
{
	struct test_pod *pod = require_pod(state);
	AUTO(addr_list_done) struct addr_list list = { 0 };
	struct hw_err e;

	add_ip(pod, "10.1.2.3/24", NULL);
	pod->ips[0].has_iface = false;
	configure(pod, IFACE_DAD_OFF);
	assert_int_equal(addr_get(pod->nl, &pod->link, AF_INET, &list, &e), 0);
	assert_int_equal(list.n, 0);
	assert_true(get_eth0(pod).flags & IFF_UP);
}

static void existing_address(void **state)
{
	struct test_pod *pod = require_pod(state);

	add_ip(pod, "10.1.2.3/24", NULL);
	addr_put_add(pod->nl, &pod->link, &pod->ips[0].address, 0);
	test_commit(pod->nl);
	assert_rejected(pod, -EEXIST, "failed to add IP addr 10.1.2.3/24 to \"eth0\": ");
	addr_put_del(pod->nl, &pod->link, &pod->ips[0].address);
	add_route(pod, "172.16.0.0/12", "10.9.9.9");
	assert_rejected(pod, -ENETUNREACH,
			"failed to add route '172.16.0.0/12 via 10.9.9.9 dev eth0 metric 0 "
			"(Scope: universe, Table: 254)': ");
}

static void other_table(void **state)
{
	struct test_pod *pod = require_pod(state);
	struct hw_route *route;

	add_ip(pod, "10.1.2.3/24", "10.1.2.1");
	route = add_route(pod, "0.0.0.0/0", NULL);
	route->has_table = true;
	route->table = 100;
	route->priority = 7;
	route = add_route(pod, "192.168.9.0/24", NULL);
	route->gw = test_ip("10.1.2.2");
	route->has_scope = true;
	route->scope = RT_SCOPE_SITE;
	configure(pod, IFACE_DAD_OFF);
	assert_check(pod, "");
	route_put_del(pod->nl, &pod->link,
		      &(struct route){ .dst = test_prefix("0.0.0.0/0"), .table = 100 });
	test_commit(pod->nl);
	assert_check(pod, "Expected Route '0.0.0.0/0 via 10.1.2.1 dev eth0 metric 7 "
			  "(Scope: universe, Table: 100)' not found in routing table");
}

static void check_finds_address_drift(void **state)
{
	struct test_pod *pod = require_pod(state);
	struct hw_prefix longer = test_prefix("10.1.2.3/25");

	add_ip(pod, "10.1.2.3/24", "10.1.2.1");
	configure(pod, IFACE_DAD_OFF);
	assert_check(pod, "");
	addr_put_del(pod->nl, &pod->link, &pod->ips[0].address);
	test_commit(pod->nl);
	assert_check(pod, "Failed to match addr 10.1.2.3/24 on interface eth0");
	addr_put_add(pod->nl, &pod->link, &longer, 0);
	test_commit(pod->nl);
	assert_check(pod, "Failed to match addr 10.1.2.3/24 on interface eth0: "
			  "prefix length is 25, want 24");
	addr_put_del(pod->nl, &pod->link, &longer);
	addr_put_add(pod->nl, &pod->link, &pod->ips[0].address, 0);
	test_commit(pod->nl);
	assert_check(pod, "");
	link_set_down(pod->nl, &pod->link);
	test_commit(pod->nl);
	assert_check(pod, "interface eth0 is down");
}

static void check_finds_route_drift(void **state)
{
	struct test_pod *pod = require_pod(state);
	struct route route = { .dst = test_prefix("0.0.0.0/0"), .gw = test_ip("10.1.2.2") };
	struct route connected = { .dst = test_prefix("10.1.2.0/24"), .scope = RT_SCOPE_NOWHERE };

	add_ip(pod, "10.1.2.3/24", "10.1.2.1");
	add_route(pod, "0.0.0.0/0", NULL);
	configure(pod, IFACE_DAD_OFF);
	assert_check(pod, "");
	route_put_replace(pod->nl, &pod->link, &route);
	test_commit(pod->nl);
	assert_check(pod, "Expected Route '0.0.0.0/0 via 10.1.2.1 dev eth0 metric 0 "
			  "(Scope: universe, Table: 254)' not found in routing table");
	route.gw = test_ip("10.1.2.1");
	route.mtu = 1280;
	route_put_replace(pod->nl, &pod->link, &route);
	test_commit(pod->nl);
	assert_check(pod, "Expected Route '0.0.0.0/0 via 10.1.2.1 dev eth0 metric 0 "
			  "(Scope: universe, Table: 254)' has MTU 1280, want 0");
	route.mtu = 0;
	route_put_replace(pod->nl, &pod->link, &route);
	test_commit(pod->nl);
	assert_check(pod, "");
	route_put_del(pod->nl, &pod->link, &connected);
	test_commit(pod->nl);
	assert_check(pod, "Expected Route to network 10.1.2.0/24 of interface eth0 not found");
}

#define POD_TEST(sentence, f)                                                                      \
	{                                                                                          \
		sentence, f, pod_new, pod_free, NULL                                               \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		POD_TEST("iface: IPv4 and IPv6 addresses and routes are set, with MTU and gateways",
			 both_families),
		POD_TEST("iface: IPv6 stays disabled if the result has no IPv6 address",
			 ipv6_stays_disabled),
		POD_TEST("iface: configure waits until duplicate address detection has finished",
			 duplicate_address_detection),
		POD_TEST("iface: a duplicate address is reported as an error", duplicate_address),
		POD_TEST("iface: without a carrier, unfinished duplicate address detection is not "
			 "an error",
			 no_carrier),
		POD_TEST("iface: a result with an address of another interface is rejected",
			 bad_results),
		POD_TEST("iface: an address without an interface is ignored",
			 address_without_interface),
		POD_TEST("iface: an existing address and an unreachable gateway are rejected",
			 existing_address),
		POD_TEST("iface: routes in tables other than main are added and checked",
			 other_table),
		POD_TEST(
			"iface: CHECK finds missing and changed addresses, and a link that is down",
			check_finds_address_drift),
		POD_TEST("iface: CHECK finds missing and changed routes", check_finds_route_drift),
	};

	return cmocka_run_group_tests_name("iface", tests, test_enter, NULL);
}
