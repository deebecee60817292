/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/rtnl/test-link-stats.c - what the interfaces of a namespace have received and sent
 */
#include "net/rtnl/link-stats.h"
#include "net/test.h"

#include <linux/if_packet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"

static void nothing_but_loopback(void **state)
{
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();
	struct hw_list list;
	struct hw_err e;

	(void)state;
	assert_int_equal(link_stats_list(nl, &list, &e), 0);
	assert_int_equal(list.n, 0);
	free(list.v);
}

static void create_pair(struct rtnl *nl, const char *name, const char *peer_name)
{
	struct link_new peer = { .name = peer_name };
	struct link_new pair = { .name = name, .kind = "veth", .peer = &peer, .up = true };
	struct link link = { 0 };
	struct hw_err e;

	link_put_new(nl, &pair);
	assert_int_equal(rtnl_commit(nl, &e), 0);
	snprintf(link.name, sizeof(link.name), "%s", peer_name);
	link_set_up(nl, &link);
	assert_int_equal(rtnl_commit(nl, &e), 0);
}

/* Sends a frame of 60 bytes. */
static void send_frame(struct rtnl *nl, const char *name)
{
	static const char frame[60] = { -1, -1, -1, -1, -1, -1, 2, 0, 0, 0, 0, 1, 0x12, 0x34 };
	autoclose int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	struct sockaddr_ll to = { .sll_family = AF_PACKET };
	struct link link;
	struct hw_err e;

	assert_int_equal(link_get(nl, name, &link, &e), 0);
	to.sll_ifindex = link.index;
	assert_true(fd >= 0);
	assert_int_equal(sendto(fd, frame, sizeof(frame), 0, (void *)&to, sizeof(to)),
			 sizeof(frame));
}

static void traffic_is_counted(void **state)
{
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();
	struct hw_list before, after;
	struct link_stats *old, *new;
	struct hw_err e;

	(void)state;
	create_pair(nl, "a", "b");
	assert_int_equal(link_stats_list(nl, &before, &e), 0);
	send_frame(nl, "a");
	assert_int_equal(link_stats_list(nl, &after, &e), 0);
	assert_int_equal(before.n, 2);
	assert_int_equal(after.n, 2);
	old = before.v;
	new = after.v;
	assert_true(new[0].index < new[1].index);
	for (size_t i = 0; i < 2; i++) {
		const struct link_stats *n = &new[i], *o = &old[i];
		bool sends = str_equal(n->name, "a");

		assert_string_equal(n->name, o->name);
		/* the kernel may send frames of its own */
		assert_true(n->sent.bytes - o->sent.bytes >= (sends ? 60 : 0));
		assert_true(n->sent.packets - o->sent.packets >= (sends ? 1 : 0));
		assert_true(n->received.bytes - o->received.bytes >= (sends ? 0 : 60));
		assert_true(n->received.packets - o->received.packets >= (sends ? 0 : 1));
		assert_int_equal(n->sent.errors + n->received.errors, 0);
	}
	free(before.v);
	free(after.v);
}

static void many_interfaces(void **state)
{
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();
	struct hw_list list;
	struct hw_err e;

	(void)state;
	for (int i = 0; i < LINK_STATS_MAX / 2 + 1; i++) {
		autofree char *a = str_printf("a%d", i), *b = str_printf("b%d", i);
		struct link_new peer = { .name = b };
		struct link_new pair = { .name = a, .kind = "veth", .peer = &peer };

		link_put_new(nl, &pair);
		assert_int_equal(rtnl_commit(nl, &e), 0);
	}
	assert_int_equal(link_stats_list(nl, &list, &e), 0);
	assert_int_equal(list.n, LINK_STATS_MAX);
	free(list.v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "link: the traffic of a loopback interface is not listed", nothing_but_loopback },
		{ "link: received and sent bytes and packets are counted", traffic_is_counted },
		{ "link: the list of interfaces is limited", many_interfaces },
	};

	return cmocka_run_group_tests_name("link-stats", tests, test_enter, NULL);
}
