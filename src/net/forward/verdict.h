/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/forward/verdict.h - possible verdicts of an nftables chain on a pod's packet
 *
 * What:  evaluates a chain for the first packet of a connection. Only three facts
 *        are known: the family of the packet, its mark, and that its address is not
 *        translated.
 */
#ifndef NET_FORWARD_VERDICT_H
#define NET_FORWARD_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct nft;
struct nft_chain_ref;

struct forward_packet {
	uint8_t family; /* NFPROTO_IPV4, NFPROTO_IPV6 */
	uint32_t mark;	/* one bit */
	bool marked;	/* true: the packet has the mark; false: it certainly does not have it */
};

/* Possible verdicts, as bits. Evaluation stops at FORWARD_MAY_PASS, so other bits may then be
 * missing. */
enum {
	FORWARD_MAY_PASS = 1,
	FORWARD_MAY_DROP = 2,
	FORWARD_MAY_RETURN = 4, /* no verdict in the chain: its policy applies */
};

/* Reads at most 256 chains. Return: FORWARD_MAY_... bits, or a negative errno */
int forward_evaluate_chain(struct nft *nft, const struct nft_chain_ref *place,
			   const struct forward_packet *packet, struct hw_err *e);

#endif
