/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/iface/iface.h - configure and check a pod's interface from a CNI result
 *
 * What:  iface_configure() is the last step of every plugin that creates an
 *        interface: it adds the addresses and routes of the result and brings the
 *        interface up. iface_check() checks them for CHECK.
 */
#ifndef NET_IFACE_IFACE_H
#define NET_IFACE_IFACE_H

#include <stdbool.h>

#include <hawser/result.h>

#include "base/err.h"

struct link;
struct rtnl;

/*
 * Duplicate address detection (DAD) for IPv6 addresses takes a second or two per link. Without it
 * an address is usable at once (IFA_F_NODAD). That is safe if no other host can have the address:
 * if IPAM allocates each address of the link only once, or if the link has only two ends.
 *
 *			IFA_F_NODAD	accept_dad	wait until DAD ends	used by
 *	IFACE_DAD_SKIP	yes		unchanged	no			ptp
 *	IFACE_DAD_OFF	yes		0		no			bridge
 *	IFACE_DAD_ON	no		1		if IPv6 has a gateway	bridge, enabledad
 *	IFACE_DAD_LEAVE	no		unchanged	if IPv6 has a gateway	(default)
 *
 * accept_dad is the value written to that sysctl. IFACE_DAD_ON also sets the sysctl enhanced_dad.
 */
enum iface_dad { IFACE_DAD_LEAVE, IFACE_DAD_SKIP, IFACE_DAD_OFF, IFACE_DAD_ON };

struct iface_options {
	enum iface_dad dad;
	/* Announce the addresses, without waiting for it, and set the sysctl arp_notify: the kernel
	 * announces those of IPv4 when the link changes later. */
	bool notify;
};

/*
 * Add the addresses, bring the interface up and add the routes.
 * nl, netns_fd: a socket in the pod's namespace, and that namespace
 * link:     the pod's interface in that namespace; it may be up or down
 * result:   all its routes are added, and the addresses that belong to link (by name). Addresses
 *           without an interface are ignored; an address of another interface is an error. A route
 *           without a gateway gets the first gateway of its family among the addresses
 * options:  NULL: defaults
 * An address or a route that already exists is an error, because another program has added it.
 */
int iface_configure(struct rtnl *nl, int netns_fd, const struct link *link,
		    const struct hw_result *result, const struct iface_options *options,
		    struct hw_err *e);

/*
 * Compare an interface with the result that was given to iface_configure().
 * link: the current state of the interface
 * Checks that the interface is up, that it has each address with its prefix length and a route to
 * the network of that address, and that it has each route with its gateway, table, metric, scope,
 * MTU and advertised MSS. Additional addresses and routes are ignored. Each kind of difference has
 * its own error text.
 */
int iface_check(struct rtnl *nl, const struct link *link, const struct hw_result *result,
		struct hw_err *e);

#endif
