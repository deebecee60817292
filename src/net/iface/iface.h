/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/iface/iface.h - configure and check a pod's interface from a CNI result
 *
 * What:  the last step of every plugin that creates an interface: set the
 *        addresses and routes of the result and set the interface up; and the
 *        CHECK of these.
 */
#ifndef NET_IFACE_IFACE_H
#define NET_IFACE_IFACE_H

#include <stdbool.h>

#include <hawser/result.h>

#include "base/err.h"

struct link;
struct rtnl;

/*
 * Duplicate address detection of IPv6 addresses, which takes a second or two per link. Without it
 * an address is usable at once (IFA_F_NODAD). That is safe if no other host can have the address:
 * if IPAM allocates each address of the link only once, or if the link has only two ends.
 *
 *			IFA_F_NODAD	accept_dad	wait for the end	used for
 *	IFACE_DAD_SKIP	yes		unchanged	no			ptp
 *	IFACE_DAD_OFF	yes		0		no			bridge
 *	IFACE_DAD_ON	no		1, enhanced	with a v6 gateway	bridge, enabledad
 *	IFACE_DAD_LEAVE	no		unchanged	with a v6 gateway	foreign networks
 */
enum iface_dad { IFACE_DAD_LEAVE, IFACE_DAD_SKIP, IFACE_DAD_OFF, IFACE_DAD_ON };

struct iface_options {
	enum iface_dad dad;
	bool notify; /* arp_notify: announce the address when the link comes up */
};

/*
 * Set addresses, up and routes.
 * nl, netns_fd: the pod's namespace
 * link:     the pod's interface in that namespace; up or down
 * result:   its ips whose interface is link (by name), and all its routes; a route without a
 *           gateway gets that of the first address of its family that has one
 * options:  NULL: defaults
 * Existing addresses and routes are an error, as another program has set them.
 */
int iface_configure(struct rtnl *nl, int netns_fd, const struct link *link,
		    const struct hw_result *result, const struct iface_options *options,
		    struct hw_err *e);

/*
 * Compare an interface with the result that was given to iface_configure().
 * link: as the kernel has it now
 * Checks that the interface is up, has each address with its prefix length and a route to the
 * network of each, and has each route with gateway, table, metric, scope, MTU and advertised MSS.
 * Additional addresses and routes are ignored. Each difference has its own message.
 */
int iface_check(struct rtnl *nl, const struct link *link, const struct hw_result *result,
		struct hw_err *e);

#endif
