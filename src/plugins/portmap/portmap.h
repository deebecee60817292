/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/portmap/portmap.h - internal interfaces of the portmap plugin
 *
 * portmap.c    the CNI verbs, and deletion of rules that upstream's portmap left
 * conf.c       configuration and attachment record
 * condition.c  translation of conditionsV4 and conditionsV6 to nft syntax
 * rules.c      a pod's elements in the nftables maps
 * owner.c      ownership of host ports
 * conflict.c   error message for a host port that is already in use
 * chain.c      nftables chains for conditions and mark bits
 */
#ifndef PLUGINS_PORTMAP_PORTMAP_H
#define PLUGINS_PORTMAP_PORTMAP_H

#include <hawser/plugin.h>

#include "base/mem.h"
#include "net/nft/nft.h"

#define PORTMAP_BIT 13 /* default bit of the packet mark */

/* ---- configuration and record ---------------------------------------------------------------- */

/* One entry of runtimeConfig.portMappings, unparsed */
struct portmap_entry {
	int host_port, pod_port;
	char *protocol;
	char *host_ip;
};

struct portmap_conf {
	char *backend;
	bool snat, masq_all;
	struct hw_strings cond4, cond6;
	int mark_bit;
	bool has_mark_bit;
	char *external_chain;
	bool has_external_chain;
	struct hw_list entries;
};

extern const struct hw_field portmap_fields[];

/* The part of an attachment record that portmap writes. DEL and repair compute all elements from
 * it. */
struct portmap_record {
	struct hw_list entries; /* struct portmap_entry */
	char *pod4, *pod6;	/* the pod's address of each family, with prefix length, or NULL */
	bool snat, masq_all;
	int mark_bit;
	char *cond4, *cond6; /* in nft syntax; NULL: no condition */
};

extern const struct hw_field portmap_record_fields[];

void portmap_record_done(struct portmap_record *record);
AUTO_VALUE_DEFINE(portmap_record_done, struct portmap_record);

/* One port mapping, parsed */
struct portmap_port {
	uint8_t proto;
	uint8_t family;	   /* family of the pod's address; 0: both families */
	struct hw_ip host; /* address of the host; family 0: every address */
	uint16_t host_port, pod_port;
};

/* Reject configurations that upstream rejects, and malformed port mappings (CNI code 7). */
int portmap_conf_check(const struct portmap_conf *conf, struct hw_err *e);
/* Build the record from configuration and prevResult. @record must be zeroed; the caller frees it
 * with portmap_record_done(), also after an error. */
int portmap_conf_read(const struct hw_call *call, struct portmap_record *record, struct hw_err *e);
/* Parse one port mapping. An invalid mapping is an error with CNI code 7. */
int portmap_port_parse(const struct portmap_entry *entry, struct portmap_port *ret_port,
		       struct hw_err *e);
/* Is the entry valid, and does it apply to the family of this address of the pod? If so, *ret_port
 * is the parsed entry. */
bool portmap_entry_applies(const struct portmap_entry *entry, const struct hw_prefix *pod,
			   struct portmap_port *ret_port);
/* Get the pod's addresses, at most one per family. Return: the number of addresses */
size_t portmap_pod_addresses(const struct portmap_record *record, struct hw_prefix ret_pods[2]);

/* Translate conditions to nft syntax. *ret_text is one line that cannot end the rule that it
 * becomes part of; the caller frees it. It is NULL if there are no conditions. Invalid conditions
 * are an error with CNI code 7. */
int portmap_condition(const struct hw_strings *tokens, int family, char **ret_text,
		      struct hw_err *e);
/* Are the conditions in iptables syntax? (The first word starts with - or !.) */
bool portmap_condition_is_iptables(const struct hw_strings *tokens);

/* ---- elements (rules.c) ---------------------------------------------------------------------- */

/* Other attachments of the same container, oldest first */
struct portmap_attachments {
	struct portmap_attachment {
		char owner[NFT_OWNER];
		struct portmap_record record;
		int64_t started;
	} * v;
	size_t n;
};

/* The elements of one attachment, collected to be added, checked or deleted */
struct portmap_batch {
	struct nft *nft;
	const struct hw_call *call;
	const struct portmap_record *record;
	struct nft_elems elems;		   /* elems.owner is the attachment */
	struct portmap_attachments others; /* empty until portmap_attachments_read() */
	bool shared; /* another attachment of the container may wait for one of the ports */
};

typedef int portmap_each_fn(struct portmap_batch *batch, const struct portmap_port *port,
			    const struct hw_prefix *pod, struct hw_err *e);
/* Call @each for every port and every address of the pod to which the port applies. Stops at the
 * first error. Return: 0, or that error */
int portmap_for_each_port(struct portmap_batch *batch, portmap_each_fn *each, struct hw_err *e);

/* Create an element without data whose key is the port.
 * @map: name of the map without "any" and family: "port" becomes port4 or port6, or for a port on
 *       every address anyport4 or anyport6 */
struct nft_elem portmap_port_elem(const char *map, const struct portmap_port *port,
				  const struct hw_prefix *pod, enum nft_mode mode);
/* Append the elements that map a host port to the pod. @mode applies to the element that contains
 * the target (the pod's address and port); the other elements use NFT_OWNED. */
void portmap_put_mapping(struct portmap_batch *batch, const struct portmap_port *port,
			 const struct hw_prefix *pod, enum nft_mode mode);

/* Add the elements of call->created. */
int portmap_rules_add(const struct hw_call *call, struct hw_err *e);
/* Delete the elements of the record that this attachment still owns. */
int portmap_rules_del(const struct hw_call *call, const struct portmap_record *record,
		      struct hw_err *e);
/* Check that all elements and chains of the record exist. Return: 0; -ENOENT or -ESTALE if not */
int portmap_rules_check(const struct hw_call *call, const struct portmap_record *record,
			struct hw_err *e);
/* For a DEL without record and prevResult, which does not know the pod's address. Deletes the
 * elements whose key contains this address; they are found by their owner. */
int portmap_rules_sweep(const struct hw_call *call, struct hw_err *e);

/* Delete the conntrack entries of the record's UDP ports, unless another attachment owns the port.
 * An error is only logged: the entries expire when no packets arrive for some time. */
void portmap_flush_udp(struct portmap_batch *batch);

/* ---- ownership (owner.c) --------------------------------------------------------------------- */

/* Acquire the lock on the host ports of a container; all its attachments use the same lock. close()
 * releases it. A timeout is an error with CNI code 11. */
int portmap_lock(const struct hw_call *call, int *ret_fd, struct hw_err *e);
/* Acquire the lock for creating chains; all containers use the same lock. A process that needs both
 * locks must acquire portmap_lock() first. */
int portmap_lock_chains(int *ret_fd, struct hw_err *e);

/* Read batch->others from the attachment records.
 * Return: 1 if the container has other attachments, 0 if not */
int portmap_attachments_read(struct portmap_batch *batch, struct hw_err *e);
void portmap_attachments_done(struct portmap_attachments *attachments);
bool portmap_attachments_has(const struct portmap_attachments *attachments, const char *owner);

/* Find the element that maps the port on the same address of the host or on every address.
 * Return: 1 if found, 0 if the port is not mapped */
int portmap_find_mapping(struct nft *nft, const struct portmap_port *port,
			 const struct hw_prefix *pod, struct nft_elem *ret_elem, struct hw_err *e);
/* Is the port mapped for another attachment of the same container? Call portmap_attachments_read()
 * before: otherwise the answer is always 0.
 * Return: 1 if so, 0 if not */
int portmap_is_owned_by_container(const struct portmap_batch *batch,
				  const struct portmap_port *port, const struct hw_prefix *pod,
				  struct hw_err *e);

/* Append the elements that make this attachment the owner of the port, or let it wait for the port:
 * a claim if one is needed, and the elements that must not exist. */
int portmap_put_claim(struct portmap_batch *batch, const struct portmap_port *port,
		      const struct hw_prefix *pod, struct hw_err *e);
/* Append this attachment's claims to the port, so that they can be deleted. Sets batch->shared. */
int portmap_find_claims(struct portmap_batch *batch, const struct portmap_port *port,
			const struct hw_prefix *pod, struct hw_err *e);
/* For CHECK. Return: 0; -ENOENT if the attachment needs a claim to the port and has none */
int portmap_check_claim(struct portmap_batch *batch, const struct portmap_port *port,
			const struct hw_prefix *pod, struct hw_err *e);
/* Does another container have a claim to the port? Until batch->others has been read, other
 * attachments of the same container are treated like other containers.
 * Return: 1 if so, 0 if not */
int portmap_is_claimed_by_others(const struct portmap_batch *batch, const struct portmap_port *port,
				 const struct hw_prefix *pod, struct hw_err *e);
/* Transfer each port of this attachment to the oldest other attachment of the container that has a
 * claim to it.
 * @keep: elements of ports that are not transferred; NULL: transfer all */
int portmap_transfer_ports(struct portmap_batch *batch, const struct nft_elems *keep,
			   struct hw_err *e);

/* Set the error for a port that is already in use. The message names the owner of @elem and says
 * how to free the port.
 * Return: -EADDRINUSE, or another error */
int portmap_conflict(struct nft *nft, const struct nft_elem *elem, struct hw_err *e);

/* ---- chains (chain.c) ------------------------------------------------------------------------ */

#define PORTMAP_CHAIN NFT_NAME
/* Get the name of the chain that tests these conditions, or of the chain that sets the mark. */
void portmap_condition_chain(const char *condition, char ret_chain[PORTMAP_CHAIN]);
void portmap_mark_chain(const struct portmap_record *record, char ret_chain[PORTMAP_CHAIN]);
/* Create the chains that the record's elements jump to, if they are missing or empty. */
int portmap_chains_create(struct nft *nft, const struct portmap_record *record, struct hw_err *e);
/* Return: 0; -ENOENT if one of these chains is missing or empty */
int portmap_chains_check(struct nft *nft, const struct portmap_record *record, struct hw_err *e);

extern const struct hw_plugin portmap_plugin;

#endif
