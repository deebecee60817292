/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/nft/nft.h - elements of hawser's nftables sets and maps
 *
 * What:  a pod, an address or a port is an element of one of the sets and maps
 *        of ruleset.nft (table inet) and ruleset-bridge.nft (table bridge).
 * How:   fill elements, then add or delete several in one transaction:
 *
 *	struct nft_elem v[2] = {
 *		nft_elem(NFT_INET, "anyport4", NFT_OWNED),
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
 *		r = nft_add(nft, v, 2, owner, e);
 *	...
 *	r = nft_del(nft, v, 2, owner, e);	only elements that still have this owner
 *
 *        nft_add() first loads the rules if they are missing or of an older version,
 *        and creates the chains of networks. nft_change() is for elements that depend
 *        on what other elements exist.
 *        All calls act in the namespace in which nft_open() was called.
 * Rules: the comment of an element is its owner, a hash; no untrusted text is
 *        written to the kernel. Except for nft_run(), no call reads rules of other
 *        programs.
 *        DEL finds an element by the same key as ADD, so the attachment record
 *        must contain all values that are part of the key.
 */
#ifndef NET_NFT_NFT_H
#define NET_NFT_NFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hawser/addr.h>
#include <hawser/field.h>

#include "base/err.h"
#include "base/mem.h"

#define NFT_OWNER     17 /* buffer size for an owner: 16 hex digits and a NUL */
#define NFT_NAME      32 /* buffer size for the name of one of hawser's sets or chains */
#define NFT_KEY_MAX   64
#define NFT_ELEM_TEXT 192

enum nft_table { NFT_INET, NFT_BRIDGE };

/* What nft_add() and nft_change() do if the element already exists */
enum nft_mode {
	NFT_OWNED,  /* an element of another owner is replaced: the pod of that owner no longer
		     * exists, because its address has been allocated again */
	NFT_SHARED, /* the element has no owner and is never deleted. If an existing element
		     * contains the network, nothing is added. Otherwise the network replaces the
		     * elements that contain its first or last address; further elements inside
		     * the network may remain */
	NFT_GONE,   /* only for nft_change(): the element is deleted, unless another owner has it */
};

/* Each network of pods has its own chain of each of these kinds */
enum nft_chain {
	NFT_MASQ,    /* masquerades traffic to destinations outside the network */
	NFT_HAIRPIN, /* masquerades traffic that comes from the network itself */
};

struct nft_bytes {
	uint8_t v[NFT_KEY_MAX];
	uint8_t len;
};

struct nft_elem {
	enum nft_table table;
	enum nft_mode mode;
	char set[NFT_NAME];
	struct nft_bytes key, end; /* end: last key of an interval; empty if not an interval */
	struct nft_bytes data;	   /* only for maps */
	char chain[NFT_NAME];	   /* only for verdict maps: the target; "": no verdict */
	bool is_goto;		   /* true: the verdict is goto; false: jump */
	struct hw_prefix network;  /* set if chain is the chain of a network; else empty */
	const struct hw_strings *direct; /* see nft_data_masq_chain(); NULL: none */
	/* Of an element that was read: its owner; "": it has none. Of an element to add, delete or
	 * check: its owner; "": the owner that is passed with the list of elements. */
	char owner[NFT_OWNER];
};

/* The owner of an element that belongs to several containers */
#define NFT_SEVERAL "0000000000000000"

/* All sets and maps of the ruleset files, with the types of their fields (see elem.c); and, with a name
 * that ends with _, those of networks. The name in the last entry is NULL. */
struct nft_set {
	enum nft_table table;
	const char *name;
	const char *key, *data;
	/* Only for verdict maps: the chain to which the rule jumps if the verdict of the element
	 * is "continue". An element that jumps to this chain is stored with the verdict
	 * "continue"; ruleset.nft says why. NULL: there is no such chain */
	const char *default_chain;
};
extern const struct nft_set nft_sets[];

struct nft;

/* ---- fill an element ----------------------------------------------------------------- */

/* Return: an element with an empty key */
struct nft_elem nft_elem(enum nft_table table, const char *set, enum nft_mode mode);
/* Like nft_elem(), but selects the set for the family of ip: "masq" becomes "masq4" or "masq6". */
struct nft_elem nft_elem_for(const char *set, const struct hw_ip *ip, enum nft_mode mode);
void nft_key_ip(struct nft_elem *elem, const struct hw_ip *ip);
/* Append a network to the key, which makes the element an interval. Either all fields of the key
 * are networks, or no field is. */
void nft_key_network(struct nft_elem *elem, const struct hw_prefix *prefix);
void nft_key_port(struct nft_elem *elem, uint16_t port);
void nft_key_proto(struct nft_elem *elem, uint8_t proto);
/* The number is stored in host byte order, like a packet mark. */
void nft_key_number(struct nft_elem *elem, uint32_t number);
void nft_key_ifname(struct nft_elem *elem, const char *ifname);
void nft_key_mac(struct nft_elem *elem, const struct hw_mac *mac);
void nft_data_ip(struct nft_elem *elem, const struct hw_ip *ip);
void nft_data_port(struct nft_elem *elem, uint16_t port);
void nft_data_jump(struct nft_elem *elem, const char *chain);
void nft_data_goto(struct nft_elem *elem, const char *chain);
/* Jump to the chain that masquerades traffic of pods of a network, except to the network itself, to
 * multicast addresses and to the networks "direct". These are texts of hw_prefix_format() and must not
 * overlap; those of the other family are ignored. A prefix with the full length is not a network.
 * nft_add() creates the chain if needed. The caller keeps the texts as long as the element. */
void nft_data_masq_chain(struct nft_elem *elem, const struct hw_prefix *prefix,
			 const struct hw_strings *direct);
/* Name of the set with the networks "direct" of a chain of nft_data_masq_chain() */
void nft_direct_set(const char *chain, int family, char ret_set[NFT_NAME]);
/* Jump to the chain of a network, which nft_add() creates if needed. */
void nft_data_network_chain(struct nft_elem *elem, enum nft_chain chain,
			    const struct hw_prefix *prefix);

/* Compute the owner of an attachment's elements: a hash of network, container ID and interface */
void nft_owner(const char *network, const char *container_id, const char *ifname,
	       char ret_owner[NFT_OWNER]);
/* Compute the owner of elements that belong to all attachments of a container together */
void nft_container_owner(const char *container_id, char ret_owner[NFT_OWNER]);
/* Do both elements have the same set and the same key? */
bool nft_elem_same_key(const struct nft_elem *a, const struct nft_elem *b);
/* Do both elements have the same data or the same verdict? */
bool nft_elem_same_data(const struct nft_elem *a, const struct nft_elem *b);
/* Format an element like nft does: "tcp . 8080 : 10.1.2.3 . 80". Return: buf */
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
/* Append an element unless nft_elems_has() returns true for it. */
void nft_elems_add_once(struct nft_elems *elems, struct nft_elem elem);
/* Does the list have an element with the same set and key? */
bool nft_elems_has(const struct nft_elems *elems, const struct nft_elem *elem);
/* Does the list have an element of this set? */
bool nft_elems_has_set(const struct nft_elems *elems, const char *set);

AUTO_VALUE_DEFINE(nft_elems_done, struct nft_elems);

/* ---- the kernel ---------------------------------------------------------------------- */

/* Open a socket in the current namespace. On a kernel without netfilter this succeeds, but later
 * requests fail. */
int nft_open(struct nft **ret_nft, struct hw_err *e);
/* If elements were deleted, a helper process keeps the socket open a little longer (net/sender.h),
 * because the last close() blocks until the kernel has freed the deleted objects. */
void nft_close(struct nft *nft);
/* Return: the socket, for other netfilter requests (net/conntrack.h); NULL if the kernel has no
 * netfilter */
struct mnl_socket *nft_socket(struct nft *nft);

/* After an error: does the kernel lack nftables? */
bool nft_is_unsupported(struct nft *nft);

/* Add all elements; if the call fails, no element is added.
 * Return: 0; -ENOENT if the chain of a verdict does not exist; CNI code 11 if other programs changed
 * nftables during all attempts; or another negative errno */
int nft_add(struct nft *nft, const struct nft_elem *v, size_t n, const char *owner,
	    struct hw_err *e);
/* Like nft_add(), but fail with -EEXIST if an element already exists, or if a network with mode
 * NFT_SHARED overlaps one that exists. The existing elements are not read. */
int nft_add_new(struct nft *nft, const struct nft_elems *elems, struct hw_err *e);
/* Add and delete elements in one transaction. The caller must have a lock that excludes other
 * processes which change these elements. Changes by other programs make the call neither fail nor
 * take longer, except that it restores missing rules. The rules are loaded only if an element is
 * added.
 * Return: as for nft_add() */
int nft_change(struct nft *nft, const struct nft_elems *elems, struct hw_err *e);
/* Delete the elements that still have this owner; elements of other owners are kept. Missing
 * elements and missing rules are not an error. If the call fails, some elements may be deleted.
 * Return: 0; CNI code 11 as for nft_add(); or another negative errno */
int nft_del(struct nft *nft, const struct nft_elem *v, size_t n, const char *owner,
	    struct hw_err *e);
/* Delete all elements of a set that have this owner, for a DEL without an attachment record. This
 * lists all elements of the set. */
int nft_del_owned(struct nft *nft, enum nft_table table, const char *set, const char *owner,
		  struct hw_err *e);
/* For CHECK: check that all elements exist with this owner and this data, and that the rules which
 * use them exist.
 * Return: 0, -ENOENT if an element or a rule is missing, -ESTALE if an element has another owner or
 * different data, or another negative errno */
int nft_check(struct nft *nft, const struct nft_elem *v, size_t n, const char *owner,
	      struct hw_err *e);
/* Read one element by its key. If elem is an interval, read the element that contains its first
 * address.
 * Return: 1 if found, 0 if the element, its set or its table does not exist, or a negative errno */
int nft_get(struct nft *nft, const struct nft_elem *elem, struct nft_elem *ret_elem,
	    struct hw_err *e);
/* Like nft_get(), for several elements at once, which is faster. nft_elem_exists() says whether
 * ret_v[i] was found.
 * Return: 0 or a negative errno */
int nft_get_all(struct nft *nft, const struct nft_elem *v, size_t n, struct nft_elem *ret_v,
		struct hw_err *e);
static inline bool nft_elem_exists(const struct nft_elem *elem)
{
	return elem->key.len > 0;
}
/* Read all elements of a set, then call each() for every one; a missing set is treated as empty. A
 * negative return value of each() ends the loop and is returned.
 * Return: 0 or a negative errno */
int nft_list(struct nft *nft, enum nft_table table, const char *set,
	     int (*each)(void *ctx, const struct nft_elem *elem, struct hw_err *e), void *ctx,
	     struct hw_err *e);
/* Return: 0 if a set of the table inet is empty or missing; -EBUSY if it has an element, which the error
 * names after "@needed by a pod: "; or another negative errno */
int nft_require_empty(struct nft *nft, const char *set, const char *needed, struct hw_err *e);

/* ---- rules ------------------------------------------------------------------------------ */

/* Load ruleset.nft or ruleset-bridge.nft if its rules are missing or of an older version; existing
 * elements are kept. */
int nft_load(struct nft *nft, enum nft_table table, struct hw_err *e);
/* Return: 1 if the rules of this version or a newer one are loaded and were not flushed, 0 if not, or a
 * negative errno */
int nft_is_loaded(struct nft *nft, enum nft_table table, struct hw_err *e);
/* For STATUS. Return: 0 if the rules are loaded, or if libnftables is installed and can load them;
 * else a negative errno */
int nft_can_load(struct nft *nft, enum nft_table table, struct hw_err *e);
/* Reload the rules if another program has flushed some of their chains, or the set "version". A
 * missing table is not an error: nft_add() loads it when needed. */
int nft_repair(struct nft *nft, enum nft_table table, struct hw_err *e);
/* The rules of an older version are accepted, so that CHECK succeeds between an upgrade and the next
 * ADD, which loads the new rules.
 * Return: 0, -ENOENT if the table is missing or a chain lacks rules, or another negative errno */
int nft_check_rules(struct nft *nft, enum nft_table table, struct hw_err *e);
/* Like nft_check_rules(), but for one chain that is not part of the ruleset file. Return: 0,
 * -ENOENT if the chain has no rules, or another negative errno */
int nft_check_chain_rules(struct nft *nft, enum nft_table table, const char *chain,
			  struct hw_err *e);
/* For CHECK: like nft_check_chain_rules(), but for the chain of a network and its set */
int nft_check_network(struct nft *nft, const struct nft_elem *elem, struct hw_err *e);
/* Create the network chains to which these elements jump, if they are missing or empty. nft_add()
 * calls this function. */
int nft_repair_networks(struct nft *nft, const struct nft_elem *v, size_t n, struct hw_err *e);
/* Delete a table. Return: 1 if deleted, 0 if it did not exist, or a negative errno */
int nft_delete_table(struct nft *nft, enum nft_table table, struct hw_err *e);
/* Run nft commands as one transaction with libnftables. That is slow, because libnftables reads all
 * tables of the host: use it only for rare actions. The text must not contain untrusted input. */
int nft_run(const char *commands, struct hw_err *e);
/* Like nft_run(), and also return the output of the commands, which the caller frees. */
int nft_run_get_output(const char *commands, char **ret_output, struct hw_err *e);

AUTO_DEFINE(nft_close, struct nft);

#endif
