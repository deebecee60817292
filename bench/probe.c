/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench/probe.c - the kernel's share of a pod's ADD or DEL
 *
 * What:  probe bridge|ptp|del|chain|chain-del NUMBER NETNS [QUEUES]
 *        sends the requests to the kernel that the plugin of that name sends for a
 *        pod with one IPv4 address, and prints the nanoseconds that they took:
 *        create a veth pair with one end in NETNS; for bridge, make the host end a
 *        port of the bridge; bring both ends up; add the pod's address and routes;
 *        for ptp, add the host's address and route. `del` deletes the veth pair and
 *        waits for the kernel. chain and chain-del are in probe-chain.c. QUEUES is the
 *        number of queues of each end; without it the kernel creates one per
 *        processor and keeps one.
 *        probe setup: creates the bridge.
 * How:   names and addresses are derived from NUMBER; one batch of requests for
 *        each namespace. The time includes opening the pod's namespace.
 * Rules: must run in a network namespace that stands for the host.
 * Not:   does not announce the address of a pod on a bridge, because no caller waits
 *        for that. Does not read a configuration or existing state, allocate a lease,
 *        or write a record or a result: it is a lower bound for a plugin, not a plugin.
 */
#include "probe.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <libmnl/libmnl.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define NETWORK 0x0a630000 /* 10.99.0.0/16 */
#define LENGTH	16
#define PORTS	30000

void die(const char *what)
{
	fprintf(stderr, "probe: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

/* ---- requests ---------------------------------------------------------------------- */

struct nlmsghdr *put(struct batch *b, uint16_t type, uint16_t flags)
{
	struct nlmsghdr *m = mnl_nlmsg_put_header(b->bytes + b->len);

	m->nlmsg_type = type;
	m->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | flags;
	b->n++;
	return m;
}

void put_end(struct batch *b, const struct nlmsghdr *m)
{
	b->len += MNL_ALIGN(m->nlmsg_len);
}

static void put_end_of_pair(struct nlmsghdr *m, const char *name, unsigned queues)
{
	mnl_attr_put_strz(m, IFLA_IFNAME, name);
	if (queues) {
		mnl_attr_put_u32(m, IFLA_NUM_TX_QUEUES, queues);
		mnl_attr_put_u32(m, IFLA_NUM_RX_QUEUES, queues);
	}
}

static void put_pair(struct batch *b, const struct pod *pod, unsigned master)
{
	struct nlmsghdr *m = put(b, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
	struct ifinfomsg *host = mnl_nlmsg_put_extra_header(m, sizeof(*host));
	struct nlattr *info, *data, *other;

	host->ifi_flags = host->ifi_change = IFF_UP;
	put_end_of_pair(m, pod->host, pod->queues);
	if (master)
		mnl_attr_put_u32(m, IFLA_MASTER, master);
	info = mnl_attr_nest_start(m, IFLA_LINKINFO);
	mnl_attr_put_strz(m, IFLA_INFO_KIND, "veth");
	data = mnl_attr_nest_start(m, IFLA_INFO_DATA);
	other = mnl_attr_nest_start(m, VETH_INFO_PEER);
	mnl_nlmsg_put_extra_header(m, sizeof(*host));
	put_end_of_pair(m, POD_LINK, pod->queues);
	mnl_attr_put_u32(m, IFLA_NET_NS_FD, (uint32_t)pod->netns);
	mnl_attr_nest_end(m, other);
	mnl_attr_nest_end(m, data);
	mnl_attr_nest_end(m, info);
	put_end(b, m);
}

void put_link(struct batch *b, uint16_t type, const char *name, const char *kind, unsigned index)
{
	struct nlmsghdr *m = put(b, type, kind ? NLM_F_CREATE | NLM_F_EXCL : 0);
	struct ifinfomsg *link = mnl_nlmsg_put_extra_header(m, sizeof(*link));

	link->ifi_index = (int)index;
	if (type == RTM_NEWLINK)
		link->ifi_flags = link->ifi_change = IFF_UP;
	if (name)
		mnl_attr_put_strz(m, IFLA_IFNAME, name);
	if (kind) {
		struct nlattr *info = mnl_attr_nest_start(m, IFLA_LINKINFO);

		mnl_attr_put_strz(m, IFLA_INFO_KIND, kind);
		mnl_attr_nest_end(m, info);
	}
	put_end(b, m);
}

static void put_address(struct batch *b, unsigned index, uint32_t address, uint8_t len)
{
	struct nlmsghdr *m = put(b, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL);
	struct ifaddrmsg *addr = mnl_nlmsg_put_extra_header(m, sizeof(*addr));

	*addr = (struct ifaddrmsg){ .ifa_family = AF_INET,
				    .ifa_prefixlen = len,
				    .ifa_index = index };
	mnl_attr_put_u32(m, IFA_LOCAL, address);
	mnl_attr_put_u32(m, IFA_ADDRESS, address);
	put_end(b, m);
}

static void put_route(struct batch *b, uint16_t type, unsigned index, uint32_t dst, uint8_t len,
		      uint32_t gateway)
{
	struct nlmsghdr *m = put(b, type, type == RTM_NEWROUTE ? NLM_F_CREATE | NLM_F_EXCL : 0);
	struct rtmsg *route = mnl_nlmsg_put_extra_header(m, sizeof(*route));

	*route = (struct rtmsg){
		.rtm_family = AF_INET,
		.rtm_dst_len = len,
		.rtm_table = RT_TABLE_MAIN,
		.rtm_protocol = type == RTM_NEWROUTE ? RTPROT_BOOT : RTPROT_UNSPEC,
		.rtm_scope = gateway ? RT_SCOPE_UNIVERSE : RT_SCOPE_LINK,
		.rtm_type = RTN_UNICAST,
	};
	mnl_attr_put_u32(m, RTA_DST, dst);
	if (gateway)
		mnl_attr_put_u32(m, RTA_GATEWAY, gateway);
	mnl_attr_put_u32(m, RTA_OIF, index);
	put_end(b, m);
}

/* ---- sending --------------------------------------------------------------------------- */

int open_socket(int protocol)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);

	if (fd < 0)
		die("socket");
	return fd;
}

int open_socket_in(int netns)
{
	int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), fd;

	if (home < 0 || setns(netns, CLONE_NEWNET) < 0)
		die("setns");
	fd = open_socket(NETLINK_ROUTE);
	if (setns(home, CLONE_NEWNET) < 0)
		die("setns back");
	close(home);
	return fd;
}

/* Turns duplicate address detection of the pod's link off, as the bridge plugin does. Then the kernel
 * sends the IPv6 messages of a new link at once instead of within a second: on a bridge, to all other
 * pods. */
static void disable_dad(int netns)
{
	static const char path[] = "/proc/sys/net/ipv6/conf/" POD_LINK "/accept_dad";
	int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), fd;

	if (home < 0 || setns(netns, CLONE_NEWNET) < 0)
		die("setns");
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, "0", 1) != 1)
		die(path);
	close(fd);
	if (setns(home, CLONE_NEWNET) < 0)
		die("setns back");
	close(home);
}

static void read_acks(const char *answer, int len, unsigned *missing)
{
	for (const struct nlmsghdr *m = (const void *)answer; mnl_nlmsg_ok(m, len);
	     m = mnl_nlmsg_next(m, &len)) {
		const struct nlmsgerr *error = mnl_nlmsg_get_payload(m);

		errno = m->nlmsg_type == NLMSG_ERROR ? -error->error : EPROTO;
		if (errno)
			die("answer");
		--*missing;
	}
}

void commit(int fd, const struct batch *b)
{
	unsigned missing = b->n;
	char answer[ROOM];

	if (send(fd, b->bytes, b->len, 0) != (ssize_t)b->len)
		die("send");
	while (missing) {
		ssize_t n = recv(fd, answer, sizeof(answer), 0);

		if (n < 0)
			die("recv");
		read_acks(answer, (int)n, &missing);
	}
}

unsigned get_index(int fd, const char *name)
{
	struct ifreq request = { 0 };

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	if (ioctl(fd, SIOCGIFINDEX, &request) < 0)
		die(name);
	return (unsigned)request.ifr_ifindex;
}

/* ---- operations ---------------------------------------------------------------------------- */

void add_bridge(const struct pod *pod, unsigned bridge, int host, int inside)
{
	struct batch pair = { 0 }, in_pod = { 0 };
	unsigned eth0;

	put_pair(&pair, pod, bridge);
	commit(host, &pair);
	disable_dad(pod->netns);
	eth0 = get_index(inside, POD_LINK);
	put_address(&in_pod, eth0, pod->address, LENGTH);
	put_link(&in_pod, RTM_NEWLINK, NULL, NULL, eth0);
	put_route(&in_pod, RTM_NEWROUTE, eth0, 0, 0, pod->gateway);
	commit(inside, &in_pod);
}

static void add_ptp(const struct pod *pod)
{
	struct batch pair = { 0 }, in_pod = { 0 }, on_host = { 0 };
	int host = open_socket(NETLINK_ROUTE), inside = open_socket_in(pod->netns);
	unsigned veth, eth0;

	put_pair(&pair, pod, 0);
	commit(host, &pair);
	eth0 = get_index(inside, POD_LINK);
	put_address(&in_pod, eth0, pod->address, LENGTH);
	put_link(&in_pod, RTM_NEWLINK, NULL, NULL, eth0);
	put_route(&in_pod, RTM_DELROUTE, eth0, pod->network, LENGTH, 0);
	put_route(&in_pod, RTM_NEWROUTE, eth0, pod->gateway, 32, 0);
	put_route(&in_pod, RTM_NEWROUTE, eth0, pod->network, LENGTH, pod->gateway);
	put_route(&in_pod, RTM_NEWROUTE, eth0, 0, 0, pod->gateway);
	commit(inside, &in_pod);
	veth = get_index(host, pod->host);
	put_address(&on_host, veth, pod->gateway, 32);
	put_route(&on_host, RTM_NEWROUTE, veth, pod->address, 32, 0);
	commit(host, &on_host);
}

static void delete_pair(const struct pod *pod)
{
	struct batch b = { 0 };

	put_link(&b, RTM_DELLINK, pod->host, NULL, 0);
	commit(open_socket(NETLINK_ROUTE), &b);
}

static void create_bridge(void)
{
	struct batch b = { 0 };

	put_link(&b, RTM_NEWLINK, BRIDGE, "bridge", 0);
	commit(open_socket(NETLINK_ROUTE), &b);
}

static void run_operation(const char *what, struct pod *pod, const char *netns)
{
	unsigned bridge = if_nametoindex(BRIDGE);
	int64_t start = now_ns();

	pod->netns = open(netns, O_RDONLY | O_CLOEXEC);
	if (pod->netns < 0)
		die(netns);
	if (strcmp(what, "bridge") == 0)
		add_bridge(pod, bridge, open_socket(NETLINK_ROUTE), open_socket_in(pod->netns));
	else if (strcmp(what, "chain") == 0)
		add_chain(pod, bridge);
	else if (strcmp(what, "chain-del") == 0)
		delete_chain(pod);
	else if (strcmp(what, "ptp") == 0)
		add_ptp(pod);
	else
		delete_pair(pod);
	printf("%lld\n", (long long)(now_ns() - start));
}

int main(int argc, char **argv)
{
	struct pod pod = { .gateway = htonl(NETWORK + 1), .network = htonl(NETWORK) };
	uint32_t number;

	if (argc == 2 && strcmp(argv[1], "setup") == 0) {
		create_bridge();
		return 0;
	}
	if (argc != 4 && argc != 5) {
		fputs("usage: probe setup | probe bridge|ptp|del|chain|chain-del NUMBER NETNS "
		      "[QUEUES]\n",
		      stderr);
		return 2;
	}
	number = (uint32_t)strtoul(argv[2], NULL, 10);
	pod.queues = argc == 5 ? (unsigned)strtoul(argv[4], NULL, 10) : 0;
	pod.address = htonl(NETWORK + 2 + number);
	pod.port = htons((uint16_t)(PORTS + number));
	snprintf(pod.host, sizeof(pod.host), "veth%u", number);
	run_operation(argv[1], &pod, argv[3]);
	return 0;
}
