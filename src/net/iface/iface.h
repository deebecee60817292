/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/iface/iface.h - a pod's interface, from a CNI result
 *
 * What:  what every plugin that makes an interface does at its end: give it the
 *        addresses and routes of the result and set it up; and CHECK's part of
 *        looking whether all that is still there.
 * How:   the sysctls first, then addresses, up and routes in one batch.
 */
#ifndef NET_IFACE_IFACE_H
#define NET_IFACE_IFACE_H

#include <stdbool.h>

#include <hawser/result.h>

#include "base/err.h"

struct link;
struct rtnl;

/*
 * What happens to IPv6 addresses before they may be used (duplicate address detection, a second or
 * two per link). Without it an address can be used at once (IFA_F_NODAD); that is safe where nobody
 * else can have the address: where IPAM hands out each address of the link once, or where the link
 * has two ends only.
 *
 *			IFA_F_NODAD	accept_dad	wait until it is over
 *	IFACE_DAD_SKIP	yes		left alone	no			ptp
 *	IFACE_DAD_OFF	yes		0		no			bridge
 *	IFACE_DAD_ON	no		1, enhanced	with a v6 gateway	bridge, enabledad
 *	IFACE_DAD_LEAVE	no		left alone	with a v6 gateway	on foreign networks
 */
enum iface_dad { IFACE_DAD_LEAVE, IFACE_DAD_SKIP, IFACE_DAD_OFF, IFACE_DAD_ON };

struct iface_options {
	enum iface_dad dad;
	bool notify; /* arp_notify: announce the address when the link comes up */
};

/* nl and netns_fd: the pod's namespace; link: the interface in it; options NULL: none. What is there
 * already is an error. A route without a gateway gets that of the first address of its family. */
int iface_configure(struct rtnl *nl, int netns_fd, const struct link *link,
		    const struct hw_result *result, const struct iface_options *options,
		    struct hw_err *e);

/* link: just got; result: as it was given to iface_configure(). Each drift has its own message; more
 * addresses and routes than those of the result do not matter. */
int iface_check(struct rtnl *nl, const struct link *link, const struct hw_result *result,
		struct hw_err *e);

#endif
