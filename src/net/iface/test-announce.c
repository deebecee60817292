/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/iface/test-announce.c - neighbours learn a new MAC address from an announcement
 *
 * One end of a veth pair has a neighbour entry with a wrong MAC address. The announcement is sent
 * at the other end; the kernel receives and validates it, and corrects the entry.
 */
#include "net/iface/announce.h"

#include <linux/if_addr.h>
#include <linux/neighbour.h>
#include <string.h>
#include <sys/socket.h>

#include "base/time.h"
#include "net/rtnl/addr.h"
#include "net/test.h"

#define TIMEOUT_MS 5000

static const uint8_t wrong_mac[6] = { 2, 0, 0, 0, 0, 0xee };

static struct nlmsghdr *put_neigh(struct rtnl *nl, uint16_t type, uint16_t flags, int index,
				  const struct hw_ip *ip)
{
	struct ndmsg head = { .ndm_family = ip->family, .ndm_ifindex = index };
	struct nlmsghdr *m;

	if (type == RTM_NEWNEIGH)
		head.ndm_state = NUD_STALE;
	m = rtnl_put(nl, type, flags, &head, sizeof(head), "neighbour");
	mnl_attr_put(m, NDA_DST, ip->family == AF_INET ? 4 : 16, ip->bytes);
	return m;
}

static int copy_mac(void *ctx, const struct nlmsghdr *answer, struct hw_err *e)
{
	const struct nlattr *attr;

	(void)e;
	mnl_attr_for_each(attr, answer, sizeof(struct ndmsg))
		if (mnl_attr_get_type(attr) == NDA_LLADDR && mnl_attr_get_payload_len(attr) == 6)
			memcpy(ctx, mnl_attr_get_payload(attr), 6);
	return 0;
}

/* Waits until the neighbour entry no longer has the wrong MAC address. */
static void wait_for_mac(struct rtnl *nl, int index, const struct hw_ip *ip, uint8_t ret_mac[6])
{
	int64_t deadline = time_deadline(TIMEOUT_MS);
	struct hw_err e;

	do {
		time_sleep(1);
		put_neigh(nl, RTM_GETNEIGH, 0, index, ip);
		assert_int_equal(rtnl_query(nl, copy_mac, ret_mac, &e), 0);
	} while (memcmp(ret_mac, wrong_mac, 6) == 0 && !time_has_passed(deadline));
}

static void check_announcement(const char *text, const char *neighbour)
{
	AUTO(rtnl_close) struct rtnl *nl = NULL;
	autoclose int fd = test_new_netns();
	struct hw_prefix own = test_prefix(neighbour);
	struct hw_ip ip = test_ip(text);
	struct link mine, other;
	uint8_t mac[6];
	struct hw_err e;

	assert_int_equal(rtnl_open(fd, &nl, &e), 0);
	mine = test_pair(nl, "mine", "other");
	other = test_link(nl, "other");
	addr_put_add(nl, &other, &own, IFA_F_NODAD);
	mnl_attr_put(put_neigh(nl, RTM_NEWNEIGH, NLM_F_CREATE, other.index, &ip), NDA_LLADDR, 6,
		     wrong_mac);
	test_commit(nl);
	announce_addresses(fd, &mine, &ip, 1);
	wait_for_mac(nl, other.index, &ip, mac);
	assert_memory_equal(mac, mine.mac.bytes, 6);
}

static void announce_ipv4(void **state)
{
	(void)state;
	check_announcement("10.0.0.2", "10.0.0.1/24");
}

static void announce_ipv6(void **state)
{
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();

	(void)state;
	if (!test_link(nl, "lo").ipv6) {
		print_message("the kernel has no IPv6\n");
		skip();
	}
	check_announcement("fd00::2", "fd00::1/64");
}

static void link_without_mac(void **state)
{
	struct hw_ip ip = test_ip("10.0.0.2");

	(void)state;
	test_require_netns();
	announce_addresses(-1, &(struct link){ .name = "nosuch", .index = 4711, .mac.len = 6 }, &ip,
			   1);
	announce_addresses(-1, &(struct link){ .name = "lo", .index = 1 }, &ip, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "announce: a neighbour learns the MAC address of an IPv4 address",
		  announce_ipv4 },
		{ "announce: a neighbour learns the MAC address of an IPv6 address",
		  announce_ipv6 },
		{ "announce: a missing link and a link without a MAC address are ignored",
		  link_without_mac },
	};

	return cmocka_run_group_tests_name("announce", tests, test_enter, NULL);
}
