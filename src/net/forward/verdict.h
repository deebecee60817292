/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/forward/verdict.h - possible verdicts of an nftables chain on a pod's packet
 *
 * What:  evaluates a chain for the first packet of a connection without address
 *        translation, of which only the family and the mark are known.
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
	uint32_t mark;	/* one bit */
	bool marked;	/* the bit is set; else it is certainly not set */
};

/* Possible verdicts, as bits. With MAY_PASS the others may be incomplete. */
enum {
	FORWARD_MAY_PASS = 1,
	FORWARD_MAY_DROP = 2,
	FORWARD_MAY_RETURN = 4, /* the end of the chain: its policy decides */
};

/* Reads at most 256 chains. Return: FORWARD_MAY_... bits, or a negative errno */
int forward_evaluate_chain(struct nft *nft, const struct nft_place *place,
			   const struct forward_packet *packet, struct hw_err *e);

#endif
