/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench/probe-chain.c - the kernel's share of a chain's ADD or DEL
 *
 * What:  sends the rtnetlink, nftables and traffic control requests that our plugins
 *        loopback, bridge with ipMasq, portmap and bandwidth send for a pod with one
 *        IPv4 address and one host port. As our plugin does, a second process deletes the
 *        link, and the link is waited for only until it can no longer be found.
 * How:   one socket for each kind of request, opened once. The values of queries are not
 *        used.
 * Rules: the table of our rules must exist in the namespace of the host.
 * Not:   no sysctl, no file.
 */
#include "probe.h"

#include <arpa/inet.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/if_addr.h>
#include <linux/netconf.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define TABLE	 "hawser"
#define COMMENT	 "0123456789abcdef"
#define POD_PORT 7777
#define RATE	 12500000 /* 100 Mbit/s */
#define BURST	 250000

/* ---- queries ------------------------------------------------------------------------ */

/* Sends a batch and reads all answers. A missing object is not an error. */
static void query(int fd, const struct batch *b)
{
	unsigned missing = b->n;
	char answer[4 * ROOM];

	if (send(fd, b->bytes, b->len, 0) != (ssize_t)b->len)
		die("send");
	while (missing > 0) {
		ssize_t n = recv(fd, answer, sizeof(answer), 0);
		int len = (int)n;

		if (n < 0)
			die("recv");
		for (const struct nlmsghdr *m = (const void *)answer; mnl_nlmsg_ok(m, len);
		     m = mnl_nlmsg_next(m, &len))
			missing -= m->nlmsg_type == NLMSG_ERROR || m->nlmsg_type == NLMSG_DONE;
	}
}

static void get_link(int fd, const char *name)
{
	struct batch b = { 0 };

	put_link(&b, RTM_GETLINK, name, NULL, 0);
	query(fd, &b);
}

static void dump_addresses(int fd, unsigned index)
{
	struct batch b = { 0 };
	struct nlmsghdr *m = put(&b, RTM_GETADDR, NLM_F_DUMP);
	struct ifaddrmsg *head = mnl_nlmsg_put_extra_header(m, sizeof(*head));

	m->nlmsg_flags &= (uint16_t)~NLM_F_ACK;
	head->ifa_index = index;
	put_end(&b, m);
	query(fd, &b);
}

static void get_netconf(int fd)
{
	struct batch b = { 0 };
	struct nlmsghdr *m = put(&b, RTM_GETNETCONF, 0);
	struct netconfmsg *head = mnl_nlmsg_put_extra_header(m, sizeof(*head));

	head->ncm_family = AF_INET;
	mnl_attr_put_u32(m, NETCONFA_IFINDEX, (uint32_t)NETCONFA_IFINDEX_ALL);
	put_end(&b, m);
	query(fd, &b);
}

static void get_route(int fd, uint32_t address)
{
	struct batch b = { 0 };
	struct nlmsghdr *m = put(&b, RTM_GETROUTE, 0);
	struct rtmsg *head = mnl_nlmsg_put_extra_header(m, sizeof(*head));

	head->rtm_family = AF_INET;
	head->rtm_dst_len = 32;
	mnl_attr_put_u32(m, RTA_DST, address);
	put_end(&b, m);
	query(fd, &b);
}

/* ---- traffic control ------------------------------------------------------------------ */

static void put_qdisc(struct batch *b, uint16_t type, unsigned index)
{
	struct nlmsghdr *m = put(b, type, type == RTM_NEWQDISC ? NLM_F_CREATE | NLM_F_EXCL : 0);
	struct tcmsg *head = mnl_nlmsg_put_extra_header(m, sizeof(*head));
	struct tc_tbf_qopt parms = { .rate = { .rate = RATE, .linklayer = 1 },
				     .limit = 2 * BURST,
				     .buffer = BURST };
	struct nlattr *options;

	head->tcm_ifindex = (int)index;
	head->tcm_parent = TC_H_ROOT;
	if (type == RTM_NEWQDISC) {
		mnl_attr_put_strz(m, TCA_KIND, "tbf");
		options = mnl_attr_nest_start(m, TCA_OPTIONS);
		mnl_attr_put(m, TCA_TBF_PARMS, sizeof(parms), &parms);
		mnl_attr_nest_end(m, options);
	}
	put_end(b, m);
}

static void change_qdisc(int fd, uint16_t type, const char *link)
{
	struct batch b = { 0 };

	put_qdisc(&b, type, get_index(fd, link));
	commit(fd, &b);
}

/* ---- nftables ------------------------------------------------------------------------- */

static struct nlmsghdr *put_nfnl(struct batch *b, unsigned subsystem, unsigned type, uint16_t flags,
				 uint8_t family, uint16_t id)
{
	struct nlmsghdr *m = put(b, (uint16_t)(subsystem << 8 | type), flags);
	struct nfgenmsg *head = mnl_nlmsg_put_extra_header(m, sizeof(*head));

	*head = (struct nfgenmsg){ .nfgen_family = family, .res_id = htons(id) };
	return m;
}

static void put_edge(struct batch *b, unsigned type)
{
	struct nlmsghdr *m = put_nfnl(b, 0, type, 0, AF_UNSPEC, NFNL_SUBSYS_NFTABLES);

	m->nlmsg_flags &= (uint16_t)~NLM_F_ACK;
	b->n--;
	put_end(b, m);
}

struct element {
	const char *set;
	unsigned char key[8], data[8];
	unsigned key_len, data_len;
	int verdict; /* data is the verdict continue */
};

static void put_data(struct nlmsghdr *m, const struct element *e)
{
	struct nlattr *data = mnl_attr_nest_start(m, NFTA_SET_ELEM_DATA), *verdict;

	if (e->verdict) {
		verdict = mnl_attr_nest_start(m, NFTA_DATA_VERDICT);
		mnl_attr_put_u32(m, NFTA_VERDICT_CODE, htonl((uint32_t)NFT_CONTINUE));
		mnl_attr_nest_end(m, verdict);
	} else {
		mnl_attr_put(m, NFTA_DATA_VALUE, e->data_len, e->data);
	}
	mnl_attr_nest_end(m, data);
}

static void put_element(struct batch *b, unsigned type, const struct element *e)
{
	static const char comment[] = "\0\x11" COMMENT;
	struct nlmsghdr *m = put_nfnl(b, NFNL_SUBSYS_NFTABLES, type,
				      type == NFT_MSG_NEWSETELEM ? NLM_F_CREATE | NLM_F_EXCL : 0,
				      NFPROTO_INET, 0);
	struct nlattr *list, *entry, *key;

	mnl_attr_put_strz(m, NFTA_SET_ELEM_LIST_TABLE, TABLE);
	mnl_attr_put_strz(m, NFTA_SET_ELEM_LIST_SET, e->set);
	list = mnl_attr_nest_start(m, NFTA_SET_ELEM_LIST_ELEMENTS);
	entry = mnl_attr_nest_start(m, 1);
	key = mnl_attr_nest_start(m, NFTA_SET_ELEM_KEY);
	mnl_attr_put(m, NFTA_DATA_VALUE, e->key_len, e->key);
	mnl_attr_nest_end(m, key);
	if (type == NFT_MSG_NEWSETELEM) {
		if (e->verdict || e->data_len)
			put_data(m, e);
		mnl_attr_put(m, NFTA_SET_ELEM_USERDATA, sizeof(comment), comment);
	}
	mnl_attr_nest_end(m, entry);
	mnl_attr_nest_end(m, list);
	put_end(b, m);
}

/* A transaction, or queries of the elements. */
static void send_elements(int fd, unsigned type, const struct element *elements, unsigned n)
{
	struct batch b = { 0 };

	if (type != NFT_MSG_GETSETELEM)
		put_edge(&b, NFNL_MSG_BATCH_BEGIN);
	for (unsigned i = 0; i < n; i++)
		put_element(&b, type, &elements[i]);
	if (type == NFT_MSG_GETSETELEM) {
		query(fd, &b);
		return;
	}
	put_edge(&b, NFNL_MSG_BATCH_END);
	commit(fd, &b);
}

static void dump_rules(int fd, const char *chain)
{
	struct batch b = { 0 };
	struct nlmsghdr *m =
		put_nfnl(&b, NFNL_SUBSYS_NFTABLES, NFT_MSG_GETRULE, NLM_F_DUMP, NFPROTO_INET, 0);

	m->nlmsg_flags &= (uint16_t)~NLM_F_ACK;
	mnl_attr_put_strz(m, NFTA_RULE_TABLE, TABLE);
	mnl_attr_put_strz(m, NFTA_RULE_CHAIN, chain);
	put_end(&b, m);
	query(fd, &b);
}

static void get_generation(int fd)
{
	struct batch b = { 0 };

	put_end(&b, put_nfnl(&b, NFNL_SUBSYS_NFTABLES, NFT_MSG_GETGEN, 0, AF_UNSPEC, 0));
	query(fd, &b);
}

static void get_chain(int fd)
{
	struct batch b = { 0 };
	struct nlmsghdr *m =
		put_nfnl(&b, NFNL_SUBSYS_NFTABLES, NFT_MSG_GETCHAIN, 0, NFPROTO_IPV4, 0);

	mnl_attr_put_strz(m, NFTA_CHAIN_TABLE, "nat");
	mnl_attr_put_strz(m, NFTA_CHAIN_NAME, "POSTROUTING");
	put_end(&b, m);
	query(fd, &b);
}

/* Entries of earlier UDP connections to the port. */
static void delete_conntrack(int fd, const struct pod *pod)
{
	enum { FILTER_PROTO_NUM = 1 << 3, FILTER_DST_PORT = 1 << 5 };
	struct batch b = { 0 };
	struct nlmsghdr *m =
		put_nfnl(&b, NFNL_SUBSYS_CTNETLINK, IPCTNL_MSG_CT_DELETE, 0, AF_INET, 0);
	struct nlattr *tuple = mnl_attr_nest_start(m, CTA_TUPLE_ORIG);
	struct nlattr *proto = mnl_attr_nest_start(m, CTA_TUPLE_PROTO), *filter;

	mnl_attr_put_u8(m, CTA_PROTO_NUM, IPPROTO_UDP);
	mnl_attr_put_u16(m, CTA_PROTO_DST_PORT, pod->port);
	mnl_attr_nest_end(m, proto);
	mnl_attr_nest_end(m, tuple);
	filter = mnl_attr_nest_start(m, CTA_FILTER);
	mnl_attr_put_u32(m, CTA_FILTER_ORIG_FLAGS, FILTER_PROTO_NUM | FILTER_DST_PORT);
	mnl_attr_put_u32(m, CTA_FILTER_REPLY_FLAGS, 0);
	mnl_attr_nest_end(m, filter);
	put_end(&b, m);
	query(fd, &b);
}

/* ---- the chain ------------------------------------------------------------------------ */

enum { MASQUERADE, CLAIM, MAPPING, MARK, NEAR, ELEMENTS };

static void init_elements(const struct pod *pod, struct element elements[ELEMENTS])
{
	uint16_t port = htons(POD_PORT);
	unsigned char udp_port[8] = { IPPROTO_UDP };
	struct element with_port = { .key_len = sizeof(udp_port) };

	memcpy(udp_port + 4, &pod->port, sizeof(pod->port));
	memcpy(with_port.key, udp_port, sizeof(udp_port));
	elements[MASQUERADE] = (struct element){ .set = "masq4", .key_len = 4, .verdict = 1 };
	elements[NEAR] = (struct element){ .set = "near4", .key_len = 4, .verdict = 1 };
	memcpy(elements[MASQUERADE].key, &pod->address, sizeof(pod->address));
	memcpy(elements[NEAR].key, &pod->address, sizeof(pod->address));
	elements[CLAIM] = elements[MAPPING] = elements[MARK] = with_port;
	elements[CLAIM].set = "claimed";
	elements[MAPPING].set = "anyport4";
	elements[MAPPING].data_len = 8;
	memcpy(elements[MAPPING].data, &pod->address, sizeof(pod->address));
	memcpy(elements[MAPPING].data + 4, &port, sizeof(port));
	elements[MARK].set = "anymark4";
	elements[MARK].verdict = 1;
}

static void add_port(int nft, const struct pod *pod, const struct element *elements)
{
	dump_rules(nft, "ports");
	dump_rules(nft, "guard");
	send_elements(nft, NFT_MSG_NEWSETELEM, &elements[CLAIM], 4);
	send_elements(nft, NFT_MSG_GETSETELEM, &elements[CLAIM], 3);
	delete_conntrack(nft, pod);
}

void add_chain(const struct pod *pod, unsigned bridge)
{
	int host = open_socket(NETLINK_ROUTE), inside = open_socket_in(pod->netns);
	int nft = open_socket(NETLINK_NETFILTER);
	struct element elements[ELEMENTS];
	struct batch loopback = { 0 };

	init_elements(pod, elements);
	get_link(inside, "lo");
	put_link(&loopback, RTM_NEWLINK, "lo", NULL, 0);
	commit(inside, &loopback);
	dump_addresses(inside, 1);

	get_link(host, pod->host);
	get_link(inside, POD_LINK);
	get_link(host, BRIDGE);
	dump_addresses(host, bridge);
	get_netconf(host);
	add_bridge(pod, bridge, host, inside);
	dump_rules(nft, "pods");
	dump_rules(nft, "forward");
	send_elements(nft, NFT_MSG_NEWSETELEM, &elements[MASQUERADE], 1);
	send_elements(nft, NFT_MSG_GETSETELEM, &elements[MASQUERADE], 1);
	get_chain(nft);

	get_route(host, pod->address);
	get_link(host, BRIDGE);
	add_port(nft, pod, elements);

	get_link(inside, POD_LINK);
	get_link(host, pod->host);
	change_qdisc(host, RTM_NEWQDISC, pod->host);
	change_qdisc(inside, RTM_NEWQDISC, POD_LINK);
}

static void delete_link(int host, const struct pod *pod)
{
	struct ifreq request = { .ifr_ifindex = (int)get_index(host, pod->host) };
	struct batch b = { 0 };
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (pid == 0) {
		put_link(&b, RTM_DELLINK, pod->host, NULL, 0);
		commit(open_socket(NETLINK_ROUTE), &b);
		_exit(0);
	}
	while (ioctl(host, SIOCGIFNAME, &request) == 0)
		;
}

void delete_chain(const struct pod *pod)
{
	int host = open_socket(NETLINK_ROUTE), inside = open_socket_in(pod->netns);
	int nft = open_socket(NETLINK_NETFILTER);
	struct element elements[ELEMENTS];

	init_elements(pod, elements);
	change_qdisc(inside, RTM_DELQDISC, POD_LINK);
	change_qdisc(host, RTM_DELQDISC, pod->host);

	send_elements(nft, NFT_MSG_GETSETELEM, &elements[CLAIM], 3);
	send_elements(nft, NFT_MSG_GETSETELEM, &elements[CLAIM], 4);
	send_elements(nft, NFT_MSG_DELSETELEM, &elements[CLAIM], 4);
	send_elements(nft, NFT_MSG_GETSETELEM, &elements[CLAIM], 3);
	delete_conntrack(nft, pod);

	get_link(host, pod->host);
	get_link(host, pod->host);
	delete_link(host, pod);
	get_generation(nft);
	send_elements(nft, NFT_MSG_GETSETELEM, &elements[MASQUERADE], 1);
	send_elements(nft, NFT_MSG_DELSETELEM, &elements[MASQUERADE], 1);

	get_link(inside, "lo");
}
