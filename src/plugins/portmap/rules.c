/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/portmap/rules.c - what a pod with host ports has in nftables
 *
 * What:  for each port an element that says where it leads, one that says on which
 *        conditions, and one that says who is to be masqueraded (ruleset.nft).
 * How:   the kernel itself refuses a second owner of the same key; every address
 *        and some address are hold.c's matter.
 * Rules: a port that another attachment of the same container has is left to it
 *        (share.c).
 *        An ADD on top of an earlier one ends with all that is new, or with all
 *        that was there; killed in between, the record knows both.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/err.h"
#include "base/ip.h"
#include "base/log.h"
#include "base/str.h"
#include "net/conntrack.h"
#include "plugins/portmap/portmap.h"

#define TRIES 1000 /* others may take the number that we have just found free */

static void work_init(struct portmap_work *work, const struct hw_call *call,
		      const struct portmap_made *made, struct nft *nft)
{
	*work = (struct portmap_work){ .nft = nft, .call = call, .made = made };
	nft_owner(call->network, call->container_id, call->ifname, work->elems.owner);
}

static void work_done(struct portmap_work *work)
{
	nft_elems_done(&work->elems);
	portmap_siblings_done(&work->siblings);
}
AUTO_VALUE_DEFINE(work_done, struct portmap_work);

/**
 * portmap_for_ports() - call @each for every port of every address of the pod
 *
 * Return: 0, or the first error, which ends it
 */
int portmap_for_ports(struct portmap_work *work, portmap_each *each, struct hw_err *e)
{
	const struct portmap_entry *entries = work->made->entries.v;
	struct hw_prefix pods[2];
	struct portmap_port port;
	size_t n = portmap_pods(work->made, pods);
	int r = 0;

	for (size_t p = 0; p < n; p++)
		for (size_t i = 0; r >= 0 && i < work->made->entries.n; i++)
			if (portmap_applies(&entries[i], &pods[p], &port))
				r = each(work, &port, &pods[p], e);
	return r < 0 ? r : 0;
}

/* ---- the pod's elements ------------------------------------------------------------------------ */

/**
 * portmap_port_elem() - a port in map "x4" or "x6", or in "anyx4" or "anyx6" when it is on every
 * address
 */
struct nft_elem portmap_port_elem(const char *map, const struct portmap_port *port,
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

static void put_condition(struct portmap_work *work, const struct portmap_port *port,
			  const struct hw_prefix *pod)
{
	const struct portmap_made *made = work->made;
	const char *condition = pod->ip.family == AF_INET ? made->cond4 : made->cond6;
	struct nft_elem on = portmap_port_elem("cond", port, pod, NFT_OWNED);
	char chain[PORTMAP_CHAIN];

	if (!condition)
		return;
	portmap_chain_of_condition(condition, chain);
	nft_data_goto(&on, chain);
	nft_elems_add(&work->elems, on);
}

/**
 * portmap_put_way() - the elements by which a host port leads to the pod
 * @mode: of the one that says where
 */
void portmap_put_way(struct portmap_work *work, const struct portmap_port *port,
		     const struct hw_prefix *pod, enum nft_mode mode)
{
	struct nft_elem to = portmap_port_elem("port", port, pod, mode);
	struct nft_elem mark = portmap_port_elem("mark", port, pod, NFT_OWNED);
	char chain[PORTMAP_CHAIN];

	nft_data_ip(&to, &pod->ip);
	nft_data_port(&to, port->pod_port);
	nft_elems_add(&work->elems, to);
	put_condition(work, port, pod);
	if (!work->made->snat)
		return;
	portmap_chain_of_mark(work->made, chain);
	nft_data_jump(&mark, chain);
	nft_elems_add(&work->elems, mark);
}

static void put_snatall(struct nft_elems *elems, const struct portmap_port *port,
			const struct hw_prefix *pod)
{
	struct nft_elem all = nft_elem_for("snatall", &pod->ip, NFT_OWNED);

	nft_key_proto(&all, port->proto);
	nft_key_ip(&all, &pod->ip);
	nft_key_port(&all, port->pod_port);
	nft_elems_add_once(elems, all);
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

static int put_port(struct portmap_work *work, const struct portmap_port *port,
		    const struct hw_prefix *pod, struct hw_err *e)
{
	int r = portmap_is_siblings(work, port, pod, e);
	if (r < 0)
		return r;
	if (r == 0)
		portmap_put_way(work, port, pod, NFT_EXCLUSIVE);
	if (work->made->masq_all)
		put_snatall(&work->elems, port, pod);
	if (work->made->snat)
		put_network(&work->elems, pod);
	return 0;
}

static int fill(struct portmap_work *work, struct hw_err *e)
{
	work->elems.n = 0;
	return portmap_for_ports(work, put_port, e);
}

/* ---- adding -------------------------------------------------------------------------------------- */

/* Only a number, which another has taken since we looked */
static bool is_race(const struct nft_elem *wanted)
{
	return (wanted->mode == NFT_EXCLUSIVE && str_starts(wanted->set, "holder")) ||
	       (wanted->mode == NFT_ABSENT && str_starts(wanted->set, "upto"));
}

/* Return: 1 when the same can be tried again, 0 when another container has the port */
static int look_at_clash(struct portmap_work *work, const struct nft_clash *clash, struct hw_err *e)
{
	if (is_race(&work->elems.v[clash->index]) ||
	    portmap_is_sibling(&work->siblings, clash->there.owner))
		return 1;
	int r = portmap_siblings_read(work, e);
	return r < 0 ? r : portmap_is_sibling(&work->siblings, clash->there.owner);
}

/* Return: 0; 1: once more; or a negative errno */
static int add_once(struct portmap_work *work, struct hw_err *e)
{
	struct nft_clash clash = { 0 };

	int r = fill(work, e);
	if (r >= 0)
		r = portmap_for_ports(work, portmap_hold, e);
	if (r < 0 || !work->elems.n)
		return r;
	r = nft_add(work->nft, work->elems.v, work->elems.n, work->elems.owner, &clash, e);
	if (r != -EEXIST)
		return r;
	r = look_at_clash(work, &clash, e);
	return r == 0 ? portmap_clash(work->nft, &clash.there, e) : r;
}

static int add(struct portmap_work *work, struct hw_err *e)
{
	/* Who waits for a port has chains, too, though nothing leads there yet. */
	int r = work->made->entries.n ? portmap_chains_make(work->nft, work->made, e) : 0;

	if (r < 0)
		return r;
	r = 1;
	for (int tries = 0; r > 0 && tries < TRIES; tries++)
		r = add_once(work, e);
	return r > 0 ? err_text(e, -EAGAIN, "others change the same host ports all the time") : r;
}

/* ---- removing ------------------------------------------------------------------------------------ */

/* What this pod has, but for @keep (NULL: nothing is kept) */
static int drop(struct portmap_work *work, const struct nft_elems *keep, struct hw_err *e)
{
	struct nft_elems *elems = &work->elems;
	size_t n = 0;

	int r = fill(work, e);
	if (r >= 0)
		r = portmap_for_ports(work, portmap_find_numbers, e);
	if (r >= 0 && work->shared)
		r = portmap_hand_over(work, keep, e);
	for (size_t i = 0; i < elems->n; i++)
		if (!keep || !nft_elems_has(keep, &elems->v[i]))
			elems->v[n++] = elems->v[i];
	return r < 0 || !n ? r : nft_del(work->nft, elems->v, n, elems->owner, e);
}

/* All of @made but what @keep needs, too */
static int drop_but(const struct portmap_work *keep, const struct portmap_made *made,
		    struct hw_err *e)
{
	AUTO(work_done) struct portmap_work work;

	work_init(&work, keep->call, made, keep->nft);
	return drop(&work, &keep->elems, e);
}

/* After a failure: what was there before, and nothing else. That may fail, too. */
static void restore(const struct portmap_work *failed, const struct portmap_made *earlier)
{
	AUTO(work_done) struct portmap_work before;
	struct hw_err again;

	work_init(&before, failed->call, earlier, failed->nft);
	if (add(&before, &again) >= 0)
		(void)drop_but(&before, failed->made, &again);
}

/*
 * plugins/portmap/udp.c - forget where packets to a UDP port went before
 *
 * What:  UDP has no connections, so what the kernel remembers of a port as it was
 *        would hold for as long as packets come.
 * Rules: what another has is his. Failing is no reason to fail: such a flow ends
 *        by itself when nothing comes for a while.
 */

/* Return: 1 when it leads to somebody else, also if only at some of its addresses */
static int is_another(const struct portmap_work *work, const struct portmap_port *port,
		      const struct hw_prefix *pod, struct hw_err *e)
{
	struct nft_elem there;

	int r = portmap_find_way(work->nft, port, pod, &there, e);
	if (r > 0)
		return !str_equal(there.owner, work->elems.owner);
	return r < 0 || port->host.family ? r : portmap_is_others(work, port, pod, e);
}

static int forget(struct portmap_work *work, const struct portmap_port *port,
		  const struct hw_prefix *pod, struct hw_err *e)
{
	struct conntrack_tuple tuple = { .family = pod->ip.family,
					 .proto = IPPROTO_UDP,
					 .dst = port->host,
					 .dport = port->host_port };

	if (port->proto != IPPROTO_UDP)
		return 0;
	int r = is_another(work, port, pod, e);
	if (r == 0)
		r = conntrack_flush(nft_socket(work->nft), &tuple, e);
	if (r < 0)
		log_warn("portmap: udp port %u: %s", port->host_port, e->msg);
	return 0;
}

/**
 * portmap_forget_udp() - of the UDP ports that are, or were, the pod's
 */
void portmap_forget_udp(struct portmap_work *work)
{
	struct hw_err e;

	(void)portmap_for_ports(work, forget, &e);
}

/* ---- the verbs' parts ------------------------------------------------------------------------------ */

/**
 * portmap_rules_add() - the elements of what the record says
 */
int portmap_rules_add(const struct hw_call *call, struct hw_err *e)
{
	const struct portmap_made *made = call->made, *earlier = call->earlier;
	AUTO(nft_close) struct nft *nft = NULL;
	AUTO(work_done) struct portmap_work work;

	work_init(&work, call, made, NULL);
	if (!made->entries.n && !earlier)
		return 0;
	int r = nft_open(&nft, e);
	if (r < 0)
		return r;
	work.nft = nft;
	r = add(&work, e);
	if (r >= 0 && earlier)
		r = drop_but(&work, earlier, e);
	if (r < 0 && earlier)
		restore(&work, earlier);
	if (r >= 0)
		portmap_forget_udp(&work);
	return r;
}

static int del(const struct hw_call *call, const struct portmap_made *made, struct nft *nft,
	       struct hw_err *e)
{
	AUTO(work_done) struct portmap_work work;

	work_init(&work, call, made, nft);
	int r = drop(&work, NULL, e);
	if (r >= 0)
		portmap_forget_udp(&work);
	return r;
}

/**
 * portmap_rules_del() - those that are still ours go
 */
int portmap_rules_del(const struct hw_call *call, const struct portmap_made *made, struct hw_err *e)
{
	AUTO(portmap_made_done) struct portmap_made earlier = { 0 };
	AUTO(nft_close) struct nft *nft = NULL;
	struct hw_err torn;

	if (made->earlier)
		(void)hw_field_decode(portmap_made_fields, made->earlier, strlen(made->earlier),
				      &earlier, &torn);
	if (!made->entries.n && !earlier.entries.n)
		return 0;
	int r = nft_open(&nft, e);
	if (r >= 0)
		r = del(call, made, nft, e);
	return r < 0 ? r : del(call, &earlier, nft, e);
}

/**
 * portmap_rules_sweep() - what only the pod's address would lead to, without it
 */
int portmap_rules_sweep(const struct hw_call *call, struct hw_err *e)
{
	static const char *const sets[] = { "snatall4", "snatall6", "near4",
					    "near6",	"self4",    "self6" };
	AUTO(nft_close) struct nft *nft = NULL;
	char owner[NFT_OWNER];

	nft_owner(call->network, call->container_id, call->ifname, owner);
	int r = nft_open(&nft, e);
	for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(sets); i++)
		r = nft_sweep(nft, NFT_INET, sets[i], owner, e);
	return r;
}

static int check(struct portmap_work *work, struct hw_err *e)
{
	int r = fill(work, e);
	if (r >= 0)
		r = nft_check(work->nft, work->elems.v, work->elems.n, work->elems.owner, e);
	return r < 0 ? r : portmap_for_ports(work, portmap_hold_check, e);
}

/**
 * portmap_rules_check() - is all that the pod needs there?
 */
int portmap_rules_check(const struct hw_call *call, const struct portmap_made *made,
			struct hw_err *e)
{
	AUTO(nft_close) struct nft *nft = NULL;
	AUTO(work_done) struct portmap_work work;
	struct hw_err unreadable;

	work_init(&work, call, made, NULL);
	if (!made->entries.n)
		return 0;
	int r = nft_open(&nft, e);
	if (r < 0)
		return r;
	work.nft = nft;
	r = check(&work, e);
	if (r < 0 && portmap_siblings_read(&work, &unreadable) > 0)
		r = check(&work, e);
	return r < 0 ? r : portmap_chains_check(nft, made, e);
}
