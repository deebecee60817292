/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/nft/nft.h - elements of hawser's nftables sets and maps
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
 *	r = nft_del(nft, v, 2, owner, e);	those that still have this owner
 *
 *        nft_add() first loads the rules if they are missing or older, and
 *        creates the chains of networks.
 *        All calls act in the namespace in which nft_open() was called.
 * Rules: the comment of an element is its owner, a hash; no untrusted text is
 *        written to the kernel. No call reads rules of other programs.
 *        DEL finds an element by the same key as ADD: the attachment record
 *        must contain the values of which the key consists.
 */
#ifndef NET_NFT_NFT_H
#define NET_NFT_NFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hawser/addr.h>

#include "base/err.h"
#include "base/mem.h"

#define NFT_OWNER     17 /* size of an owner: 16 hex digits and a NUL */
#define NFT_NAME      32 /* size of the name of a set or chain of hawser, with the NUL */
#define NFT_KEY_MAX   64
#define NFT_ELEM_TEXT 192

enum nft_table { NFT_INET, NFT_BRIDGE };

/* What nft_add() does if the element exists already */
enum nft_mode {
	NFT_OWNED,     /* an element of another owner is replaced: its pod no longer exists, as the
			* address has been allocated again */
	NFT_EXCLUSIVE, /* an element of another owner makes the whole call fail with -EEXIST */
	NFT_ABSENT,    /* as NFT_EXCLUSIVE, but the element is not added: the transaction succeeds
			* only if no other owner has it */
	NFT_SHARED,    /* the element has no owner and is never deleted. A network inside an
			* existing one is not added; a wider network replaces the elements that
			* contain its first or last address, and others inside it may remain */
};

/* Chains that exist per network of pods */
enum nft_chain {
	NFT_MASQ, /* masquerades traffic to other networks */
	NFT_NEAR, /* masquerades traffic from the network itself */
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
	char chain[NFT_NAME];	   /* of a verdict map: the target; "": no verdict */
	bool is_goto;		   /* goto, not jump */
	struct hw_prefix network;  /* of the network whose chain it is; else empty */
	char owner[NFT_OWNER];	   /* of an element that was read; "": no owner */
};

/* Every set and map of the rules with the types of its fields; the last entry has no name. */
struct nft_set {
	enum nft_table table;
	const char *name;
	const char *key, *data;
	/* Of a verdict map: the chain to which the rule that uses the map jumps after "continue".
	 * An element that jumps there is stored as "continue"; ruleset.nft says why. NULL: none */
	const char *default_chain;
};
extern const struct nft_set nft_sets[];

struct nft;

/* ---- fill an element ----------------------------------------------------------------- */

/* An element with an empty key */
struct nft_elem nft_elem(enum nft_table table, const char *set, enum nft_mode mode);
/* The same, in the set for the family of ip: "masq" becomes "masq4" or "masq6". */
struct nft_elem nft_elem_for(const char *set, const struct hw_ip *ip, enum nft_mode mode);
void nft_key_ip(struct nft_elem *elem, const struct hw_ip *ip);
/* An interval: all fields of the key are networks, or none. */
void nft_key_network(struct nft_elem *elem, const struct hw_prefix *prefix);
void nft_key_port(struct nft_elem *elem, uint16_t port);
void nft_key_proto(struct nft_elem *elem, uint8_t proto);
/* In host byte order, as marks are */
void nft_key_number(struct nft_elem *elem, uint32_t number);
void nft_key_ifname(struct nft_elem *elem, const char *ifname);
void nft_key_mac(struct nft_elem *elem, const struct hw_mac *mac);
void nft_data_ip(struct nft_elem *elem, const struct hw_ip *ip);
void nft_data_port(struct nft_elem *elem, uint16_t port);
void nft_data_jump(struct nft_elem *elem, const char *chain);
void nft_data_goto(struct nft_elem *elem, const char *chain);
/* Jump to the chain of a network, which nft_add() creates if needed. */
void nft_data_network(struct nft_elem *elem, enum nft_chain chain, const struct hw_prefix *prefix);

/* The owner of the elements of an attachment: a hash of its identity */
void nft_owner(const char *network, const char *container_id, const char *ifname,
	       char ret_owner[NFT_OWNER]);
/* "tcp . 8080 : 10.1.2.3 . 80", as nft prints it. Return: buf */
const char *nft_elem_format(const struct nft_elem *elem, char buf[NFT_ELEM_TEXT]);

/* ---- lists of elements with one owner ------------------------------------------------- */

struct nft_elems {
	struct nft_elem *v;
	size_t n, room;
	char owner[NFT_OWNER];
};

void nft_elems_done(struct nft_elems *elems);
/* Append an element, whose key must be complete. */
void nft_elems_add(struct nft_elems *elems, struct nft_elem elem);
/* Append an element unless nft_elems_has() it. */
void nft_elems_add_once(struct nft_elems *elems, struct nft_elem elem);
/* Does the list have an element with the same set and key? An NFT_ABSENT element differs from all
 * others. */
bool nft_elems_has(const struct nft_elems *elems, const struct nft_elem *elem);

AUTO_VALUE_DEFINE(nft_elems_done, struct nft_elems);

/* ---- the kernel ---------------------------------------------------------------------- */

/* A socket in the current namespace. On a kernel without netfilter this succeeds, and requests
 * fail. */
int nft_open(struct nft **ret_nft, struct hw_err *e);
/* If elements were deleted, a helper process holds the socket a little longer (net/sender.h): the
 * last close() blocks until the kernel has freed the deleted objects. */
void nft_close(struct nft *nft);
/* For other netfilter requests (net/conntrack.h); NULL if the kernel has no netfilter */
struct mnl_socket *nft_socket(struct nft *nft);

/* The conflict with an NFT_EXCLUSIVE element: its index in v, and the existing element */
struct nft_clash {
	size_t index;
	struct nft_elem there;
};

/* Add all elements or, with an error, none. ret_clash (may be NULL) is set with -EEXIST.
 * Return: 0, -EEXIST, -ENOENT if the chain of a verdict does not exist, or another negative
 * errno */
int nft_add(struct nft *nft, const struct nft_elem *v, size_t n, const char *owner,
	    struct nft_clash *ret_clash, struct hw_err *e);
/* Delete the elements that still have this owner. Missing elements and rules are not an error. */
int nft_del(struct nft *nft, const struct nft_elem *v, size_t n, const char *owner,
	    struct hw_err *e);
/* Delete all elements of a set that have this owner, by listing the whole set: for a DEL without an
 * attachment record. */
int nft_sweep(struct nft *nft, enum nft_table table, const char *set, const char *owner,
	      struct hw_err *e);
/* For CHECK: do all elements exist with this owner and data, and the rules that use them?
 * Return: 0, -ENOENT if an element or a rule is missing, -ESTALE if an element has another owner or
 * other data, or another negative errno */
int nft_check(struct nft *nft, const struct nft_elem *v, size_t n, const char *owner,
	      struct hw_err *e);
/* One element by its key; of an interval, the element that contains its first address.
 * Return: 1 if found, 0 if the element, its set or its table does not exist, or a negative errno */
int nft_get(struct nft *nft, const struct nft_elem *elem, struct nft_elem *ret_elem,
	    struct hw_err *e);
/* Call each() for every element of a set, once all have been read; a missing set is empty.
 * Return: 0, or a negative return value of each(), which ends the loop */
int nft_list(struct nft *nft, enum nft_table table, const char *set,
	     int (*each)(void *ctx, const struct nft_elem *elem, struct hw_err *e), void *ctx,
	     struct hw_err *e);

/* ---- rules ------------------------------------------------------------------------------ */

/* Load ruleset.nft or ruleset-bridge.nft if it is missing or older; elements are kept. */
int nft_load(struct nft *nft, enum nft_table table, struct hw_err *e);
/* For STATUS. Return: 0 if the rules are loaded, or libnftables is installed to load them */
int nft_can_load(struct nft *nft, enum nft_table table, struct hw_err *e);
/* Load the rules again if another program has flushed chains of them, or the set of their
 * version. A missing table is not an error: nft_add() loads it when needed. */
int nft_repair(struct nft *nft, enum nft_table table, struct hw_err *e);
/* Return: 0, or -ENOENT if the table is missing or a chain lacks rules */
int nft_check_rules(struct nft *nft, enum nft_table table, struct hw_err *e);
/* The same for a chain that is not in the ruleset file. Return: 0, or -ENOENT if it has no rules */
int nft_check_chain(struct nft *nft, enum nft_table table, const char *chain, struct hw_err *e);
/* Create the chains of networks to which these elements jump, if they are missing or empty;
 * nft_add() calls it. */
int nft_repair_networks(struct nft *nft, const struct nft_elem *v, size_t n, struct hw_err *e);
/* Delete a table. Return: 1 if deleted, 0 if it did not exist, or a negative errno */
int nft_remove(struct nft *nft, enum nft_table table, struct hw_err *e);
/* Run nft commands as one transaction with libnftables, which reads all tables of the host: for
 * rare actions only. The text must not contain unchecked input. */
int nft_run(const char *commands, struct hw_err *e);
/* The same for commands with output, which the caller frees. */
int nft_run_get_output(const char *commands, char **ret_output, struct hw_err *e);

AUTO_DEFINE(nft_close, struct nft);

#endif
