/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/nft/nft.h - elements of our nftables sets and maps
 *
 * What:  a pod, an address or a port is an element of one of the sets and maps
 *        of ruleset.nft (table inet) and ruleset-bridge.nft (table bridge).
 * How:   fill elements, then add or delete several in one transaction:
 *
 *	struct nft_elem v[2] = {
 *		nft_elem(NFT_INET, "anyport4", NFT_EXCLUSIVE),
 *		nft_elem(NFT_INET, "snatall4", NFT_OWNED),
 *	};
 *	char owner[NFT_OWNER];
 *
 *	nft_owner(network, container_id, ifname, owner);
 *	nft_key_proto(&v[0], IPPROTO_TCP);	fields in the order of the set's type
 *	nft_key_port(&v[0], 8080);
 *	nft_data_ip(&v[0], &pod);
 *	nft_data_port(&v[0], 80);
 *	nft_key_proto(&v[1], IPPROTO_TCP);
 *	nft_key_ip(&v[1], &pod);
 *	nft_key_port(&v[1], 80);
 *	r = nft_open(&nft, e);
 *	if (r >= 0)
 *		r = nft_add(nft, v, 2, owner, &clash, e);
 *	...
 *	r = nft_del(nft, v, 2, owner, e);	those that are still ours
 *
 *        nft_add() loads the rules first where they are missing or older, and makes
 *        the chains of networks.
 *        Everything speaks to the namespace in which nft_open() was called.
 * Rules: an element's comment is its owner, a hash; nothing from outside is put
 *        into the kernel in clear. No call reads anybody else's rules.
 *        On DEL an element is looked up by the same key as on ADD: what the key
 *        is made of belongs into the attachment record.
 */
#ifndef NET_NFT_NFT_H
#define NET_NFT_NFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hawser/addr.h>

#include "base/err.h"
#include "base/mem.h"

#define NFT_OWNER     17 /* room for an owner: 16 hex digits and a NUL */
#define NFT_NAME      32 /* room for the name of a set or chain of ours */
#define NFT_KEY_MAX   64
#define NFT_ELEM_TEXT 192

enum nft_table { NFT_INET, NFT_BRIDGE };

/* What nft_add() does when the element is there already */
enum nft_mode {
	NFT_OWNED,     /* another's is replaced: its pod is gone, the address is ours now */
	NFT_EXCLUSIVE, /* another's makes all fail, -EEXIST */
	NFT_ABSENT,    /* the same, but it is not added: nobody else may have it meanwhile */
	NFT_SHARED,    /* it is everybody's: has no owner, is not deleted. A network inside of
			* one that is there is not added; a wider one replaces those that it
			* begins or ends with, and others inside of it may stay */
};

/* Chains that there are for each network of pods */
enum nft_chain {
	NFT_MASQ, /* masquerades what goes elsewhere */
	NFT_NEAR, /* masquerades what comes from it */
};

struct nft_bytes {
	uint8_t v[NFT_KEY_MAX];
	uint8_t len;
};

struct nft_elem {
	enum nft_table table;
	enum nft_mode mode;
	char set[NFT_NAME];
	struct nft_bytes key, end; /* end: of an interval; else empty */
	struct nft_bytes data;	   /* of a map */
	char chain[NFT_NAME];	   /* of a map to verdicts: where to; "": no verdict */
	bool is_goto;		   /* not jump */
	struct hw_prefix network;  /* whose chain that is, so that nft_add() can make it; else 0 */
	char owner[NFT_OWNER];	   /* of one that was read; "": nobody's */
};

/* Every set and map of the rules, by what its fields are; the last has no name. */
struct nft_set {
	enum nft_table table;
	const char *name;
	const char *key, *data;
	const char
		*usual; /* of a map to verdicts: the chain to which its rules go by themselves. An
			    * element that jumps there is written as "continue"; ruleset.nft
			    * says why */
};
extern const struct nft_set nft_sets[];

struct nft;

/* ---- filling one -------------------------------------------------------------------- */

struct nft_elem nft_elem(enum nft_table table, const char *set, enum nft_mode mode);
/* "masq" becomes "masq4" or "masq6", by the family of @ip. */
struct nft_elem nft_elem_for(const char *set, const struct hw_ip *ip, enum nft_mode mode);
void nft_key_ip(struct nft_elem *elem, const struct hw_ip *ip);
void nft_key_network(struct nft_elem *elem,
		     const struct hw_prefix *prefix); /* all fields or none */
void nft_key_port(struct nft_elem *elem, uint16_t port);
void nft_key_proto(struct nft_elem *elem, uint8_t proto);
void nft_key_number(struct nft_elem *elem, uint32_t number);
void nft_key_ifname(struct nft_elem *elem, const char *ifname);
void nft_key_mac(struct nft_elem *elem, const struct hw_mac *mac);
void nft_data_ip(struct nft_elem *elem, const struct hw_ip *ip);
void nft_data_port(struct nft_elem *elem, uint16_t port);
void nft_data_jump(struct nft_elem *elem, const char *chain);
void nft_data_goto(struct nft_elem *elem, const char *chain);
void nft_data_network(struct nft_elem *elem, enum nft_chain chain, const struct hw_prefix *prefix);

void nft_owner(const char *network, const char *container_id, const char *ifname,
	       char ret_owner[NFT_OWNER]);
/* "tcp . 8080 : 10.1.2.3 . 80", as nft prints it */
const char *nft_elem_format(const struct nft_elem *elem, char buf[NFT_ELEM_TEXT]);

/* ---- several, of one owner ----------------------------------------------------------- */

struct nft_elems {
	struct nft_elem *v;
	size_t n, room;
	char owner[NFT_OWNER];
};

void nft_elems_done(struct nft_elems *elems);
void nft_elems_add(struct nft_elems *elems, struct nft_elem elem);
/* Unless it is there by its set and key; what must be absent is another than what must be there. */
void nft_elems_add_once(struct nft_elems *elems, struct nft_elem elem);
bool nft_elems_has(const struct nft_elems *elems, const struct nft_elem *elem);

AUTO_VALUE_DEFINE(nft_elems_done, struct nft_elems);

/* ---- the kernel ---------------------------------------------------------------------- */

int nft_open(struct nft **ret_nft, struct hw_err *e);
/* Where something was deleted another process holds the socket a little: the kernel lets whoever
 * closes it wait for the end of all that was deleted. */
void nft_close(struct nft *nft);
/* For what else is to be said to netfilter; NULL where the kernel has none. */
struct mnl_socket *nft_socket(struct nft *nft);

/* What was in the way of NFT_EXCLUSIVE: which of those given, and what is there, with its owner */
struct nft_clash {
	size_t index;
	struct nft_elem there;
};

/* All of them or, with an error, none. @ret_clash (NULL: not wanted) is set with -EEXIST. */
int nft_add(struct nft *nft, const struct nft_elem *v, size_t n, const char *owner,
	    struct nft_clash *ret_clash, struct hw_err *e);
/* Those that @owner still owns; none, and no rules at all, is a success. */
int nft_del(struct nft *nft, const struct nft_elem *v, size_t n, const char *owner,
	    struct hw_err *e);
/* All of a set that @owner owns, by a list of the whole set: for a DEL that has lost its record. */
int nft_sweep(struct nft *nft, enum nft_table table, const char *set, const char *owner,
	      struct hw_err *e);
/* For CHECK: each is there, with this owner and data; -ENOENT names the first that is not, -ESTALE
 * where another owner or other data is in its place. */
int nft_check(struct nft *nft, const struct nft_elem *v, size_t n, const char *owner,
	      struct hw_err *e);
/* One element by its key. Return: 1 with what is there, 0 when it is not */
int nft_get(struct nft *nft, const struct nft_elem *elem, struct nft_elem *ret_elem,
	    struct hw_err *e);
/* Every element of a set; no set is as good as an empty one. */
int nft_list(struct nft *nft, enum nft_table table, const char *set,
	     int (*each)(void *ctx, const struct nft_elem *elem, struct hw_err *e), void *ctx,
	     struct hw_err *e);

/* ---- rules ------------------------------------------------------------------------------ */

/* Load ruleset.nft, or the bridge's, where it is missing or older; elements stay. */
int nft_load(struct nft *nft, enum nft_table table, struct hw_err *e);
/* For STATUS: are they there, or could they be loaded? */
int nft_can_load(struct nft *nft, enum nft_table table, struct hw_err *e);
/* The same where they are there, but somebody has emptied chains, or the set of their version. */
int nft_repair(struct nft *nft, enum nft_table table, struct hw_err *e);
/* -ENOENT when they are not there, or their chains are empty. */
int nft_check_rules(struct nft *nft, enum nft_table table, struct hw_err *e);
/* One more chain of ours that must have rules: -ENOENT when it has not. */
int nft_check_chain(struct nft *nft, enum nft_table table, const char *chain, struct hw_err *e);
/* Have the chains of the networks to which elements lead, with their rule; nft_add() does so, too. */
int nft_repair_networks(struct nft *nft, const struct nft_elem *v, size_t n, struct hw_err *e);
/* Return: 1, or 0 when there was none */
int nft_remove(struct nft *nft, enum nft_table table, struct hw_err *e);
/* Commands of nft as text, one transaction, through libnftables: for what is rarely done. It reads
 * all tables of the host. The text must hold nothing unchecked from outside. */
int nft_run(const char *commands, struct hw_err *e);
/* The same for a command that prints; free() what it printed. */
int nft_run_for(const char *commands, char **ret_output, struct hw_err *e);

AUTO_DEFINE(nft_close, struct nft);

#endif
