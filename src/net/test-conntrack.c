/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/test-conntrack.c - delete entries of the kernel's connection tracking
 *
 * The tests create entries with netlink messages, as conntrackd does, so no packets
 * are needed.
 */
#include "net/test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "base/ip.h"
#include "net/conntrack.h"

#define ROOM 8192

static struct mnl_socket *open_socket(void)
{
	struct mnl_socket *socket = mnl_socket_open2(NETLINK_NETFILTER, SOCK_CLOEXEC);

	assert_non_null(socket);
	assert_int_equal(mnl_socket_bind(socket, 0, MNL_SOCKET_AUTOPID), 0);
	return socket;
}

static void require_netfilter(void)
{
	struct mnl_socket *socket = mnl_socket_open2(NETLINK_NETFILTER, SOCK_CLOEXEC);

	if (socket) {
		mnl_socket_close(socket);
		return;
	}
	print_message("the kernel has no netfilter\n");
	skip();
}

static struct nlmsghdr *start_message(char *buf, uint16_t type, uint16_t flags, uint8_t family)
{
	struct nlmsghdr *m = mnl_nlmsg_put_header(buf);
	struct nfgenmsg *head;

	m->nlmsg_type = NFNL_SUBSYS_CTNETLINK << 8 | type;
	m->nlmsg_flags = NLM_F_REQUEST | flags;
	head = mnl_nlmsg_put_extra_header(m, sizeof(*head));
	head->nfgen_family = family;
	return m;
}

static void put_tuple(struct nlmsghdr *m, uint16_t type, const struct conntrack_tuple *t)
{
	bool v4 = t->family == AF_INET;
	struct nlattr *tuple = mnl_attr_nest_start(m, type), *part;

	part = mnl_attr_nest_start(m, CTA_TUPLE_IP);
	mnl_attr_put(m, v4 ? CTA_IP_V4_SRC : CTA_IP_V6_SRC, v4 ? 4 : 16, t->src.bytes);
	mnl_attr_put(m, v4 ? CTA_IP_V4_DST : CTA_IP_V6_DST, v4 ? 4 : 16, t->dst.bytes);
	mnl_attr_nest_end(m, part);
	part = mnl_attr_nest_start(m, CTA_TUPLE_PROTO);
	mnl_attr_put_u8(m, CTA_PROTO_NUM, t->proto);
	mnl_attr_put_u16(m, CTA_PROTO_SRC_PORT, htons(t->sport));
	mnl_attr_put_u16(m, CTA_PROTO_DST_PORT, htons(t->dport));
	mnl_attr_nest_end(m, part);
	mnl_attr_nest_end(m, tuple);
}

/* Adds one UDP entry; skips the test if the kernel cannot create entries. */
static void add_entry(const char *src, uint16_t sport, const char *dst, uint16_t dport)
{
	char buf[ROOM] __attribute__((aligned(MNL_ALIGNTO)));
	struct mnl_socket *socket = open_socket();
	struct conntrack_tuple t = { .src = test_ip(src),
				     .dst = test_ip(dst),
				     .proto = IPPROTO_UDP,
				     .sport = sport,
				     .dport = dport };
	struct conntrack_tuple back = {
		.src = t.dst, .dst = t.src, .proto = t.proto, .sport = dport, .dport = sport
	};
	struct nlmsghdr *m;
	ssize_t n;
	int error;

	t.family = back.family = t.src.family;
	m = start_message(buf, IPCTNL_MSG_CT_NEW, NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK, t.family);
	put_tuple(m, CTA_TUPLE_ORIG, &t);
	put_tuple(m, CTA_TUPLE_REPLY, &back);
	mnl_attr_put_u32(m, CTA_TIMEOUT, htonl(600));
	assert_true(mnl_socket_sendto(socket, m, m->nlmsg_len) > 0);
	n = mnl_socket_recvfrom(socket, buf, sizeof(buf));
	mnl_socket_close(socket);
	assert_true(n > 0);
	error = ((struct nlmsgerr *)mnl_nlmsg_get_payload(m))->error;
	assert_int_not_equal(error, -EEXIST);
	if (error < 0) {
		print_message("cannot create conntrack entries: %s\n", strerror(-error));
		skip();
	}
}

static int count_entries(uint8_t family)
{
	char buf[ROOM] __attribute__((aligned(MNL_ALIGNTO)));
	struct mnl_socket *socket = open_socket();
	struct nlmsghdr *m = start_message(buf, IPCTNL_MSG_CT_GET, NLM_F_DUMP, family);
	bool done = false;
	int entries = 0, n;

	assert_true(mnl_socket_sendto(socket, m, m->nlmsg_len) > 0);
	while (!done) {
		n = (int)mnl_socket_recvfrom(socket, buf, sizeof(buf));
		assert_true(n > 0);
		for (m = (struct nlmsghdr *)buf; mnl_nlmsg_ok(m, n); m = mnl_nlmsg_next(m, &n)) {
			done = done || m->nlmsg_type < NLMSG_MIN_TYPE;
			entries += m->nlmsg_type >= NLMSG_MIN_TYPE;
		}
	}
	mnl_socket_close(socket);
	return entries;
}

typedef int flush_function(struct mnl_socket *socket, const struct conntrack_tuple *tuple,
			   struct hw_err *e);

static void flush(flush_function *f, const struct conntrack_tuple *tuple)
{
	struct mnl_socket *socket = mnl_socket_open(NETLINK_NETFILTER);
	struct hw_err e = { 0 };

	assert_int_equal(socket ? mnl_socket_bind(socket, 0, MNL_SOCKET_AUTOPID) : 0, 0);
	f(socket, tuple, &e);
	assert_string_equal(e.msg, "");
	if (socket)
		mnl_socket_close(socket);
}

static void check_partial_tuples(flush_function *f)
{
	struct conntrack_tuple port = { .family = AF_INET, .proto = IPPROTO_UDP, .dport = 53 };
	struct conntrack_tuple source = { .family = AF_INET, .src = test_ip("10.1.2.4") };
	struct conntrack_tuple both = {
		.family = AF_INET6, .proto = IPPROTO_UDP, .dst = test_ip("fd00::1"), .sport = 1001
	};

	test_require_netns();
	assert_int_equal(unshare(CLONE_NEWNET), 0);
	flush(f, &port);
	require_netfilter();
	add_entry("10.1.2.3", 1001, "192.0.2.1", 53);
	add_entry("10.1.2.4", 1001, "192.0.2.1", 53);
	add_entry("10.1.2.4", 1002, "192.0.2.1", 54);
	add_entry("10.1.2.5", 53, "192.0.2.1", 55);
	add_entry("fd00::3", 1001, "fd00::1", 53);
	add_entry("fd00::3", 1002, "fd00::1", 53);
	add_entry("fd00::3", 1001, "fd00::2", 53);
	assert_int_equal(count_entries(AF_INET), 4);
	flush(f, &port);
	assert_int_equal(count_entries(AF_INET), 2);
	assert_int_equal(count_entries(AF_INET6), 3);
	flush(f, &source);
	assert_int_equal(count_entries(AF_INET), 1);
	flush(f, &source);
	assert_int_equal(count_entries(AF_INET), 1);
	flush(f, &both);
	assert_int_equal(count_entries(AF_INET6), 2);
	add_entry("fd00::3", 1001, "fd00::1", 53); /* succeeds because that entry was deleted */
	flush(f, &(struct conntrack_tuple){ .family = AF_INET6, .src = test_ip("fd00::4") });
	assert_int_equal(count_entries(AF_INET6), 3);
	flush(f, &(struct conntrack_tuple){ .family = AF_INET6, .src = test_ip("fd00::3") });
	flush(f, &(struct conntrack_tuple){ .family = AF_INET, .dst = test_ip("192.0.2.1") });
	assert_int_equal(count_entries(AF_INET) + count_entries(AF_INET6), 0);
}

static void flush_in_one_request(void **state)
{
	(void)state;
	check_partial_tuples(conntrack_flush);
}

static void flush_by_dump(void **state)
{
	(void)state;
	check_partial_tuples(conntrack_flush_by_dump);
}

static void tuple_without_address_or_port(void **state)
{
	struct hw_err e;

	(void)state;
	test_require_netns();
	assert_int_equal(conntrack_flush(NULL, &(struct conntrack_tuple){ .family = AF_INET }, &e),
			 -EINVAL);
	assert_int_equal(conntrack_flush(NULL,
					 &(struct conntrack_tuple){ .family = AF_INET,
								    .proto = IPPROTO_UDP },
					 &e),
			 -EINVAL);
	assert_int_equal(
		conntrack_flush(NULL, &(struct conntrack_tuple){ .family = AF_INET, .dport = 53 },
				&e),
		-EINVAL);
	assert_string_equal(e.msg, "delete conntrack entries: port without a protocol");
	assert_int_equal(conntrack_flush(NULL, &(struct conntrack_tuple){ .dport = 53 }, &e),
			 -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "conntrack: only entries with the given port or address are deleted",
		  flush_in_one_request },
		{ "conntrack: the method for older kernels deletes the same entries",
		  flush_by_dump },
		{ "conntrack: a tuple without an address and a port is rejected",
		  tuple_without_address_or_port },
	};

	return cmocka_run_group_tests_name("conntrack", tests, test_enter, NULL);
}
