/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/pod/check-pair.h - CHECK of plugins that create a veth pair between a pod and the host
 *
 * What:  compares both ends with the result of the ADD and with the
 *        configuration. Each kind of difference has its own message.
 */
#ifndef PLUGINS_POD_CHECK_PAIR_H
#define PLUGINS_POD_CHECK_PAIR_H

#include <hawser/plugin.h>

/* Directory where tuning saves the former values, unless its configuration names another one */
#define POD_TUNING_DIR "/run/cni/tuning"

struct ipam_conf;
struct link;
struct pod_link;
struct pod_rules;

struct pod_check {
	const struct ipam_conf *ipam;
	const struct pod_rules *rules;
	const char *bridge; /* so that it is not mistaken for the host end; NULL: no bridge */
	int mtu;	    /* from the configuration; 0 or less: the kernel's default for a veth */
	/* Checks what only this plugin creates. @l is open, and has both ends. */
	int (*own)(const struct pod_link *l, struct hw_call *call, struct hw_err *e);
};

/*
 * CHECK of bridge and ptp: call IPAM, check that both ends of the pair exist, are connected to each
 * other, have the MAC address in the previous result and the configured MTU, and that the host end is
 * up; then call own(), and check the rules.
 */
int pod_check(struct hw_call *call, const struct pod_check *check, struct hw_err *e);
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
