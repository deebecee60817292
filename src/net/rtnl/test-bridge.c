/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/rtnl/test-bridge.c - bridge port flags, and VLANs if the kernel supports them
 */
#include "net/rtnl/bridge.h"

#include <errno.h>
#include <string.h>

#include "net/test.h"

/* Creates a bridge with one port. */
static struct link create_port(struct rtnl *nl, const char *bridge, const char *port,
			       bool filtering)
{
	struct link_new b = { .name = bridge,
			      .kind = "bridge",
			      .up = true,
			      .data.bridge.vlan_filtering = filtering };
	struct link link, master;

	link_put_new(nl, &b);
	master = test_link(nl, bridge);
	link = test_pair(nl, port, "other");
	link_set_master(nl, &link, &master);
	return test_link(nl, port);
}

static void flags_of_a_port(void **state)
{
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();
	struct link port = create_port(nl, "br0", "port0", false);
	struct hw_err e;

	(void)state;
	assert_string_equal(port.port_of, "bridge");
	assert_false(port.port.hairpin);
	assert_false(port.port.isolated);
	assert_true(port.port.learning);
	assert_true(port.port.flood);

	bridge_port_set(nl, &port, true, true);
	port = test_link(nl, "port0");
	assert_true(port.port.hairpin);
	assert_true(port.port.isolated);

	bridge_port_set(nl, &port, false, true);
	port = test_link(nl, "port0");
	assert_false(port.port.hairpin);
	assert_true(port.port.isolated);
	assert_int_equal(link_delete(nl, "port0", &e), 0);
}

static void port_in_same_batch(void **state)
{
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();
	struct link_new bridge = { .name = "br1", .kind = "bridge" }, peer = { .name = "1trop" };
	struct link_new pair = { .name = "port1", .kind = "veth", .peer = &peer, .up = true };

	(void)state;
	link_put_new(nl, &bridge);
	pair.master = test_link(nl, "br1").index;
	link_put_new(nl, &pair);
	bridge_port_set(nl, &(struct link){ .name = "port1" }, true, false);
	assert_true(test_link(nl, "port1").port.hairpin);
}

static void not_a_port(void **state)
{
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();
	struct link link = test_pair(nl, "alone", "enola");
	struct hw_err e;

	(void)state;
	bridge_port_set(nl, &link, true, false);
	assert_int_equal(rtnl_commit(nl, &e), -EOPNOTSUPP);
	assert_non_null(strstr(e.msg, "set interface alone hairpin on, isolated off: "));
}

/* Skips the test if VLANs are not supported; first checks the error text. */
static void require_vlans(struct rtnl *nl)
{
	struct hw_err e;
	int r = bridge_vlan_supported(nl, &e);

	if (r == 0)
		return;
	assert_int_equal(r, -EOPNOTSUPP);
	assert_string_equal(e.msg, "this kernel has no bridge VLAN filtering "
				   "(CONFIG_BRIDGE_VLAN_FILTERING)");
	rtnl_close(nl);
	print_message("%s\n", e.msg);
	skip();
}

/* The probe must leave no link behind, and must return the same result as the creation of a bridge
 * with VLAN filtering. */
static void vlan_support(void **state)
{
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();
	struct link_new new = { .name = "br2",
				.kind = "bridge",
				.data.bridge.vlan_filtering = true };
	struct link link;
	struct hw_err e;
	int supported;

	(void)state;
	supported = bridge_vlan_supported(nl, &e);
	assert_int_equal(link_get(nl, "hawser", &link, &e), -ENODEV);
	link_put_new(nl, &new);
	assert_int_equal(rtnl_commit(nl, &e), supported);
}

static void vlans_of_a_port(void **state)
{
	struct rtnl *nl = test_rtnl();
	const struct bridge_vlan one = { .id = 1, .pvid = true, .untagged = true };
	const struct bridge_vlan own = { .id = 100, .pvid = true, .untagged = true };
	const struct bridge_vlan trunk = { .id = 200, .last = 300 };
	const struct bridge_vlan part = { .id = 210, .last = 300 };
	AUTO(bridge_vlan_list_done) struct bridge_vlan_list list = { 0 };
	struct link port;
	struct hw_err e;

	(void)state;
	require_vlans(nl);
	port = create_port(nl, "br3", "port3", true);
	assert_int_equal(bridge_vlan_get(nl, &port, &list, &e), 0);
	assert_int_equal(list.n, 1);
	assert_true(bridge_vlan_list_has(&list, &one));
	bridge_vlan_list_done(&list);

	bridge_vlan_del(nl, &port, &one);
	bridge_vlan_add(nl, &port, &own);
	bridge_vlan_add(nl, &port, &trunk);
	assert_int_equal(bridge_vlan_get(nl, &port, &list, &e), 0);
	assert_int_equal(list.n, 2);
	assert_int_equal(list.v[1].id, 200);
	assert_int_equal(list.v[1].last, 300);
	assert_false(bridge_vlan_list_has(&list, &one));
	assert_true(bridge_vlan_list_has(&list, &own));
	assert_true(bridge_vlan_list_has(&list, &trunk));
	assert_true(bridge_vlan_list_has(&list, &part));
	assert_false(bridge_vlan_list_has(&list, &(struct bridge_vlan){ .id = 100 }));
	assert_false(bridge_vlan_list_has(&list, &(struct bridge_vlan){ .id = 299, .last = 301 }));
	bridge_vlan_list_done(&list);

	bridge_vlan_del(nl, &port, &(struct bridge_vlan){ .id = 205 });
	assert_int_equal(bridge_vlan_get(nl, &port, &list, &e), 0);
	assert_false(bridge_vlan_list_has(&list, &trunk));
	assert_true(bridge_vlan_list_has(&list, &part));
	rtnl_close(nl);
}

static void vlans_of_non_port(void **state)
{
	struct rtnl *nl = test_rtnl();
	struct bridge_vlan_list list = { 0 };
	struct link link;
	struct hw_err e;

	(void)state;
	require_vlans(nl);
	link = test_pair(nl, "loner", "renol");
	assert_int_equal(bridge_vlan_get(nl, &link, &list, &e), -EINVAL);
	assert_non_null(strstr(e.msg, "list VLANs of port loner: "));
	assert_null(list.v);
	bridge_vlan_add(nl, &link, &(struct bridge_vlan){ .id = 5 });
	assert_int_equal(rtnl_commit(nl, &e), -EINVAL);
	assert_non_null(strstr(e.msg, "add VLANs 5-5 of port loner: "));
	rtnl_close(nl);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "bridge: hairpin mode and isolation of a port can be set", flags_of_a_port },
		{ "bridge: port flags can be set in the batch that creates the port",
		  port_in_same_batch },
		{ "bridge: setting port flags fails for a link that is not a port", not_a_port },
		{ "bridge: the probe for VLAN support is correct and leaves no link behind",
		  vlan_support },
		{ "bridge: single VLANs and ranges are added to a port, listed and deleted",
		  vlans_of_a_port },
		{ "bridge: VLAN requests fail for a link that is not a port", vlans_of_non_port },
	};

	return cmocka_run_group_tests_name("bridge", tests, test_enter, NULL);
}
