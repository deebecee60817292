/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/nft/ruleset.h - the texts of ruleset.nft and ruleset-bridge.nft, from tools/embed
 */
#ifndef NET_NFT_RULESET_H
#define NET_NFT_RULESET_H

extern const char nft_ruleset[], nft_ruleset_bridge[];

#endif
