/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/portmap/portmap.h - the parts of the portmap plugin
 *
 * conf.c      the configuration, and what it asks for
 * condition.c conditions: nft's syntax, and iptables' translated
 * rules.c     what a pod has in nftables
 * owner.c     which attachment has a host port
 * chain.c     chains for conditions and mark bits
 * conflict.c  a host port that is taken
 * upstream.c  what upstream's plugin left
 * portmap.c   the verbs
 */
#ifndef PLUGINS_PORTMAP_PORTMAP_H
#define PLUGINS_PORTMAP_PORTMAP_H

#include <hawser/plugin.h>

#include "base/mem.h"
#include "net/nft/nft.h"

#define PORTMAP_BIT 13 /* of the mark, unless the configuration names another */

/* One of runtimeConfig.portMappings, as it is written */
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

/* What the pod is to have, and what the record says that it has */
struct portmap_made {
	struct hw_list entries; /* of struct portmap_entry */
	char *pod4, *pod6;	/* addresses, each with its network; NULL: none */
	bool snat, masq_all;
	int mark_bit;
	char *cond4, *cond6; /* in nft's syntax; NULL: none */
	char *earlier;	     /* JSON of this struct: of an ADD on top of another, which has not
			      * removed yet what is not needed any more; NULL: none */
};

extern const struct hw_field portmap_made_fields[];

void portmap_made_done(struct portmap_made *made);
AUTO_VALUE_DEFINE(portmap_made_done, struct portmap_made);

/* One entry, understood */
struct portmap_port {
	uint8_t proto;
	uint8_t family;	   /* 0: of any address */
	struct hw_ip host; /* none: every address of the host */
	uint16_t host_port, pod_port;
};

int portmap_conf_check(const struct portmap_conf *conf, struct hw_err *e);
/* From configuration and prevResult; *made is empty before. */
int portmap_conf_read(const struct hw_call *call, struct portmap_made *made, struct hw_err *e);
int portmap_port_parse(const struct portmap_entry *entry, struct portmap_port *ret_port,
		       struct hw_err *e);

/* *ret_text: of nft's syntax, free of anything that would end a rule; NULL when there is none */
int portmap_condition(const struct hw_strings *tokens, int family, char **ret_text,
		      struct hw_err *e);
bool portmap_condition_is_iptables(const struct hw_strings *tokens);

/* The addresses of a pod that has ports, one per family. Return: how many */
size_t portmap_pods(const struct portmap_made *made, struct hw_prefix ret_pods[2]);
/* Does the entry lead to this pod's address? Then *ret_port is what it says. */
bool portmap_applies(const struct portmap_entry *entry, const struct hw_prefix *pod,
		     struct portmap_port *ret_port);

/* ---- nftables ------------------------------------------------------------------------------------ */

/* Other attachments of the same container, oldest first */
struct portmap_siblings {
	struct portmap_sibling {
		char owner[NFT_OWNER];
		struct portmap_made made;
		int64_t started;
	} * v;
	size_t n;
};

/* One attachment's elements on their way */
struct portmap_work {
	struct nft *nft;
	const struct hw_call *call;
	const struct portmap_made *made;
	struct nft_elems elems;		  /* with their owner */
	struct portmap_siblings siblings; /* none, until they are in the way */
	bool shared;			  /* a sibling may have a number of one of the ports */
};

typedef int portmap_each(struct portmap_work *work, const struct portmap_port *port,
			 const struct hw_prefix *pod, struct hw_err *e);
int portmap_for_ports(struct portmap_work *work, portmap_each *each, struct hw_err *e);

struct nft_elem portmap_port_elem(const char *map, const struct portmap_port *port,
				  const struct hw_prefix *pod, enum nft_mode mode);
struct nft_elem portmap_near_elem(const struct hw_prefix *pod);
void portmap_put_way(struct portmap_work *work, const struct portmap_port *port,
		     const struct hw_prefix *pod, enum nft_mode mode);

/* Elements of call->made; those of call->earlier that are not needed any more go. */
int portmap_rules_add(const struct hw_call *call, struct hw_err *e);
int portmap_rules_del(const struct hw_call *call, const struct portmap_made *made,
		      struct hw_err *e);
int portmap_rules_check(const struct hw_call *call, const struct portmap_made *made,
			struct hw_err *e);
int portmap_rules_sweep(const struct hw_call *call, struct hw_err *e);

int portmap_hold(struct portmap_work *work, const struct portmap_port *port,
		 const struct hw_prefix *pod, struct hw_err *e);
int portmap_find_numbers(struct portmap_work *work, const struct portmap_port *port,
			 const struct hw_prefix *pod, struct hw_err *e);
int portmap_is_held(const struct portmap_work *work, const struct portmap_port *port,
		    const struct hw_prefix *pod, struct hw_err *e);
/* 1: another container has it, on some address */
int portmap_is_others(const struct portmap_work *work, const struct portmap_port *port,
		      const struct hw_prefix *pod, struct hw_err *e);
int portmap_hold_check(struct portmap_work *work, const struct portmap_port *port,
		       const struct hw_prefix *pod, struct hw_err *e);

int portmap_siblings_read(struct portmap_work *work, struct hw_err *e);
void portmap_siblings_done(struct portmap_siblings *siblings);
bool portmap_is_sibling(const struct portmap_siblings *siblings, const char *owner);
int portmap_find_way(struct nft *nft, const struct portmap_port *port, const struct hw_prefix *pod,
		     struct nft_elem *ret_there, struct hw_err *e);
int portmap_is_siblings(const struct portmap_work *work, const struct portmap_port *port,
			const struct hw_prefix *pod, struct hw_err *e);
int portmap_hand_over(struct portmap_work *work, const struct nft_elems *keep, struct hw_err *e);

/* Held while the ports of a container are changed; close() releases it. */
int portmap_lock(const struct hw_call *call, int *ret_fd, struct hw_err *e);
int portmap_lock_chains(int *ret_fd, struct hw_err *e);

void portmap_forget_udp(struct portmap_work *work);

#define PORTMAP_CHAIN NFT_NAME
void portmap_chain_of_condition(const char *condition, char ret_chain[PORTMAP_CHAIN]);
void portmap_chain_of_mark(const struct portmap_made *made, char ret_chain[PORTMAP_CHAIN]);
/* Those that are missing, or empty */
int portmap_chains_make(struct nft *nft, const struct portmap_made *made, struct hw_err *e);
int portmap_chains_check(struct nft *nft, const struct portmap_made *made, struct hw_err *e);

/* -EADDRINUSE, saying who has it */
int portmap_clash(struct nft *nft, const struct nft_elem *there, struct hw_err *e);

int portmap_go_end(const struct hw_call *call, struct hw_err *e);

extern const struct hw_plugin portmap_plugin;

#endif
