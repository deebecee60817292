/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/portmap/upstream.c - deletion of rules that upstream's portmap added for a container
 *
 * What:  its iptables chains, found by name, and its nftables rules, found by their
 *        comment, which is the container ID.
 */
#include <linux/netfilter.h>
#include <stdio.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/str.h"
#include "net/nft/foreign.h"
#include "plugins/portmap/portmap.h"

#define CHAIN_LEN 28 /* of a chain name: prefix and hash */

static const uint8_t families[] = { NFPROTO_IPV4, NFPROTO_IPV6 };

static int delete_iptables_chains(struct nft *nft, const struct hw_call *call, struct hw_err *e)
{
	static const struct {
		const char *prefix;
		const char *parents[2];
	} kinds[] = {
		{ "CNI-DN-", { "CNI-HOSTPORT-DNAT", NULL } },
		{ "CNI-SN-", { "CNI-HOSTPORT-SNAT", NULL } }, /* of old versions */
	};
	autofree char *attachment = str_printf("%s%s", call->network, call->container_id);
	char hash[CHAIN_LEN - 7 + 1], chain[CHAIN_LEN + 1];
	int r = 0;

	hash_hex(attachment, sizeof(hash) - 1, hash);
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		snprintf(chain, sizeof(chain), "%s%s", kinds[i].prefix, hash);
		for (size_t f = 0; r >= 0 && f < ARRAY_SIZE(families); f++)
			r = nft_foreign_delete_chain(
				nft, &(struct nft_place){ families[f], "nat", chain },
				kinds[i].parents, e);
	}
	return r;
}

static int delete_nftables_rules(struct nft *nft, const struct hw_call *call, struct hw_err *e)
{
	static const char *const chains[] = { "hostports", "hostip_hostports", "masquerading" };
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(chains); i++)
		for (size_t f = 0; r >= 0 && f < ARRAY_SIZE(families); f++)
			r = nft_foreign_delete_rules(
				nft, &(struct nft_place){ families[f], "cni_hostport", chains[i] },
				call->container_id, e);
	return r;
}

int portmap_delete_upstream(const struct hw_call *call, struct hw_err *e)
{
	AUTO(nft_close) struct nft *nft = NULL;

	int r = nft_open(&nft, e);
	if (r >= 0)
		r = delete_iptables_chains(nft, call, e);
	return r < 0 ? r : delete_nftables_rules(nft, call, e);
}
