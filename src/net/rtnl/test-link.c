/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/rtnl/test-link.c - read, create, change and delete links
 */
#include "net/test.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/os/file.h"
#include "base/str.h"
#include "base/time.h"

static void lo_in_a_new_namespace(void **state)
{
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();
	char mac[HW_MAC_TEXT];
	struct link lo;
	struct hw_err e;

	(void)state;
	assert_int_equal(link_get(nl, "lo", &lo, &e), 0);
	assert_int_equal(lo.index, 1);
	assert_string_equal(lo.name, "lo");
	assert_string_equal(lo.kind, "");
	assert_int_equal(lo.mtu, 65536);
	assert_string_equal(hw_mac_format(&lo.mac, mac), "00:00:00:00:00:00");
	assert_true(lo.flags & IFF_LOOPBACK);
	assert_false(lo.flags & IFF_UP);
}

static void up_and_down(void **state)
{
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();
	struct link lo;
	struct hw_err e;

	(void)state;
	assert_int_equal(link_get(nl, "lo", &lo, &e), 0);
	link_set_up(nl, &lo);
	assert_int_equal(link_get_index(nl, 1, &lo, &e), 0);
	assert_true(lo.flags & IFF_UP);
	link_set_down(nl, &lo);
	assert_int_equal(rtnl_commit(nl, &e), 0);
	assert_int_equal(link_get(nl, "lo", &lo, &e), 0);
	assert_false(lo.flags & IFF_UP);
}

static void missing_link(void **state)
{
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();
	struct link link = { .index = 7 };
	struct hw_err e;

	(void)state;
	assert_int_equal(link_get(nl, "nosuch", &link, &e), -ENODEV);
	assert_string_equal(e.msg, "find interface nosuch: No such device");
	assert_int_equal(link_get(nl, "a-name-that-is-much-too-long", &link, &e), -ENODEV);
	assert_int_equal(link_get_index(nl, 4711, &link, &e), -ENODEV);
	assert_int_equal(link_find(nl, "nosuch", &link, &e), 0);
	assert_int_equal(link_find(nl, "a-name-that-is-much-too-long", &link, &e), 0);
	assert_int_equal(link_find_index(nl, 4711, &link, &e), 0);
	assert_int_equal(link.index, 7);
	assert_int_equal(link_find(nl, "lo", &link, &e), 1);
	assert_int_equal(link_find_index(nl, 1, &link, &e), 1);
}

static struct hw_mac parse_mac(const char *text)
{
	struct hw_mac mac;
	struct hw_err e;

	assert_int_equal(hw_mac_parse(text, &mac, &e), 0);
	return mac;
}

static struct link create_bridge(struct rtnl *nl, const char *name)
{
	struct link_new bridge = { .name = name, .kind = "bridge", .up = true };

	link_put_new(nl, &bridge);
	return test_link(nl, name);
}

static void pair_by_one_request(void **state)
{
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl(), *pod_nl = NULL;
	struct link bridge = create_bridge(nl, "br-pair"), host, pod;
	autoclose int fd = test_new_netns();
	struct link_new pod_new = { .name = "eth0",
				    .netns_fd = fd,
				    .mtu = 1400,
				    .mac = parse_mac("0a:00:00:00:00:07"),
				    .txqlen = 77 };
	struct link_new host_new = { .name = "host0",
				     .kind = "veth",
				     .peer = &pod_new,
				     .mtu = 1300,
				     .mac = parse_mac("0a:00:00:00:00:08"),
				     .txqlen = -1,
				     .group = 5,
				     .master = bridge.index,
				     .up = true };
	char mac[HW_MAC_TEXT];
	struct hw_err e;

	(void)state;
	link_put_new(nl, &host_new);
	assert_int_equal(link_get(nl, "host0", &host, &e), 0);
	assert_int_equal(rtnl_open(fd, &pod_nl, &e), 0);
	pod = test_link(pod_nl, "eth0");

	assert_string_equal(host.kind, "veth");
	assert_int_equal(host.mtu, 1300);
	assert_string_equal(hw_mac_format(&host.mac, mac), "0a:00:00:00:00:08");
	assert_int_equal(host.txqlen, 0);
	assert_int_equal(host.group, 5);
	assert_int_equal(host.master, bridge.index);
	assert_string_equal(host.port_of, "bridge");
	assert_true(host.flags & IFF_UP);
	assert_int_equal(host.parent, pod.index);
	assert_true(host.parent_nsid >= 0);

	assert_string_equal(pod.kind, "veth");
	assert_int_equal(pod.mtu, 1400);
	assert_string_equal(hw_mac_format(&pod.mac, mac), "0a:00:00:00:00:07");
	assert_int_equal(pod.txqlen, 77);
	assert_int_equal(pod.parent, host.index);
	assert_false(pod.flags & IFF_UP);
	assert_int_equal(pod.operstate, IF_OPER_DOWN);

	link_set_up(pod_nl, &pod);
	test_commit(pod_nl);
	/* the kernel changes the state later, in another thread */
	for (int i = 0; i < 5000 && test_link(pod_nl, "eth0").operstate != IF_OPER_UP; i++)
		time_sleep(1);
	assert_int_equal(test_link(pod_nl, "eth0").operstate, IF_OPER_UP);
}

static void both_ends_in_one_namespace(void **state)
{
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();
	struct link link;

	(void)state;
	test_put_veth(nl, "left", "right");
	link = test_link(nl, "left");
	assert_int_equal(link.parent, test_link(nl, "right").index);
	assert_int_equal(link.parent_nsid, -1);
	assert_int_equal(link.master, 0);
	assert_string_equal(link.port_of, "");
	assert_int_equal(link.mac.len, 6);
	assert_int_equal(link.mtu, 1500);
}

static void name_is_taken(void **state)
{
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();
	struct hw_err e;

	(void)state;
	test_put_veth(nl, "taken", "taken1");
	test_commit(nl);
	test_put_veth(nl, "taken", "taken2");
	assert_int_equal(rtnl_commit(nl, &e), -EEXIST);
	assert_string_equal(e.msg, "create veth interface taken: File exists");
}

static void kernel_lacks_the_kind(void **state)
{
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();
	struct link_new new = { .name = "odd", .kind = "nosuchkind" };
	struct hw_err e;

	(void)state;
	link_put_new(nl, &new);
	assert_int_equal(rtnl_commit(nl, &e), -EOPNOTSUPP);
	assert_string_equal(e.msg, "create nosuchkind interface odd: Unknown device type: "
				   "Operation not supported");
}

static void attributes_can_be_changed(void **state)
{
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();
	struct link link = test_pair(nl, "change", "egnahc");
	struct hw_mac mac = parse_mac("0a:00:00:00:00:09");

	(void)state;
	link_set_mtu(nl, &link, 1234);
	link_set_txqlen(nl, &link, 55);
	link_set_mac(nl, &link, &mac);
	link_set_promisc(nl, &link, true);
	link_set_allmulti(nl, &link, true);
	link = test_link(nl, "change");
	assert_int_equal(link.mtu, 1234);
	assert_int_equal(link.txqlen, 55);
	assert_memory_equal(&link.mac, &mac, sizeof(mac));
	assert_true(link.flags & IFF_PROMISC);
	assert_true(link.flags & IFF_ALLMULTI);
	assert_true(link.flags & IFF_UP);
	assert_true(link.promiscuity > 0);

	link_set_promisc(nl, &link, false);
	link_set_allmulti(nl, &link, false);
	link = test_link(nl, "change");
	assert_false(link.flags & (IFF_PROMISC | IFF_ALLMULTI));
	assert_int_equal(link.promiscuity, 0);
}

static void master_on_and_off(void **state)
{
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();
	struct link bridge = create_bridge(nl, "br-master"), link = test_pair(nl, "port", "trop");

	(void)state;
	link_set_master(nl, &link, &bridge);
	assert_int_equal(test_link(nl, "port").master, bridge.index);
	link_set_master(nl, &link, NULL);
	link = test_link(nl, "port");
	assert_int_equal(link.master, 0);
	assert_string_equal(link.port_of, "");
}

static void renamed_and_moved(void **state)
{
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl(), *there = NULL;
	autoclose int fd = test_new_netns();
	struct link link;
	struct hw_err e;

	(void)state;
	test_put_veth(nl, "before", "stays");
	link = test_link(nl, "before");
	link_rename(nl, &link, "after");
	link_set_netns(nl, &link, fd);
	test_commit(nl);
	assert_int_equal(link_get(nl, "before", &link, &e), -ENODEV);
	assert_int_equal(link_get(nl, "after", &link, &e), -ENODEV);
	assert_int_equal(rtnl_open(fd, &there, &e), 0);
	assert_string_equal(test_link(there, "after").kind, "veth");
}

static void change_by_name(void **state)
{
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();
	struct link link = { .name = "named" };

	(void)state;
	test_put_veth(nl, "named", "deman");
	link_set_mtu(nl, &link, 1111);
	link_set_up(nl, &link);
	link = test_link(nl, "named");
	assert_int_equal(link.mtu, 1111);
	assert_true(link.flags & IFF_UP);
}

static void rejected_change(void **state)
{
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();
	struct link link = { .name = "nosuch" };
	struct hw_err e;

	(void)state;
	link_set_mtu(nl, &link, 1111);
	assert_int_equal(rtnl_commit(nl, &e), -ENODEV);
	assert_string_equal(e.msg, "set interface nosuch mtu 1111: No such device");
	test_put_veth(nl, "small", "llams");
	link = test_link(nl, "small");
	link_set_mtu(nl, &link, 1);
	assert_int_equal(rtnl_commit(nl, &e), -EINVAL);
	assert_string_equal(e.msg, "set interface small mtu 1: mtu less than device minimum: "
				   "Invalid argument");
}

typedef int delete_fn(struct rtnl *nl, const char *name, struct hw_err *e);

static void check_delete(delete_fn *delete)
{
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();
	struct link link;
	struct hw_err e;

	test_pair(nl, "del", "led");
	assert_int_equal(delete (nl, "del", &e), 0);
	assert_int_equal(link_get(nl, "del", &link, &e), -ENODEV);
	assert_int_equal(link_get(nl, "led", &link, &e), -ENODEV);
	assert_int_equal(delete (nl, "del", &e), 0);
	assert_int_equal(delete (nl, "a-name-that-is-much-too-long", &e), 0);
}

static void delete_both_ends(void **state)
{
	(void)state;
	check_delete(link_delete);
}

static void delete_and_wait(void **state)
{
	(void)state;
	check_delete(link_delete_sync);
}

static void delete_fails(void **state)
{
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();
	struct hw_err e;

	(void)state;
	assert_int_equal(link_delete(nl, "lo", &e), -EOPNOTSUPP);
	assert_string_equal(e.msg, "delete interface lo: Operation not supported");
	assert_int_equal(link_delete_sync(nl, "lo", &e), -EOPNOTSUPP);
}

/* The helper process starts in this namespace, but must delete the link in the socket's
 * namespace. */
static void delete_in_other_namespace(void **state)
{
	AUTO(rtnl_close) struct rtnl *here = test_rtnl(), *there = NULL;
	autoclose int fd = test_new_netns();
	struct link link;
	struct hw_err e;

	(void)state;
	assert_int_equal(rtnl_open(fd, &there, &e), 0);
	test_pair(here, "same", "emas");
	test_pair(there, "same", "emas");
	assert_int_equal(link_delete(there, "same", &e), 0);
	assert_int_equal(link_get(there, "same", &link, &e), -ENODEV);
	assert_int_equal(link_get(here, "same", &link, &e), 0);
}

/* The IDs of the children of this thread, also those without an exit signal. */
static size_t count_children(void)
{
	autofree char *path = str_printf("/proc/self/task/%d/children", (int)gettid());
	AUTO(buf_done) struct buf text = { 0 };
	size_t n = 0;
	struct hw_err e;

	assert_int_equal(file_read(AT_FDCWD, path, 1 << 16, &text, &e), 0);
	for (size_t i = 0; i < text.len; i++)
		n += text.data[i] == ' ';
	return n;
}

static void delete_bounds_children(void **state)
{
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();
	struct hw_err e;

	(void)state;
	for (int i = 0; i < 40; i++) {
		test_pair(nl, "many", "ynam");
		assert_int_equal(link_delete(nl, "many", &e), 0);
	}
	assert_in_range(count_children(), 1, 16);
}

static void delete_is_not_noticed(void **state)
{
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();
	struct pollfd reader = { .events = POLLIN };
	int pipes[2];
	struct hw_err e;

	(void)state;
	assert_int_equal(pipe2(pipes, 0), 0);
	test_pair(nl, "quiet", "teiuq");
	assert_int_equal(link_delete(nl, "quiet", &e), 0);

	/* as in a calling program that waits for all its children */
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
	close(pipes[1]);
	reader.fd = pipes[0];
	assert_int_equal(poll(&reader, 1, 0), 1);
	assert_true(reader.revents & POLLHUP);
	close(pipes[0]);
}

/* net/sender.c starts its helper process with __clone(), which is replaced below. */
static enum { STARTS, FAILS, DIES } helper;

int __clone(int (*fn)(void *arg), void *stack, int flags, void *arg, ...);

static int exit_at_once(void *arg)
{
	(void)arg;
	return 0;
}

int __clone(int (*fn)(void *arg), void *stack, int flags, void *arg, ...)
{
	errno = EAGAIN;
	return helper == FAILS ? -1 : clone(helper == DIES ? exit_at_once : fn, stack, flags, arg);
}

static void delete_without_helper(void **state)
{
	(void)state;
	helper = FAILS;
	check_delete(link_delete);
	helper = STARTS;
}

static void delete_with_killed_helper(void **state)
{
	(void)state;
	helper = DIES;
	check_delete(link_delete);
	helper = STARTS;
}

static void name_is_free_at_once(void **state)
{
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();
	struct hw_err e;

	(void)state;
	for (int i = 0; i < 20; i++) {
		test_pair(nl, "again", "niaga");
		assert_int_equal(link_delete(nl, "again", &e), 0);
	}
}

static void write_disable_ipv6(const char *value)
{
	autoclose int fd = open("/proc/sys/net/ipv6/conf/lo/disable_ipv6", O_WRONLY | O_CLOEXEC);

	if (fd < 0) {
		print_message("the kernel has no IPv6 or its sysctls are read-only\n");
		skip();
	}
	assert_int_equal(write(fd, value, 1), 1);
}

static void ipv6_disabled(void **state)
{
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();
	struct link lo;
	struct hw_err e;

	(void)state;
	write_disable_ipv6("1");
	assert_int_equal(link_get(nl, "lo", &lo, &e), 0);
	assert_false(lo.ipv6);
	write_disable_ipv6("0");
	assert_int_equal(link_get(nl, "lo", &lo, &e), 0);
	assert_true(lo.ipv6);
}

static void look_without_lock(void **state)
{
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();
	struct link bridge = create_bridge(nl, "br0"), link = { .index = 7 };
	struct hw_err e;

	(void)state;
	assert_int_equal(link_get_brief(nl, "br0", &link, &e), 0);
	assert_string_equal(link.name, "br0");
	assert_int_equal(link.index, bridge.index);
	assert_int_equal(link.mac.len, bridge.mac.len);
	assert_memory_equal(link.mac.bytes, bridge.mac.bytes, bridge.mac.len);
	assert_int_equal(link_get_brief(nl, "nosuch", &link, &e), -ENODEV);
	assert_string_equal(e.msg, "read index of interface nosuch: No such device");
	assert_int_equal(link.index, bridge.index);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "link: lo of a new namespace is down, and its MAC address is all zeros",
		  lo_in_a_new_namespace },
		{ "link: a link can be brought up and down", up_and_down },
		{ "link: reading a missing link fails with ENODEV and changes no output",
		  missing_link },
		{ "link: one request creates a veth pair with each end in its namespace",
		  pair_by_one_request },
		{ "link: each end of a veth pair has the other as its parent",
		  both_ends_in_one_namespace },
		{ "link: creating a link with a name that is taken fails with EEXIST",
		  name_is_taken },
		{ "link: the error text for an unsupported kind contains the kind",
		  kernel_lacks_the_kind },
		{ "link: MTU, queue length, MAC address and modes can be changed",
		  attributes_can_be_changed },
		{ "link: a link can be attached to a master and detached", master_on_and_off },
		{ "link: a link can be renamed and moved to another namespace", renamed_and_moved },
		{ "link: a link created in the same batch can be changed by its name",
		  change_by_name },
		{ "link: the error text of a rejected change names link, change and reason",
		  rejected_change },
		{ "link: delete removes both ends of a veth pair, and a second delete succeeds",
		  delete_both_ends },
		{ "link: delete_sync removes both ends of a veth pair, and a second call succeeds",
		  delete_and_wait },
		{ "link: deleting a link that cannot be deleted fails at once", delete_fails },
		{ "link: delete removes a link in the namespace of the socket",
		  delete_in_other_namespace },
		{ "link: a program that waits for its children does not notice a delete",
		  delete_is_not_noticed },
		{ "link: many deletes leave few child processes", delete_bounds_children },
		{ "link: delete succeeds if no helper process can be started",
		  delete_without_helper },
		{ "link: delete succeeds if the helper process is killed",
		  delete_with_killed_helper },
		{ "link: the name of a deleted link can be reused at once", name_is_free_at_once },
		{ "link: link_get reports whether IPv6 is disabled on a link", ipv6_disabled },
		{ "link: link_get_brief reads name, index and MAC address", look_without_lock },
	};

	return cmocka_run_group_tests_name("link", tests, test_enter, NULL);
}
