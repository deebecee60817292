/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/portmap/portmap.h - internal interfaces of the portmap plugin
 *
 * portmap.c    the CNI verbs, and deletion of rules that upstream's portmap left
 * conf.c       configuration and attachment record
 * condition.c  translation of conditionsV4 and conditionsV6 to nft syntax
 * rules.c      a pod's elements in the nftables maps
 * owner.c      ownership of host ports, and the error for a port that is in use
 * chain.c      nftables chains for conditions and mark bits
 */
#ifndef PLUGINS_PORTMAP_PORTMAP_H
#define PLUGINS_PORTMAP_PORTMAP_H

#include <hawser/plugin.h>

#include "base/err.h"
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
	/* Only in records of 0.1.0: this struct as JSON, of an ADD whose elements a second ADD had
	 * not yet deleted when it was killed */
	char *earlier;
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

/* A set of protocols and host ports; starts zeroed */
struct portmap_ports {
	uint8_t *bits; /* NULL: empty */
};

/* The other attachments of the same container, oldest first */
struct portmap_attachments {
	struct portmap_attachment {
		struct portmap_record record;
		char owner[NFT_OWNER]; /* of elements that 0.1.0 added */
		int64_t finished;      /* when its ADD finished; INT64_MAX: not yet */
		bool alive;	       /* its network namespace exists */
	} * v;
	size_t n;
	bool read;
	struct portmap_ports ports; /* all ports of these attachments */
	int64_t own_finished;	    /* .finished of the attachment of the call */
};

/* Elements that were read in advance, in the order in which they will be needed */
struct portmap_ahead {
	struct nft_elems wanted;
	struct nft_elem *found;
	size_t next;
};

/* The elements of one attachment, collected to be added, checked or deleted */
struct portmap_batch {
	struct nft *nft;
	const struct hw_call *call;
	const struct portmap_record *record;
	bool is_check, is_repair;
	bool no_address;	   /* DEL: the addresses of the pod in the record are not known */
	char container[NFT_OWNER]; /* the owner of ports */
	struct portmap_ports seen; /* ports whose claim was handled */
	struct portmap_ports dropped; /* DEL: ports that led to this attachment */
	struct portmap_ahead ahead;
	struct nft_elems elems; /* elems.owner is the attachment, the owner of other elements */
	struct nft_elems mine;	/* DEL: elements that this attachment no longer needs */
	struct nft_elems transferred; /* DEL: elements of ports that other attachments get */
	struct nft_elems singles;     /* all elements of port4 and port6, if has_singles is true */
	bool has_singles;
	struct errors conflicts;	   /* repair: the first port that another container keeps */
	struct portmap_attachments others; /* empty until portmap_attachments_read() */
};

typedef int portmap_each_fn(void *ctx, const struct portmap_record *record,
			    const struct portmap_port *port, const struct hw_prefix *pod,
			    struct hw_err *e);
/* Call @each for every port and every address of the pod to which the port applies. A return value
 * of @each other than 0 ends the loop. Return: that value, or 0 */
int portmap_for_each_port(const struct portmap_record *record, portmap_each_fn *each, void *ctx,
			  struct hw_err *e);

/* Create the element that maps a host port to the pod, without owner. */
struct nft_elem portmap_target(const struct portmap_port *port, const struct hw_prefix *pod);

/* Get the host port from the key of an element whose key is a port. */
uint16_t portmap_key_port(const struct nft_elem *elem);

/* Add the elements of call->created. */
int portmap_rules_add(const struct hw_call *call, struct hw_err *e);
/* Like portmap_rules_add(), but also takes over a port of a container whose ADD finished earlier, or whose
 * network namespace no longer exists, and takes back a port from a younger attachment of the same
 * container. If other containers keep some of the ports, all other elements are restored.
 * Return: 0; -EADDRINUSE in that case; or another negative errno */
int portmap_rules_repair(const struct hw_call *call, struct hw_err *e);
/* Delete the elements of the record that this attachment still has. Ports that other attachments of
 * the container also requested are transferred to the oldest of them whose network namespace
 * exists. */
int portmap_rules_del(const struct hw_call *call, const struct portmap_record *record,
		      struct hw_err *e);
/* Check that all elements and chains of the record exist. Elements as 0.1.0 added them are accepted.
 * Return: 0; -ENOENT or -ESTALE if not; -EADDRINUSE if another container has one of the ports */
int portmap_rules_check(const struct hw_call *call, const struct portmap_record *record,
			struct hw_err *e);
/* For a DEL that has neither a record nor a prevResult, and so does not know the pod's address.
 * Deletes the elements whose key contains that address; they are found by their owner. */
int portmap_rules_sweep(const struct hw_call *call, struct hw_err *e);

/* ---- ownership (owner.c) --------------------------------------------------------------------- */

/* The locks, in the order in which they must be acquired. close() releases a lock. A timeout is an
 * error with CNI code 11. */

/* Acquire the lock on the host ports of a container; all its attachments use the same lock. */
int portmap_lock(const struct hw_call *call, int *ret_fd, struct hw_err *e);
/* Acquire the lock on the elements of all containers. */
int portmap_lock_elements(int *ret_fd, struct hw_err *e);
/* Acquire the lock for creating chains; all containers use the same lock. */
int portmap_lock_chains(int *ret_fd, struct hw_err *e);

/* Return: false if the set already had the port */
bool portmap_ports_add(struct portmap_ports *ports, const struct portmap_port *port);
bool portmap_ports_has(const struct portmap_ports *ports, const struct portmap_port *port);
void portmap_ports_done(struct portmap_ports *ports);

/* Read batch->others from the attachment records, unless that was done before. */
int portmap_attachments_read(struct portmap_batch *batch, struct hw_err *e);
void portmap_attachments_done(struct portmap_attachments *attachments);
/* Find the oldest attachment with a network namespace that maps this host port to this target.
 * Return: NULL if not found */
const struct portmap_attachment *portmap_attachments_find(
	const struct portmap_attachments *attachments, struct nft_elem *target);
/* Create the element that says that attachments of a container share ports.
 * @container: the owner of the container's ports */
struct nft_elem portmap_sharing_elem(const char *container);
/* Create the element that claims a port, without owner. */
struct nft_elem portmap_claim(const struct portmap_port *port);

/* Read in advance, because that is faster: the element of portmap_sharing_elem(), and the mapping and
 * the claim of every port. */
int portmap_read_ahead(struct portmap_batch *batch, struct hw_err *e);
void portmap_ahead_done(struct portmap_ahead *ahead);
/* Like nft_get(), but does not read again what was read in advance. */
int portmap_get(struct portmap_batch *batch, const struct nft_elem *elem, struct nft_elem *ret_elem,
		struct hw_err *e);
/* Read the element that maps a port on exactly these addresses.
 * Return: 0 if not found; 1 if this container has the port; 2 if another container has it */
int portmap_get_mapping(struct portmap_batch *batch, const struct portmap_port *port,
			const struct hw_prefix *pod, struct nft_elem *ret_elem, struct hw_err *e);
/* Find the container that has a port, on any of the host addresses of @port.
 * Return: 0 if no other container has the port; 1 if this container has it on exactly these
 * addresses; 2 if another container has it, on at least one of them. With 1 and 2 *ret_elem is the
 * element that maps the port. */
int portmap_get_port(struct portmap_batch *batch, const struct portmap_port *port,
		     const struct hw_prefix *pod, struct nft_elem *ret_elem, struct hw_err *e);
/* Find an element that maps the port, on whatever address.
 * @family: AF_INET or AF_INET6; 0: both
 * @except: elements to skip; NULL: those of this container
 * Return: 1 if found, 0 if not found */
int portmap_find_other(struct portmap_batch *batch, const struct portmap_port *port, int family,
		       const struct nft_elems *except, struct nft_elem *ret_elem, struct hw_err *e);

/* Set the error for a port that is already in use. The message names the owner of @elem and says
 * how to free the port.
 * Return: -EADDRINUSE, or another error */
int portmap_conflict(struct nft *nft, const struct nft_elem *elem, struct hw_err *e);
/* For repair: delete a mapping of another container if the last ADD of this container that requested the
 * port finished later than that of the other one, or if the other's network namespace no longer exists.
 * Not if this container's namespace no longer exists, or while an ADD of the other one is unfinished.
 * Return: 1 if deleted, 0 if not */
int portmap_take_over(struct portmap_batch *batch, const struct nft_elem *elem, struct hw_err *e);

/* ---- chains (chain.c) ------------------------------------------------------------------------ */

#define PORTMAP_CHAIN NFT_NAME
/* Get the name of the chain that tests @condition. */
void portmap_condition_chain(const char *condition, char ret_chain[PORTMAP_CHAIN]);
/* Get the name of the chain that sets the mark. */
void portmap_mark_chain(const struct portmap_record *record, char ret_chain[PORTMAP_CHAIN]);
/* Create the chains that the record's elements jump to, if they are missing or empty. */
int portmap_chains_create(struct nft *nft, const struct portmap_record *record, struct hw_err *e);
/* Return: 0; -ENOENT if one of these chains is missing or empty */
int portmap_chains_check(struct nft *nft, const struct portmap_record *record, struct hw_err *e);

extern const struct hw_plugin portmap_plugin;

#endif
