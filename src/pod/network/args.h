/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/network/args.h - what plugins are told about a pod: CNI_ARGS, capabilities, further networks
 */
#ifndef POD_NETWORK_ARGS_H
#define POD_NETWORK_ARGS_H

#include <hawser/field.h>

#include "base/err.h"
#include "base/mem.h"
#include "pod/spec/spec.h"

#define NETWORK_IFNAME "eth0" /* interface of the first network */

/* Annotations of a pod. */
#define NETWORK_IPS	 "io.hawser.ips" /* addresses in the first network: "10.1.0.7,fd00::7" */
#define NETWORK_MAC	 "io.hawser.mac" /* MAC address of eth0 */
#define NETWORK_NETWORKS "io.hawser.networks" /* further networks: "NAME[@INTERFACE],..." */

#define NETWORK_ARGS 5

/* Keys and values of CNI_ARGS. They point into the spec and the ID. Return: 0; -EINVAL if a value
 * cannot be passed on */
int network_args(const struct pod_spec *spec, const char *id, const char *ret_args[NETWORK_ARGS][2],
		 struct hw_err *e);

/* What a pod's capabilities depend on besides its spec. */
struct network_host {
	const char *cgroup;		    /* the pod's cgroup; "": none */
	const struct hw_strings *pod_cidrs; /* of this node */
};

/* The capability arguments of an attachment, a JSON object; a plugin gets those that it declares.
 * @first: of the first network. Ports, addresses and limits are for the first network only.
 * *ret_json is freed by the caller. Return: 0; -EINVAL: invalid annotation */
int network_capabilities(const struct pod_spec *spec, const struct network_host *host, bool first,
			 char **ret_json, struct hw_err *e);

/* A further network that a pod asks for. */
struct network_extra {
	char *name, *ifname;
};

struct network_extras {
	struct network_extra *v;
	size_t n;
};

/* Parses the annotation NETWORK_NETWORKS. A network without an interface name gets net1, net2, ... */
int network_extras(const struct pod_spec *spec, struct network_extras *ret, struct hw_err *e);
void network_extras_done(struct network_extras *extras);

AUTO_VALUE_DEFINE(network_extras_done, struct network_extras);

#endif
