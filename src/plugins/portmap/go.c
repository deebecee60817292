/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/portmap/go.c - remove what Go's portmap has made for a pod
 *
 * What:  its chains of iptables, by their names, and its nftables rules, by
 *        their comment, which is the container's name.
 */
#include <linux/netfilter.h>
#include <stdio.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/str.h"
#include "net/nft/foreign.h"
#include "plugins/portmap/portmap.h"

#define CHAIN 28

static const uint8_t families[] = { NFPROTO_IPV4, NFPROTO_IPV6 };

static int end_iptables(struct nft *nft, const struct hw_call *call, struct hw_err *e)
{
	static const struct {
		const char *prefix;
		const char *parents[2];
	} kinds[] = {
		{ "CNI-DN-", { "CNI-HOSTPORT-DNAT", NULL } },
		{ "CNI-SN-", { "CNI-HOSTPORT-SNAT", NULL } }, /* of long ago */
	};
	autofree char *attachment = str_printf("%s%s", call->network, call->container_id);
	char hash[CHAIN - 7 + 1], chain[CHAIN + 1];
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

static int end_nftables(struct nft *nft, const struct hw_call *call, struct hw_err *e)
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

/**
 * portmap_go_end() - remove what Go's plugin made for this container
 */
int portmap_go_end(const struct hw_call *call, struct hw_err *e)
{
	AUTO(nft_close) struct nft *nft = NULL;

	int r = nft_open(&nft, e);
	if (r >= 0)
		r = end_iptables(nft, call, e);
	return r < 0 ? r : end_nftables(nft, call, e);
}
