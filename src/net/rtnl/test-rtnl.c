/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/rtnl/test-rtnl.c - batches, errors and dumps with the real kernel
 */
#include "net/test.h"

#include <errno.h>
#include <linux/if_addr.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static void put_address(struct rtnl *nl, int index, int n, int prefix_len)
{
	struct ifaddrmsg head = { .ifa_family = AF_INET,
				  .ifa_prefixlen = prefix_len,
				  .ifa_index = index };
	uint8_t ip[4] = { 127, 9, n / 250, n % 250 + 1 };
	struct nlmsghdr *m = rtnl_put(nl, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, &head,
				      sizeof(head), "add address %d", n);

	mnl_attr_put(m, IFA_LOCAL, sizeof(ip), ip);
}

static int count_answer(void *ctx, const struct nlmsghdr *answer, struct hw_err *e)
{
	(void)answer, (void)e;
	++*(int *)ctx;
	return 0;
}

static int stop_at_answer(void *ctx, const struct nlmsghdr *answer, struct hw_err *e)
{
	(void)answer;
	++*(int *)ctx;
	return err_text(e, -ERANGE, "seen enough");
}

static void put_address_dump(struct rtnl *nl)
{
	struct ifaddrmsg head = { .ifa_family = AF_INET, .ifa_index = 1 };

	rtnl_put(nl, RTM_GETADDR, NLM_F_DUMP, &head, sizeof(head), "list addresses");
}

static void empty_batch_is_success(void **state)
{
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();
	struct hw_err e;

	(void)state;
	assert_int_equal(rtnl_commit(nl, &e), 0);
}

static void batch_larger_than_one_send(void **state)
{
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();
	struct hw_err e;
	int n = 0;

	(void)state;
	for (int i = 0; i < 300; i++)
		put_address(nl, 1, i, 32);
	assert_int_equal(rtnl_commit(nl, &e), 0);
	put_address_dump(nl);
	assert_int_equal(rtnl_query(nl, count_answer, &n, &e), 0);
	assert_int_equal(n, 300);
}

static void walk_ends_at_the_first_error(void **state)
{
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();
	struct hw_err e;
	int n = 0;

	(void)state;
	put_address_dump(nl);
	assert_int_equal(rtnl_query(nl, stop_at_answer, &n, &e), -ERANGE);
	assert_int_equal(n, 1);
}

static void first_error_is_returned(void **state)
{
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();
	struct link link;
	struct hw_err e;

	(void)state;
	test_put_veth(nl, "one", "eno");
	test_put_veth(nl, "one", "other");
	put_address(nl, 4711, 999, 32);
	test_put_veth(nl, "two", "owt");
	assert_int_equal(rtnl_commit(nl, &e), -EEXIST);
	assert_string_equal(e.msg, "create veth interface one: File exists");
	assert_int_equal(link_get(nl, "two", &link, &e), 0);
}

static void kernel_text_is_in_the_error(void **state)
{
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();
	struct hw_err e;

	(void)state;
	link_put_new(nl, &(struct link_new){ .name = "odd", .kind = "nosuchkind" });
	assert_int_equal(rtnl_commit(nl, &e), -EOPNOTSUPP);
	assert_string_equal(e.msg, "create nosuchkind interface odd: Unknown device type: "
				   "Operation not supported");
}

static void batch_is_empty_after_a_failure(void **state)
{
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();
	struct hw_err e;

	(void)state;
	put_address(nl, 4711, 1001, 32);
	assert_int_equal(rtnl_commit(nl, &e), -ENODEV);
	assert_int_equal(rtnl_commit(nl, &e), 0);
}

static void strict_dump_refuses_a_missing_link(void **state)
{
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();
	struct ifaddrmsg head = { .ifa_family = AF_INET, .ifa_index = 4711 };
	struct hw_err e;
	int n = 0;

	(void)state;
	rtnl_put(nl, RTM_GETADDR, NLM_F_DUMP, &head, sizeof(head), "list addresses of %d", 4711);
	assert_int_equal(rtnl_query(nl, count_answer, &n, &e), -ENODEV);
	assert_int_equal(n, 0);
	assert_non_null(strstr(e.msg, "list addresses of 4711: "));
}

/*
 * The kernel creates the next part of a dump when the previous part is received. The functions
 * mnl_socket_sendto() and recvmsg() below replace those of the libraries. mnl_socket_sendto()
 * counts the requests for a dump. recvmsg() forges a reply, and creates links through a second
 * socket between two parts of a dump.
 */
static struct rtnl *second_socket;
static int changes_left, dumps_sent, pairs;
static uint32_t forged_seq; /* sequence number of the request to forge a reply to; 0: none */

ssize_t mnl_socket_sendto(const struct mnl_socket *socket, const void *buf, size_t size)
{
	dumps_sent += ((const struct nlmsghdr *)buf)->nlmsg_type == RTM_GETLINK;
	return send(mnl_socket_get_fd(socket), buf, size, 0);
}

static void create_pair(struct rtnl *nl)
{
	char name[16], peer[16];
	struct hw_err e;

	snprintf(name, sizeof(name), "pair%d", pairs);
	snprintf(peer, sizeof(peer), "riap%d", pairs++);
	test_put_veth(nl, name, peer);
	assert_int_equal(rtnl_commit(nl, &e), 0);
}

/* Sends an EPERM reply to the socket fd, as another process could. */
static void forge_answer(int fd, uint32_t seq)
{
	struct sockaddr_nl to;
	socklen_t len = sizeof(to);
	int forger = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	assert_int_equal(getsockname(fd, (struct sockaddr *)&to, &len), 0);
	const struct {
		struct nlmsghdr head;
		struct nlmsgerr error;
	} answer = { { .nlmsg_len = sizeof(answer),
		       .nlmsg_type = NLMSG_ERROR,
		       .nlmsg_flags = NLM_F_CAPPED,
		       .nlmsg_seq = seq,
		       .nlmsg_pid = to.nl_pid },
		     { .error = -EPERM } };
	assert_int_equal(sendto(forger, &answer, sizeof(answer), 0, (struct sockaddr *)&to, len),
			 sizeof(answer));
	close(forger);
}

ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
	int left = changes_left - 1;

	if (forged_seq)
		forge_answer(fd, forged_seq);
	forged_seq = 0;
	if (changes_left > 0) {
		changes_left = 0;
		create_pair(second_socket);
		changes_left = left;
	}
	return syscall(SYS_recvmsg, fd, message, flags);
}

static int dump_links_with_changes(int times)
{
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();
	struct ifinfomsg head = { 0 };
	struct hw_err e;
	int n = 0;

	second_socket = test_rtnl();
	changes_left = times;
	dumps_sent = 0;
	rtnl_put(nl, RTM_GETLINK, NLM_F_DUMP, &head, sizeof(head), "list links");
	assert_int_equal(rtnl_query(nl, count_answer, &n, &e), 0);
	changes_left = 0;
	rtnl_close(second_socket);
	return n;
}

static void interrupted_dump_is_repeated(void **state)
{
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();
	int before;

	(void)state;
	for (int i = 0; i < 20; i++) /* so many links that a dump has more than one part */
		create_pair(nl);
	before = dump_links_with_changes(0);
	assert_int_equal(dumps_sent, 1);
	assert_int_equal(dump_links_with_changes(1), before + 2);
	assert_int_equal(dumps_sent, 2);
}

static void dump_retries_are_limited(void **state)
{
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();

	(void)state;
	for (int i = 0; i < 20; i++)
		create_pair(nl);
	assert_true(dump_links_with_changes(1000) > 40);
	assert_int_equal(dumps_sent, 6);
}

static void forged_reply_is_ignored(void **state)
{
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();
	struct link link;
	struct hw_err e;

	(void)state;
	/* the forged reply is in the receive queue when the second request is sent */
	forged_seq = 2;
	assert_int_equal(link_get(nl, "lo", &link, &e), 0);
	assert_int_equal(forged_seq, 0);
	assert_int_equal(link_get(nl, "lo", &link, &e), 0);
	assert_string_equal(link.name, "lo");
}

static void unknown_request_fails(void **state)
{
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();
	struct ifinfomsg head = { 0 };
	struct hw_err e;

	(void)state;
	rtnl_put(nl, 9999, 0, &head, sizeof(head), "nonsense");
	assert_int_equal(rtnl_commit(nl, &e), -EOPNOTSUPP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "rtnl: an empty batch succeeds", empty_batch_is_success },
		{ "rtnl: a batch larger than one send is executed completely",
		  batch_larger_than_one_send },
		{ "rtnl: the loop over a dump ends at the first error",
		  walk_ends_at_the_first_error },
		{ "rtnl: after an error the rest of the batch is executed; the first error is "
		  "returned",
		  first_error_is_returned },
		{ "rtnl: the error text contains the kernel's own message",
		  kernel_text_is_in_the_error },
		{ "rtnl: a batch is empty after a failure", batch_is_empty_after_a_failure },
		{ "rtnl: a dump filtered by a missing link fails instead of listing all addresses",
		  strict_dump_refuses_a_missing_link },
		{ "rtnl: an interrupted dump is repeated, and no entry is seen twice",
		  interrupted_dump_is_repeated },
		{ "rtnl: a dump that is interrupted every time is tried six times",
		  dump_retries_are_limited },
		{ "rtnl: a reply that is not from the kernel is ignored", forged_reply_is_ignored },
		{ "rtnl: an unknown request fails", unknown_request_fails },
	};

	return cmocka_run_group_tests_name("rtnl", tests, test_enter, NULL);
}
