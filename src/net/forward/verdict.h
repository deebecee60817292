/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/forward/verdict.h - what can become of a pod's packet in somebody's nftables chain
 *
 * What:  of the first packet of a connection that nobody has translated. Of
 *        it only its family and the mark are known.
 */
#ifndef NET_FORWARD_VERDICT_H
#define NET_FORWARD_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct nft;
struct nft_place;

struct forward_packet {
	uint8_t family; /* NFPROTO_IPV4, NFPROTO_IPV6 */
	uint32_t mark;	/* a bit */
	bool marked;	/* it is set; else it is surely not set */
};

/* All that is possible; with FORWARD_PASSES there may be more */
enum {
	FORWARD_PASSES = 1,
	FORWARD_DROPS = 2,
	FORWARD_LEAVES = 4, /* the chain: its policy decides */
};

/* Return: of FORWARD_..., or a negative errno */
int forward_judge(struct nft *nft, const struct nft_place *place,
		  const struct forward_packet *packet, struct hw_err *e);

#endif
