/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/network/network.h - attach a pod to its networks, check and detach it
 *
 * What:  a plan lists the attachments of a pod: for each one the complete configuration of its
 *        network and the arguments of its plugins. It is stored before the first plugin runs.
 * Rules: network_detach() needs only the plan: it works without the namespace, the files in the CNI
 *        directory, and the CNI cache. It is idempotent.
 *        The caller sees to it that at most one call works on a pod at a time.
 */
#ifndef POD_NETWORK_NETWORK_H
#define POD_NETWORK_NETWORK_H

#include <hawser/cni.h>

#include "base/err.h"
#include "base/shared.h"
#include "pod/network/args.h"
#include "pod/network/watch.h"
#include "pod/spec/spec.h"

struct pod_attachment {
	char *network; /* name */
	char *ifname;
	char *config;	    /* the network as a list with all its plugins: JSON */
	char *capabilities; /* arguments for the plugins: JSON object */
	char *result;	    /* of ADD: JSON; NULL: ADD has not succeeded */
};

/* Immutable. */
struct pod_network {
	struct shared shared;
	char *text; /* for the database: JSON */
	struct hw_list
		attachments; /* struct pod_attachment; none for a pod in the host's namespace */
	struct hw_strings
		ips; /* of eth0: the first IPv4 address, then the others as in the result */
};

/* Decodes .text. The network is to be released with shared_unref(). */
int network_decode(const char *text, const struct pod_network **ret_network, struct hw_err *e);

/* Chooses the networks of a pod. Calls no plugin and changes nothing.
 * @view: the current network; @conf_dir: where further networks are looked up
 * Return: 0; -ENETDOWN: the network is not ready; -EINVAL: invalid annotation or unknown network */
int network_plan(const struct pod_spec *spec, const struct network_view *view, const char *conf_dir,
		 const struct network_host *host, const struct pod_network **ret_plan,
		 struct hw_err *e);

/* Loads the network with this name: that in use, or one of the directory. Freed with hw_conf_free().
 * Return: 0; -ENODATA: no such network; or the error of an invalid file */
int network_load(struct network_watch *watch, const char *conf_dir, const char *name,
		 struct hw_conf **ret_conf, struct hw_err *e);

/* The pod that a plan belongs to. */
struct network_pod {
	const char *id;
	const struct pod_spec *spec;
	const char *netns;     /* path; "": the namespace is gone (network_detach()) */
	int cancel_fd;	       /* -1: none */
	int64_t deadline;      /* for all networks together */
	int64_t undo_deadline; /* network_attach(): of the undo */
};

/* Runs ADD of each network. *ret_network is the plan with the results. If it fails, the network whose
 * ADD failed was undone, as far as that was possible in time; the caller detaches all networks. */
int network_attach(const struct hw_cni *cni, const struct network_pod *pod,
		   const struct pod_network *plan, const struct pod_network **ret_network,
		   struct hw_err *e);
/* Runs DEL of all networks, in reverse order; continues after an error. */
int network_detach(const struct hw_cni *cni, const struct network_pod *pod,
		   const struct pod_network *plan, struct hw_err *e);
/* For a pod without a plan: runs DEL for what the cache of libcni has of this container ID.
 * @cancel_fd: -1: none */
int network_detach_cached(const struct hw_cni *cni, const char *id, int cancel_fd, int64_t deadline,
			  struct hw_err *e);
/* Runs DEL for an entry of the cache of libcni. @cancel_fd: -1: none */
int network_detach_entry(const struct hw_cni *cni, const struct hw_cached *entry, int cancel_fd,
			 int64_t deadline, struct hw_err *e);
/* Runs CHECK of all networks, except those that disable it; continues after an error. The names of the
 * networks that it has checked are added to @ret_checked. */
int network_check(const struct hw_cni *cni, const struct network_pod *pod,
		  const struct pod_network *plan, struct hw_strings *ret_checked, struct hw_err *e);

#endif
