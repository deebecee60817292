/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/pod/check-pair.h - CHECK of the veth pair between a pod and the host
 *
 * What:  compares both ends with the result of the ADD and with the
 *        configuration. Each kind of difference has its own message.
 */
#ifndef PLUGINS_POD_CHECK_PAIR_H
#define PLUGINS_POD_CHECK_PAIR_H

#include <hawser/plugin.h>

/* Directory where tuning saves the former values, unless its configuration names another one */
#define POD_TUNING_DIR "/run/cni/tuning"

struct link;
struct pod_link;

/*
 * Check that both ends exist, are connected to each other, have the MAC address in the previous
 * result and the configured MTU, and that the host end is up.
 * @l:      must not be open; this function opens it and fills l->host and l->pod
 * @bridge: name of the bridge, so that it is not mistaken for the host end; NULL: no bridge
 * @mtu:    from the configuration; 0 or less: the kernel's default for a veth
 */
int pod_check_pair(struct pod_link *l, const struct hw_call *call, const char *bridge, int mtu,
		   struct hw_err *e);
/* Does the link have the MAC address that the result reports? */
int pod_check_mac(const struct hw_iface *iface, const struct link *link, struct hw_err *e);
/*
 * Does the sysctl of the pod's interface, below net/ipv4/conf or net/ipv6/conf, still have the
 * value that ADD wrote? The check always succeeds if tuning changed the interface (tuning's own
 * CHECK compares the value), if the kernel lacks the key, and if /proc/sys is read-only (ADD could
 * not write it).
 */
int pod_check_sysctl(const struct pod_link *l, const struct hw_call *call, int family,
		     const char *key, const char *value, struct hw_err *e);
/* Is forwarding enabled on the host for the address families of the result? */
int pod_check_forwarding(const struct hw_result *result, struct hw_err *e);

#endif
