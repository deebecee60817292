/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/rtnl/test-rtnl.c - batches, errors and dumps against the real kernel
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

static void first_error_is_reported_and_the_rest_is_done(void **state)
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
	assert_string_equal(e.msg, "make veth link one: File exists");
	assert_int_equal(link_get(nl, "two", &link, &e), 0);
}

static void kernel_text_is_in_the_error(void **state)
{
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();
	struct hw_err e;

	(void)state;
	link_put_new(nl, &(struct link_new){ .name = "odd", .kind = "nosuchkind" });
	assert_int_equal(rtnl_commit(nl, &e), -EOPNOTSUPP);
	assert_string_equal(e.msg, "make nosuchkind link odd: Unknown device type: "
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
 * The kernel makes the next part of a dump when the last one is received. Our own versions of two
 * functions change the table in between, as often as wanted, through a second socket, and count how
 * often the dump is asked for. They also forge an answer.
 */
static struct rtnl *meddler;
static int meddle, asked, pairs;
static uint32_t forge; /* the answer to this request */

ssize_t mnl_socket_sendto(const struct mnl_socket *socket, const void *buf, size_t size)
{
	asked += ((const struct nlmsghdr *)buf)->nlmsg_type == RTM_GETLINK;
	return send(mnl_socket_get_fd(socket), buf, size, 0);
}

static void make_pair(struct rtnl *nl)
{
	char name[16], peer[16];
	struct hw_err e;

	snprintf(name, sizeof(name), "pair%d", pairs);
	snprintf(peer, sizeof(peer), "riap%d", pairs++);
	test_put_veth(nl, name, peer);
	assert_int_equal(rtnl_commit(nl, &e), 0);
}

/* "Operation not permitted", to whatever socket this is */
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
	int left = meddle - 1;

	if (forge)
		forge_answer(fd, forge);
	forge = 0;
	if (meddle > 0) {
		meddle = 0;
		make_pair(meddler);
		meddle = left;
	}
	return syscall(SYS_recvmsg, fd, message, flags);
}

static int dump_links_with_meddling(int times)
{
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();
	struct ifinfomsg head = { 0 };
	struct hw_err e;
	int n = 0;

	meddler = test_rtnl();
	meddle = times;
	asked = 0;
	rtnl_put(nl, RTM_GETLINK, NLM_F_DUMP, &head, sizeof(head), "list links");
	assert_int_equal(rtnl_query(nl, count_answer, &n, &e), 0);
	meddle = 0;
	rtnl_close(meddler);
	return n;
}

static void interrupted_dump_is_asked_again(void **state)
{
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();
	int before;

	(void)state;
	for (int i = 0; i < 20; i++) /* more than one part */
		make_pair(nl);
	before = dump_links_with_meddling(0);
	assert_int_equal(asked, 1);
	assert_int_equal(dump_links_with_meddling(1), before + 2);
	assert_int_equal(asked, 2);
}

static void dump_that_never_settles_ends(void **state)
{
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();

	(void)state;
	for (int i = 0; i < 20; i++)
		make_pair(nl);
	assert_true(dump_links_with_meddling(1000) > 40);
	assert_int_equal(asked, 6);
}

static void only_the_kernel_is_believed(void **state)
{
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();
	struct link link;
	struct hw_err e;

	(void)state;
	forge = 2; /* it waits in the socket when the second request is made */
	assert_int_equal(link_get(nl, "lo", &link, &e), 0);
	assert_int_equal(forge, 0);
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
		{ "rtnl: an empty batch is a success", empty_batch_is_success },
		{ "rtnl: a batch larger than one send is carried out whole",
		  batch_larger_than_one_send },
		{ "rtnl: the walk over a dump ends at the first error",
		  walk_ends_at_the_first_error },
		{ "rtnl: the first error of a batch is reported and the rest is carried out",
		  first_error_is_reported_and_the_rest_is_done },
		{ "rtnl: the kernel's own text is part of the error", kernel_text_is_in_the_error },
		{ "rtnl: a batch is empty after a failure", batch_is_empty_after_a_failure },
		{ "rtnl: a dump limited to a missing link fails instead of listing all",
		  strict_dump_refuses_a_missing_link },
		{ "rtnl: a dump that was interrupted is asked again, and nothing is seen twice",
		  interrupted_dump_is_asked_again },
		{ "rtnl: a dump of tables that never settle ends all the same",
		  dump_that_never_settles_ends },
		{ "rtnl: an answer that is not the kernel's is passed over",
		  only_the_kernel_is_believed },
		{ "rtnl: an unknown request is an error", unknown_request_fails },
	};

	return cmocka_run_group_tests_name("rtnl", tests, test_enter, NULL);
}
