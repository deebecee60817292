/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/nft/elem.h - what the parts of net/nft/nft.h share: an element on the wire
 */
#ifndef NET_NFT_ELEM_H
#define NET_NFT_ELEM_H

#include "net/nft/nft.h"

#define NFT_TABLE "hawser" /* both of them */

struct nlmsghdr;
struct nlattr;

void nft_elem_encode(struct nlmsghdr *m, const struct nft_elem *elem, const char *owner);
void nft_elem_decode(const struct nlattr *item, struct nft_elem *ret_elem);
bool nft_elem_covers(const struct nft_elem *a, const struct nft_elem *b);
bool nft_elem_same_data(const struct nft_elem *a, const struct nft_elem *b);

#endif
