/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/portmap/portmap.h - internal interfaces of the portmap plugin
 *
 * portmap.c    the CNI verbs, and deletion of rules that upstream's portmap left
 * conf.c       configuration and attachment record
 * condition.c  conditionsV4 and conditionsV6 as nft text
 * rules.c      a pod's elements in the nftables maps
 * owner.c      ownership of host ports
 * conflict.c   error message for a host port that is taken
 * chain.c      nftables chains for conditions and mark bits
 */
#ifndef PLUGINS_PORTMAP_PORTMAP_H
#define PLUGINS_PORTMAP_PORTMAP_H

#include <hawser/plugin.h>

#include "base/mem.h"
#include "net/nft/nft.h"

#define PORTMAP_BIT 13 /* of the packet mark, unless the configuration sets another */

/* ---- configuration and record ---------------------------------------------------------------- */

/* One entry of runtimeConfig.portMappings, as configured */
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

/* The portmap part of an attachment record: what an ADD adds, and DEL and repair work from */
struct portmap_record {
	struct hw_list entries; /* of struct portmap_entry */
	char *pod4, *pod6;	/* addresses, each with its prefix length; NULL: none */
	bool snat, masq_all;
	int mark_bit;
	char *cond4, *cond6; /* in nft syntax; NULL: no condition */
	char *earlier;	     /* JSON of this struct: the record of a previous ADD whose elements
			      * have not been deleted yet; NULL: none */
};

extern const struct hw_field portmap_record_fields[];

void portmap_record_done(struct portmap_record *record);
AUTO_VALUE_DEFINE(portmap_record_done, struct portmap_record);

/* One port mapping, parsed */
struct portmap_port {
	uint8_t proto;
	uint8_t family;	   /* of the pod's address; 0: both families */
	struct hw_ip host; /* address of the host; family 0: every address */
	uint16_t host_port, pod_port;
};

/* Reject configurations that upstream rejects, and malformed port mappings (CNI code 7). */
int portmap_conf_check(const struct portmap_conf *conf, struct hw_err *e);
/* Build the record from configuration and prevResult. @record must be zeroed; the caller frees it
 * with portmap_record_done(), also after an error. */
int portmap_conf_read(const struct hw_call *call, struct portmap_record *record, struct hw_err *e);
/* Parse one port mapping; CNI code 7 if it is invalid. */
int portmap_port_parse(const struct portmap_entry *entry, struct portmap_port *ret_port,
		       struct hw_err *e);
/* Is the entry valid for this address of the pod? *ret_port is the parsed entry if it is. */
bool portmap_entry_applies(const struct portmap_entry *entry, const struct hw_prefix *pod,
			   struct portmap_port *ret_port);
/* The pod's addresses, one per family. Return: how many */
size_t portmap_pod_addresses(const struct portmap_record *record, struct hw_prefix ret_pods[2]);

/* Translate conditions to nft syntax. *ret_text is one line that cannot end the rule it becomes
 * part of; free() it. It is NULL if there are no conditions. CNI code 7 if they are invalid. */
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

/* The elements of one attachment that are to be added, checked or deleted */
struct portmap_batch {
	struct nft *nft;
	const struct hw_call *call;
	const struct portmap_record *record;
	struct nft_elems elems;		   /* with the attachment as owner */
	struct portmap_attachments others; /* empty until portmap_attachments_read() */
	bool shared; /* another attachment of the container may have a claim to a port */
};

typedef int portmap_each_fn(struct portmap_batch *batch, const struct portmap_port *port,
			    const struct hw_prefix *pod, struct hw_err *e);
/* Call @each for every port of every address of the pod. Stops at the first error.
 * Return: 0 or that error */
int portmap_for_each_port(struct portmap_batch *batch, portmap_each_fn *each, struct hw_err *e);

/* An element with the port as key, without data. @map "port" is one of the maps port4, port6,
 * anyport4 and anyport6: any* for a port on every address. */
struct nft_elem portmap_port_elem(const char *map, const struct portmap_port *port,
				  const struct hw_prefix *pod, enum nft_mode mode);
/* Append the elements that map a host port to the pod. @mode is that of the element with the
 * target; the elements beside it have NFT_OWNED. */
void portmap_put_mapping(struct portmap_batch *batch, const struct portmap_port *port,
			 const struct hw_prefix *pod, enum nft_mode mode);

/* Add the elements of call->created, then delete those of call->earlier that are no longer needed.
 * If that fails, the elements of call->earlier are restored as far as possible. */
int portmap_rules_add(const struct hw_call *call, struct hw_err *e);
/* Delete the elements of the record, and of record->earlier, that this attachment still owns. */
int portmap_rules_del(const struct hw_call *call, const struct portmap_record *record,
		      struct hw_err *e);
/* Are all elements and chains of the record there? -ENOENT or -ESTALE if not. */
int portmap_rules_check(const struct hw_call *call, const struct portmap_record *record,
			struct hw_err *e);
/* For a DEL without record and prevResult: delete the elements whose key is the pod's unknown
 * address, by their owner. */
int portmap_rules_sweep(const struct hw_call *call, struct hw_err *e);

/* Delete the conntrack entries of the record's UDP ports, unless another attachment owns the port.
 * An error is only logged: the entries expire when no packets come for a while. */
void portmap_flush_udp(struct portmap_batch *batch);

/* ---- ownership (owner.c) --------------------------------------------------------------------- */

/* Acquire the lock on the host ports of a container, shared by all its attachments. close()
 * releases it. CNI code 11 after a timeout. */
int portmap_lock(const struct hw_call *call, int *ret_fd, struct hw_err *e);
/* The same for creating chains, one lock for all containers; acquired after portmap_lock(). */
int portmap_lock_chains(int *ret_fd, struct hw_err *e);

/* Read batch->others from the attachment records.
 * Return: 1 if the container has other attachments, 0 if not */
int portmap_attachments_read(struct portmap_batch *batch, struct hw_err *e);
void portmap_attachments_done(struct portmap_attachments *attachments);
bool portmap_attachments_has(const struct portmap_attachments *attachments, const char *owner);

/* Find the element that maps the port: on the same address, or on every address.
 * Return: 1 with *ret_elem, 0 if the port is not mapped */
int portmap_find_mapping(struct nft *nft, const struct portmap_port *port,
			 const struct hw_prefix *pod, struct nft_elem *ret_elem, struct hw_err *e);
/* Is the port mapped for another attachment of the same container?
 * Return: 1 or 0; 0 as long as batch->others has not been read */
int portmap_is_owned_by_container(const struct portmap_batch *batch,
				  const struct portmap_port *port, const struct hw_prefix *pod,
				  struct hw_err *e);

/* Append the elements that make the port ours: a claim where one is needed, and what must be
 * absent. */
int portmap_put_claim(struct portmap_batch *batch, const struct portmap_port *port,
		      const struct hw_prefix *pod, struct hw_err *e);
/* Append our claims to the port, for deleting them. Sets batch->shared. */
int portmap_find_claims(struct portmap_batch *batch, const struct portmap_port *port,
			const struct hw_prefix *pod, struct hw_err *e);
/* For CHECK: -ENOENT if the port needs a claim and has none. */
int portmap_check_claim(struct portmap_batch *batch, const struct portmap_port *port,
			const struct hw_prefix *pod, struct hw_err *e);
/* Does another container have a claim to the port, on some address? Other attachments of the same
 * container count as another container until batch->others has been read. Return: 1 or 0 */
int portmap_is_claimed_by_others(const struct portmap_batch *batch, const struct portmap_port *port,
				 const struct hw_prefix *pod, struct hw_err *e);
/* Transfer our ports, except those in @keep (NULL: none), to the oldest other attachments of the
 * container that have claims to them. */
int portmap_transfer_ports(struct portmap_batch *batch, const struct nft_elems *keep,
			   struct hw_err *e);

/* Return: -EADDRINUSE with the owner of the element and how to free its port in *e, or another
 * error */
int portmap_conflict(struct nft *nft, const struct nft_elem *elem, struct hw_err *e);

/* ---- chains (chain.c) ------------------------------------------------------------------------ */

#define PORTMAP_CHAIN NFT_NAME
/* Names of the chain that tests these conditions, and of the chain that sets the mark */
void portmap_condition_chain(const char *condition, char ret_chain[PORTMAP_CHAIN]);
void portmap_mark_chain(const struct portmap_record *record, char ret_chain[PORTMAP_CHAIN]);
/* Create the chains that the record's elements jump to, where they are missing or empty. */
int portmap_chains_create(struct nft *nft, const struct portmap_record *record, struct hw_err *e);
/* -ENOENT if one of them is missing or empty */
int portmap_chains_check(struct nft *nft, const struct portmap_record *record, struct hw_err *e);

extern const struct hw_plugin portmap_plugin;

#endif
