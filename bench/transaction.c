/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench/transaction.c - measure the smallest nftables transaction
 *
 * What:  creates and deletes a table in one transaction, and prints the
 *        nanoseconds until the kernel has acknowledged it.
 * How:   at the end of each transaction the kernel visits every chain of the
 *        network namespace. This measures the share of a plugin's time that
 *        depends on the number of foreign chains.
 */
#include <arpa/inet.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define TABLE "bench_transaction"
#define ROOM  1024

static size_t put_message(char *at, uint16_t type, uint16_t flags, uint8_t family, uint16_t id,
			  const char *table)
{
	struct nlmsghdr *m = mnl_nlmsg_put_header(at);
	struct nfgenmsg *head;

	m->nlmsg_type = type;
	m->nlmsg_flags = NLM_F_REQUEST | flags;
	head = mnl_nlmsg_put_extra_header(m, sizeof(*head));
	*head = (struct nfgenmsg){ .nfgen_family = family, .res_id = htons(id) };
	if (table)
		mnl_attr_put_strz(m, NFTA_TABLE_NAME, table);
	return MNL_ALIGN(m->nlmsg_len);
}

static void die(const char *what)
{
	perror(what);
	exit(1);
}

int main(void)
{
	enum {
		NEW = NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWTABLE,
		DEL = NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_DELTABLE
	};
	struct mnl_socket *nl = mnl_socket_open(NETLINK_NETFILTER);
	struct timespec start, end;
	char bytes[ROOM];
	size_t n = 0;

	if (!nl || mnl_socket_bind(nl, 0, MNL_SOCKET_AUTOPID) < 0)
		die("transaction: open netlink socket");
	n += put_message(bytes, NFNL_MSG_BATCH_BEGIN, 0, AF_UNSPEC, NFNL_SUBSYS_NFTABLES, NULL);
	n += put_message(bytes + n, NEW, NLM_F_CREATE, NFPROTO_INET, 0, TABLE);
	n += put_message(bytes + n, DEL, NLM_F_ACK, NFPROTO_INET, 0, TABLE);
	n += put_message(bytes + n, NFNL_MSG_BATCH_END, 0, AF_UNSPEC, NFNL_SUBSYS_NFTABLES, NULL);
	clock_gettime(CLOCK_MONOTONIC, &start);
	if (mnl_socket_sendto(nl, bytes, n) < 0)
		die("transaction: send");
	ssize_t got = mnl_socket_recvfrom(nl, bytes, sizeof(bytes));
	clock_gettime(CLOCK_MONOTONIC, &end);
	if (got < 0 || mnl_cb_run(bytes, (size_t)got, 0, mnl_socket_get_portid(nl), NULL, NULL) < 0)
		die("transaction");
	printf("%lld\n", (end.tv_sec - start.tv_sec) * 1000000000LL + end.tv_nsec - start.tv_nsec);
	mnl_socket_close(nl);
	return 0;
}
