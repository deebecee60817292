/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/pod/check.h - CHECK's part of the pair of links between a pod and the host
 *
 * What:  compares both ends with what the result of the ADD and the
 *        configuration say; each difference has its own message.
 */
#ifndef PLUGINS_POD_CHECK_H
#define PLUGINS_POD_CHECK_H

#include <hawser/plugin.h>

/* Where tuning saves what it changes, unless its configuration names another folder */
#define POD_TUNING_DIR "/run/cni/tuning"

struct link;
struct pod_link;

/* Are both ends there and as they were made? Opens and fills @l. bridge: its name, or NULL. */
int pod_check(struct pod_link *l, const struct hw_call *call, const char *bridge, int mtu,
	      struct hw_err *e);
int pod_check_mac(const struct hw_iface *iface, const struct link *link, struct hw_err *e);
/* Has the pod's interface the value that ADD wrote to net/ipv4/conf or net/ipv6/conf? */
int pod_check_sysctl(const struct pod_link *l, const struct hw_call *call, int family,
		     const char *key, const char *value, struct hw_err *e);
/* Does the host forward packets of the result's address families? */
int pod_check_forwarding(const struct hw_result *result, struct hw_err *e);

#endif
