/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/portmap-rules.c - what a pod with host ports has in nftables
 *
 * What:  for each port an element that says where it leads, one that says on which
 *        conditions, and one that says who is to be masqueraded (ruleset.nft).
 * How:   the kernel itself refuses a second owner of the same key. A port on every
 *        address and one on some address have different keys: whoever adds the
 *        one says, in the same transaction, that the other must be absent. Who
 *        has a port on some address is numbered, in "holder4".
 * Rules: the numbers are found again on DEL; the record does not have them.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/err.h"
#include "base/ip.h"
#include "base/str.h"
#include "plugins/portmap.h"

#define TRIES 1000 /* others may take the number that we have just found free */

/* ---- the pod's elements ------------------------------------------------------------------------ */

/* In map "x4" or "x6", or "anyx4" or "anyx6" for a port on every address */
static struct nft_elem port_elem(const char *map, const struct portmap_port *port,
				 const struct hw_prefix *pod, enum nft_mode mode)
{
	char name[NFT_NAME];
	struct nft_elem elem;

	snprintf(name, sizeof(name), "%s%s", port->host.family ? "" : "any", map);
	elem = nft_elem_for(name, &pod->ip, mode);
	nft_key_proto(&elem, port->proto);
	if (port->host.family)
		nft_key_ip(&elem, &port->host);
	nft_key_port(&elem, port->host_port);
	return elem;
}

static void put_mark(struct nft_elems *elems, const struct portmap_made *made,
		     const struct portmap_port *port, const struct hw_prefix *pod)
{
	struct nft_elem mark = port_elem("mark", port, pod, NFT_OWNED);
	struct nft_elem all = nft_elem_for("snatall", &pod->ip, NFT_OWNED);
	char chain[PORTMAP_CHAIN];

	portmap_chain_of_mark(made, chain);
	nft_data_jump(&mark, chain);
	nft_elems_add(elems, mark);
	if (!made->masq_all)
		return;
	nft_key_proto(&all, port->proto);
	nft_key_ip(&all, &pod->ip);
	nft_key_port(&all, port->pod_port);
	nft_elems_add_once(elems, all);
}

static void put_port(struct nft_elems *elems, const struct portmap_made *made,
		     const struct portmap_port *port, const struct hw_prefix *pod)
{
	const char *condition = pod->ip.family == AF_INET ? made->cond4 : made->cond6;
	struct nft_elem to = port_elem("port", port, pod, NFT_EXCLUSIVE);
	struct nft_elem on = port_elem("cond", port, pod, NFT_OWNED);
	char chain[PORTMAP_CHAIN];

	nft_data_ip(&to, &pod->ip);
	nft_data_port(&to, port->pod_port);
	nft_elems_add(elems, to);
	if (condition) {
		portmap_chain_of_condition(condition, chain);
		nft_data_goto(&on, chain);
		nft_elems_add(elems, on);
	}
	if (made->snat)
		put_mark(elems, made, port, pod);
}

static void put_alone(struct nft_elems *elems, const struct hw_prefix *pod)
{
	struct nft_elem self = nft_elem_for("self", &pod->ip, NFT_OWNED);

	nft_key_ip(&self, &pod->ip);
	nft_key_ip(&self, &pod->ip);
	nft_elems_add_once(elems, self);
}

/**
 * portmap_near_elem() - leads from a pod to the chain of its network
 */
struct nft_elem portmap_near_elem(const struct hw_prefix *pod)
{
	struct nft_elem near = nft_elem_for("near", &pod->ip, NFT_OWNED);

	nft_key_ip(&near, &pod->ip);
	nft_data_network(&near, NFT_NEAR, pod);
	return near;
}

/* The pod's network, so that its neighbours are known; the pod itself where it has none. */
static void put_network(struct nft_elems *elems, const struct hw_prefix *pod)
{
	struct nft_elem own = nft_elem_for("own", &pod->ip, NFT_SHARED);

	if (pod->len == ip_bits(&pod->ip)) {
		put_alone(elems, pod);
		return;
	}
	nft_key_network(&own, pod);
	nft_key_network(&own, pod);
	nft_elems_add_once(elems, own);
	nft_elems_add_once(elems, portmap_near_elem(pod));
}

/* Call @each for every port of every address of the pod. */
typedef int port_each(struct nft *nft, struct nft_elems *elems, const struct portmap_port *port,
		      const struct hw_prefix *pod, struct hw_err *e);

static int for_ports(struct nft *nft, struct nft_elems *elems, const struct portmap_made *made,
		     port_each *each, struct hw_err *e)
{
	const struct portmap_entry *entries = made->entries.v;
	struct hw_prefix pods[2];
	struct portmap_port port;
	size_t n = portmap_pods(made, pods);
	int r = 0;

	for (size_t p = 0; p < n; p++)
		for (size_t i = 0; r >= 0 && i < made->entries.n; i++)
			if (portmap_applies(&entries[i], &pods[p], &port))
				r = each(nft, elems, &port, &pods[p], e);
	return r;
}

static void fill(struct nft_elems *elems, const struct hw_call *call,
		 const struct portmap_made *made)
{
	const struct portmap_entry *entries = made->entries.v;
	struct hw_prefix pods[2];
	struct portmap_port port;
	size_t n = portmap_pods(made, pods);

	elems->n = 0;
	nft_owner(call->network, call->container_id, call->ifname, elems->owner);
	for (size_t p = 0; p < n; p++)
		for (size_t i = 0; i < made->entries.n; i++) {
			if (!portmap_applies(&entries[i], &pods[p], &port))
				continue;
			put_port(elems, made, &port, &pods[p]);
			if (made->snat)
				put_network(elems, &pods[p]);
		}
}

/* ---- every address, or some --------------------------------------------------------------------- */

static struct nft_elem number_elem(const char *set, const struct portmap_port *port,
				   const struct hw_prefix *pod, enum nft_mode mode, uint32_t number)
{
	struct nft_elem elem = nft_elem_for(set, &pod->ip, mode);

	nft_key_proto(&elem, port->proto);
	nft_key_port(&elem, port->host_port);
	nft_key_number(&elem, number);
	return elem;
}

/* For a port on every address: nobody has it on some, and nobody begins to. */
static int guard_any(struct nft *nft, struct nft_elems *elems, const struct portmap_port *port,
		     const struct hw_prefix *pod, struct hw_err *e)
{
	for (uint32_t number = 0;; number++) {
		struct nft_elem upto = number_elem("upto", port, pod, NFT_ABSENT, number), there;

		int r = nft_get(nft, &upto, &there, e);
		if (r < 0)
			return r;
		if (r == 0) {
			nft_elems_add(elems, upto);
			return 0;
		}
		nft_elems_add(elems, number_elem("holder", port, pod, NFT_ABSENT, number));
	}
}

/* For a port on some address: nobody has it on every one, and we are numbered. */
static int hold_some(struct nft *nft, struct nft_elems *elems, const struct portmap_port *port,
		     const struct hw_prefix *pod, struct hw_err *e)
{
	struct portmap_port any = { .proto = port->proto, .host_port = port->host_port };

	nft_elems_add(elems, port_elem("port", &any, pod, NFT_ABSENT));
	for (uint32_t number = 0;; number++) {
		struct nft_elem holder = number_elem("holder", port, pod, NFT_EXCLUSIVE, number);
		struct nft_elem there;

		int r = nft_get(nft, &holder, &there, e);
		if (r < 0)
			return r;
		if (r > 0 && !str_equal(there.owner, elems->owner))
			continue;
		nft_elems_add_once(elems, number_elem("upto", port, pod, NFT_SHARED, number));
		nft_elems_add_once(elems, holder);
		return 0;
	}
}

static int guard(struct nft *nft, struct nft_elems *elems, const struct portmap_port *port,
		 const struct hw_prefix *pod, struct hw_err *e)
{
	return port->host.family ? hold_some(nft, elems, port, pod, e)
				 : guard_any(nft, elems, port, pod, e);
}

/* All numbers of a port on some address: what is not ours is not deleted. */
static int find_numbers(struct nft *nft, struct nft_elems *elems, const struct portmap_port *port,
			const struct hw_prefix *pod, struct hw_err *e)
{
	int r = port->host.family ? 1 : 0;

	for (uint32_t number = 0; r > 0; number++) {
		struct nft_elem upto = number_elem("upto", port, pod, NFT_ABSENT, number), there;

		r = nft_get(nft, &upto, &there, e);
		if (r > 0)
			nft_elems_add_once(elems,
					   number_elem("holder", port, pod, NFT_OWNED, number));
	}
	return r;
}

/* ---- the verbs' parts ------------------------------------------------------------------------------ */

/* Only a number, which another has taken since we looked */
static bool is_race(const struct nft_elem *wanted)
{
	return (wanted->mode == NFT_EXCLUSIVE && str_starts(wanted->set, "holder")) ||
	       (wanted->mode == NFT_ABSENT && str_starts(wanted->set, "upto"));
}

static int add(struct nft *nft, struct nft_elems *elems, const struct hw_call *call,
	       struct hw_err *e)
{
	const struct portmap_made *made = call->made;
	struct nft_clash clash = { 0 };
	bool chains = false;
	int r = -EEXIST;

	for (int tries = 0; tries < TRIES; tries++) {
		fill(elems, call, made);
		r = for_ports(nft, elems, made, guard, e);
		if (r >= 0)
			r = nft_add(nft, elems->v, elems->n, elems->owner, &clash, e);
		if (r == -ENOENT && !chains) {
			chains = true;
			r = portmap_chains_make(nft, made, false, e);
			if (r < 0)
				return r;
			continue;
		}
		if (r != -EEXIST || !is_race(&elems->v[clash.index]))
			break;
	}
	return r == -EEXIST ? portmap_clash(&clash.there, e) : r;
}

/* What this pod had before, and has no more */
static int drop_earlier(struct nft *nft, const struct nft_elems *now, const struct hw_call *call,
			struct hw_err *e)
{
	AUTO(nft_elems_done) struct nft_elems before = { 0 };
	size_t n = 0;

	fill(&before, call, call->earlier);
	int r = for_ports(nft, &before, call->earlier, find_numbers, e);
	for (size_t i = 0; i < before.n; i++)
		if (!nft_elems_has(now, &before.v[i]))
			before.v[n++] = before.v[i];
	return r < 0 || !n ? r : nft_del(nft, before.v, n, before.owner, e);
}

/**
 * portmap_rules_add() - the elements of what the record says
 */
int portmap_rules_add(const struct hw_call *call, struct hw_err *e)
{
	AUTO(nft_elems_done) struct nft_elems elems = { 0 };
	AUTO(nft_close) struct nft *nft = NULL;

	fill(&elems, call, call->made);
	if (!elems.n && !call->earlier)
		return 0;
	int r = nft_open(&nft, e);
	if (r >= 0 && elems.n)
		r = add(nft, &elems, call, e);
	return r < 0 || !call->earlier ? r : drop_earlier(nft, &elems, call, e);
}

/**
 * portmap_rules_del() - those that are still ours go
 */
int portmap_rules_del(const struct hw_call *call, const struct portmap_made *made, struct hw_err *e)
{
	AUTO(nft_elems_done) struct nft_elems elems = { 0 };
	AUTO(nft_close) struct nft *nft = NULL;

	fill(&elems, call, made);
	if (!elems.n)
		return 0;
	int r = nft_open(&nft, e);
	if (r >= 0)
		r = for_ports(nft, &elems, made, find_numbers, e);
	return r < 0 ? r : nft_del(nft, elems.v, elems.n, elems.owner, e);
}

/**
 * portmap_rules_check() - is all that the pod needs there?
 */
int portmap_rules_check(const struct hw_call *call, const struct portmap_made *made,
			struct hw_err *e)
{
	AUTO(nft_elems_done) struct nft_elems elems = { 0 };
	AUTO(nft_close) struct nft *nft = NULL;

	fill(&elems, call, made);
	if (!elems.n)
		return 0;
	int r = nft_open(&nft, e);
	if (r >= 0)
		r = nft_check(nft, elems.v, elems.n, elems.owner, e);
	return r < 0 ? r : portmap_chains_check(nft, made, e);
}
