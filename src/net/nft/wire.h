/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/nft/wire.h - messages to nftables and back; for the parts of net/nft/nft.h
 */
#ifndef NET_NFT_WIRE_H
#define NET_NFT_WIRE_H

#include <libmnl/libmnl.h>

#include "base/buf.h"
#include "net/nft/nft.h"

#define NFT_NAME_MAX 256 /* of anybody's names, with the NUL: the kernel has no longer ones */

struct nft {
	struct mnl_socket *socket;
	uint32_t seq;
	uint32_t batch; /* number of its first message */
	struct buf out; /* a question, or a batch */
	struct buf in;	/* the answers */
	bool deleted;	/* something, so that close() would wait */
	bool loaded[2]; /* by table: the rules are known to be there */
};

typedef int nft_answer(void *ctx, const struct nlmsghdr *m, struct hw_err *e);

uint8_t nft_family(enum nft_table table);
struct nlmsghdr *nft_message(struct nft *nft, uint16_t type, uint16_t flags, uint8_t family);
struct nlmsghdr *nft_question(struct nft *nft, uint16_t type, uint16_t flags, uint8_t family);
void nft_put(struct nft *nft, const struct nlmsghdr *m);
void nft_put_name(struct nlmsghdr *m, uint16_t type, const char *name);
int nft_ask(struct nft *nft, const struct nlmsghdr *m, nft_answer *each, void *ctx,
	    struct hw_err *e);
void nft_begin(struct nft *nft, uint32_t generation);
int nft_commit(struct nft *nft, struct hw_err *e);
bool nft_is_missing(struct nft *nft);
int nft_generation(struct nft *nft, uint32_t *ret_generation, struct hw_err *e);

#endif
