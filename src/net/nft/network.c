/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/nft/network.c - the chains that each network of pods has in our rules
 *
 * What:  an element of masq4 or near4 leads from a pod's address to the chain of its
 *        network, so that the packet is compared with that network alone, be it
 *        inside of others or around them.
 * How:   made before an element that leads there, where it is missing or empty; the
 *        name is a hash of the network. They stay: their number does not grow with pods.
 */
#include <stdio.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/ip.h"
#include "base/str.h"
#include "net/nft/elem.h"
#include "net/nft/wire.h"

#define TABLE "inet " NFT_TABLE

static const char *const names[] = { [NFT_MASQ] = "masq", [NFT_NEAR] = "near" };

/**
 * nft_data_network() - lead to a chain of a network
 */
void nft_data_network(struct nft_elem *elem, enum nft_chain chain, const struct hw_prefix *prefix)
{
	struct hw_prefix network = { prefix_network(prefix), prefix->len };
	char text[HW_PREFIX_TEXT], hash[17], name[NFT_NAME];

	hash_hex(hw_prefix_format(&network, text), sizeof(hash) - 1, hash);
	snprintf(name, sizeof(name), "%s_%s", names[chain], hash);
	nft_data_jump(elem, name);
	elem->network = network;
}

static void put_chain(struct buf *text, const struct nft_elem *elem)
{
	bool is_ip4 = elem->network.ip.family == AF_INET;
	const char *family = is_ip4 ? "ip" : "ip6", *chain = elem->chain;
	char network[HW_PREFIX_TEXT];

	hw_prefix_format(&elem->network, network);
	buf_printf(text, "add chain " TABLE " %s\nflush chain " TABLE " %s\n", chain, chain);
	if (str_starts(chain, names[NFT_NEAR]))
		buf_printf(text, "add rule " TABLE " %s %s saddr %s masquerade\n", chain, family,
			   network);
	else
		buf_printf(text, "add rule " TABLE " %s %s daddr != %s %s daddr != %s masquerade\n",
			   chain, family, network, family, is_ip4 ? "224.0.0.0/4" : "ff00::/8");
}

/**
 * nft_repair_networks() - have the chains of networks to which elements lead
 *
 * Also where one is there, but empty: somebody has flushed the table, and whoever loaded its rules
 * again knew of other networks only. However often this is done, each has its one rule.
 */
int nft_repair_networks(struct nft *nft, const struct nft_elem *v, size_t n, struct hw_err *e)
{
	AUTO(buf_done) struct buf text = { 0 };

	for (size_t i = 0; i < n; i++) {
		if (!v[i].network.ip.family)
			continue;
		int r = nft_has_rules(nft, v[i].table, v[i].chain, e);
		if (r < 0)
			return r;
		if (r == 0)
			put_chain(&text, &v[i]);
	}
	if (!text.len)
		return 0;
	int r = nft_load(nft, NFT_INET, e);
	return r < 0 ? r : nft_run(text.data, e);
}
