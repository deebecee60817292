/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/rtnl/test-kind.c - create and read links of each kind
 *
 * Kinds that the running kernel does not support are skipped; the kernel of test/uml supports all.
 */
#include "net/test.h"

#include <errno.h>
#include <linux/if_link.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/rtnl/tun.h"

/* Creates a link and reads it back; skips the test if the kernel does not support the kind. */
static struct link create_link(struct rtnl *nl, const struct link_new *new)
{
	struct link link;
	struct hw_err e;
	int r;

	link_put_new(nl, new);
	r = rtnl_commit(nl, &e);
	if (r == -EOPNOTSUPP) {
		print_message("%s\n", e.msg);
		rtnl_close(nl);
		skip();
	}
	if (r < 0)
		assert_string_equal(e.msg, "");
	link = test_link(nl, new->name);
	assert_string_equal(link.kind, new->kind);
	return link;
}

static void bridges(void **state)
{
	struct rtnl *nl = test_rtnl();
	struct link_new plain = { .name = "br0", .kind = "bridge", .up = true };
	struct link link = create_link(nl, &plain);

	(void)state;
	assert_true(link.flags & IFF_UP);
	assert_false(link.data.bridge.vlan_filtering);
	rtnl_close(nl);
}

static void filtering_bridges(void **state)
{
	struct rtnl *nl = test_rtnl();
	struct link_new new = { .name = "br1",
				.kind = "bridge",
				.data.bridge = { .vlan_filtering = true, .default_pvid = 7 } };
	struct link link;

	(void)state;
	link = create_link(nl, &new);
	assert_true(link.data.bridge.vlan_filtering);
	assert_int_equal(link.data.bridge.default_pvid, 7);
	new.name = "br2";
	new.data.bridge.default_pvid = -1;
	assert_int_equal(create_link(nl, &new).data.bridge.default_pvid, -1);
	rtnl_close(nl);
}

static void macvlans(void **state)
{
	struct rtnl *nl = test_rtnl();
	autoclose int fd = test_new_netns();
	AUTO(rtnl_close) struct rtnl *pod = NULL;
	struct link parent = test_pair(nl, "mv-on", "mv-on1"), link;
	struct link_new new = { .name = "mv0",
				.kind = "macvlan",
				.parent = parent.index,
				.mtu = 1300,
				.data.macvlan = { .mode = MACVLAN_MODE_PRIVATE,
						  .bc_queue_len = 500 } };
	struct hw_err e;

	(void)state;
	link = create_link(nl, &new);
	assert_int_equal(link.data.macvlan.mode, MACVLAN_MODE_PRIVATE);
	assert_int_equal(link.data.macvlan.bc_queue_len, 500);
	assert_int_equal(link.parent, parent.index);
	assert_int_equal(link.mtu, 1300);

	/* the new link is in the other namespace, its parent in this one */
	new.netns_fd = fd;
	new.name = "eth0";
	new.up = true;
	link_put_new(nl, &new);
	test_commit(nl);
	assert_int_equal(rtnl_open(fd, &pod, &e), 0);
	link = test_link(pod, "eth0");
	assert_int_equal(link.parent, parent.index);
	assert_true(link.parent_nsid >= 0);
	assert_true(link.flags & IFF_UP);
	rtnl_close(nl);
}

static void ipvlans(void **state)
{
	struct rtnl *nl = test_rtnl();
	struct link parent = test_pair(nl, "iv-on", "iv-on1");
	struct link_new new = { .name = "iv0",
				.kind = "ipvlan",
				.parent = parent.index,
				.data.ipvlan.mode = IPVLAN_MODE_L3 };

	(void)state;
	assert_int_equal(create_link(nl, &new).data.ipvlan.mode, IPVLAN_MODE_L3);
	rtnl_close(nl);
}

static void vlans(void **state)
{
	struct rtnl *nl = test_rtnl();
	struct link parent = test_pair(nl, "vl-on", "vl-on1"), link;
	struct link_new new = {
		.name = "vl0", .kind = "vlan", .parent = parent.index, .data.vlan.id = 4094
	};

	(void)state;
	link = create_link(nl, &new);
	assert_int_equal(link.data.vlan.id, 4094);
	assert_int_equal(link.parent, parent.index);
	rtnl_close(nl);
}

static void vrfs(void **state)
{
	struct rtnl *nl = test_rtnl();
	struct link port = test_pair(nl, "vrf-p", "vrf-p1"), link;
	struct link_new new = { .name = "vrf0", .kind = "vrf", .data.vrf.table = 1234 };

	(void)state;
	link = create_link(nl, &new);
	assert_int_equal(link.data.vrf.table, 1234);
	link_set_master(nl, &port, &link);
	assert_string_equal(test_link(nl, "vrf-p").port_of, "vrf");
	rtnl_close(nl);
}

static void vxlans(void **state)
{
	struct rtnl *nl = test_rtnl();
	struct link parent = test_pair(nl, "vx-on", "vx-on1"), link;
	struct link_new new = {
		.name = "vx0",
		.kind = "vxlan",
		.parent = parent.index,
		.data.vxlan = { .id = 4096,
				.port = 4789,
				.local = test_ip("192.0.2.1"),
				.nolearning = true },
	};
	char text[HW_IP_TEXT];

	(void)state;
	link = create_link(nl, &new);
	assert_int_equal(link.data.vxlan.id, 4096);
	assert_int_equal(link.data.vxlan.port, 4789);
	assert_true(link.data.vxlan.nolearning);
	assert_string_equal(hw_ip_format(&link.data.vxlan.local, text), "192.0.2.1");
	assert_int_equal(link.parent, parent.index);

	new.name = "vx1";
	new.data.vxlan = (struct kind_vxlan){ .id = 7, .local = test_ip("2001:db8::1") };
	link = create_link(nl, &new);
	assert_false(link.data.vxlan.nolearning);
	assert_string_equal(hw_ip_format(&link.data.vxlan.local, text), "2001:db8::1");
	rtnl_close(nl);
}

static void check_kind_without_data(void **state, const char *kind)
{
	struct rtnl *nl = test_rtnl();
	struct link_new new = { .name = kind, .kind = kind, .mtu = 1400, .up = true };
	struct link link;

	(void)state;
	link = create_link(nl, &new);
	assert_int_equal(link.mtu, 1400);
	assert_true(link.flags & IFF_UP);
	rtnl_close(nl);
}

static void ifbs(void **state)
{
	check_kind_without_data(state, "ifb");
}

static void dummies(void **state)
{
	check_kind_without_data(state, "dummy");
}

/* Creates a tun; skips the test if the kernel does not support tun interfaces. */
static void create_tun(int fd, const char *name, const struct kind_tun *tun)
{
	struct hw_err e;
	int r = tun_create(fd, name, tun, &e);

	if (r == -ENOENT || r == -ENODEV) {
		print_message("%s\n", e.msg);
		close(fd);
		skip();
	}
	assert_int_equal(r, 0);
}

static void taps(void **state)
{
	int fd = test_new_netns();
	struct kind_tun tap = { .tap = true, .multi_queue = true, .owner = 1000, .group = -1 };
	AUTO(rtnl_close) struct rtnl *nl = NULL;
	struct link link;
	struct hw_err e;

	(void)state;
	create_tun(fd, "tap0", &tap);
	assert_int_equal(rtnl_open(fd, &nl, &e), 0);
	link = test_link(nl, "tap0");
	assert_string_equal(link.kind, "tun");
	assert_true(link.data.tun.tap);
	assert_true(link.data.tun.persistent);
	assert_true(link.data.tun.multi_queue);
	assert_int_equal(link.data.tun.owner, 1000);
	assert_int_equal(link.data.tun.group, -1);
	assert_int_equal(tun_create(fd, "tap0", &tap, &e), -EEXIST);
	close(fd);
}

static void tuns(void **state)
{
	int fd = test_new_netns();
	struct kind_tun tun = { .owner = -1, .group = 0 };
	AUTO(rtnl_close) struct rtnl *nl = NULL;
	struct link link;
	struct hw_err e;

	(void)state;
	create_tun(fd, "tun0", &tun);
	assert_int_equal(rtnl_open(fd, &nl, &e), 0);
	link = test_link(nl, "tun0");
	assert_false(link.data.tun.tap);
	assert_int_equal(link.data.tun.owner, -1);
	assert_int_equal(link.data.tun.group, 0);
	close(fd);
}

static void unknown_kinds(void **state)
{
	(void)state;
	assert_null(kind_find("nosuchkind"));
	assert_null(kind_find(""));
	assert_string_equal(kind_find("veth")->name, "veth");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "kind: a bridge is created and read back", bridges },
		{ "kind: a bridge that filters VLANs is created and read back", filtering_bridges },
		{ "kind: a macvlan is created in this and in another namespace", macvlans },
		{ "kind: an ipvlan is created and read back", ipvlans },
		{ "kind: a vlan is created and read back", vlans },
		{ "kind: a vrf is created, and a link can be its port", vrfs },
		{ "kind: a vxlan over IPv4 or IPv6 is created and read back", vxlans },
		{ "kind: an ifb is created and read back", ifbs },
		{ "kind: a dummy is created and read back", dummies },
		{ "kind: a created tap is persistent; a second one with its name is refused",
		  taps },
		{ "kind: a tun without an owner is created and read back", tuns },
		{ "kind: kind_find returns NULL for an unknown kind", unknown_kinds },
	};

	return cmocka_run_group_tests_name("kind", tests, test_enter, NULL);
}
