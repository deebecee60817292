/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/nft/elem.h - encode and decode set elements; internal to net/nft
 */
#ifndef NET_NFT_ELEM_H
#define NET_NFT_ELEM_H

#include "net/nft/nft.h"

#define NFT_TABLE "hawser" /* the name of both tables */

struct nlmsghdr;
struct nlattr;

/* Put the attributes of a message about one element. owner NULL: put only the key, to read or
 * delete the element */
void nft_elem_encode(struct nlmsghdr *m, const struct nft_elem *elem, const char *owner);
/* Decode an element of a reply. The caller must have set table and set in *ret_elem. */
void nft_elem_decode(const struct nlattr *item, struct nft_elem *ret_elem);
/* Does the interval a contain b? Compares field by field; all fields must be addresses of the same
 * family. */
bool nft_elem_covers(const struct nft_elem *a, const struct nft_elem *b);

#endif
