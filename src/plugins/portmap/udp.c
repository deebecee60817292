/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/portmap/udp.c - forget where packets to a UDP port went before
 *
 * What:  UDP has no connections, so what the kernel remembers of a port as it was
 *        would hold for as long as packets come.
 * Rules: what another has is his. Failing is no reason to fail: such a flow ends
 *        by itself when nothing comes for a while.
 */
#include <netinet/in.h>

#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "net/conntrack.h"
#include "plugins/portmap/portmap.h"

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
