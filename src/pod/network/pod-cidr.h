/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/network/pod-cidr.h - the pod CIDR that kubelet assigns to this node
 *
 * What:  saves the CIDR in the state directory, and generates a network configuration from
 *        a template with it.
 * Rules: functions may be called from any thread; each waits for the others to finish. A
 *        configuration is generated only if there is a template and no other network is
 *        configured.
 */
#ifndef POD_NETWORK_POD_CIDR_H
#define POD_NETWORK_POD_CIDR_H

#include <pthread.h>

#include <hawser/field.h>

#include "base/err.h"
#include "pod/network/watch.h"

#define POD_CIDR_CONFLIST "10-hawser.conflist"

struct pod_cidr {
	pthread_mutex_t lock; /* held while the CIDR is saved and rendered */
	char *state, *conf_dir;
};

void pod_cidr_init(struct pod_cidr *p, const char *state, const char *conf_dir);
void pod_cidr_done(struct pod_cidr *p);

/*
 * Saves @text, CIDRs separated by commas such as "10.1.0.0/24,fd00::/64", and generates
 * CONF_DIR/10-hawser.conflist from the template. @template_file: "" if there is no template;
 * @view: the network as it is now. Return: 1 if the configuration was written; 0 if it has this
 * content already or is not wanted; -EINVAL: malformed CIDR or template
 */
int pod_cidr_set(struct pod_cidr *p, const char *text, const char *template_file,
		 const struct network_view *view, struct hw_err *e);
/* Generates the configuration with the CIDR that was saved last, if any. Return: as pod_cidr_set() */
int pod_cidr_restore(struct pod_cidr *p, const char *template_file, const struct network_view *view,
		     struct hw_err *e);
/* The CIDRs that were saved last; none if none was saved. Overwrites *ret_ranges. */
int pod_cidr_ranges(struct pod_cidr *p, struct hw_strings *ret_ranges, struct hw_err *e);

#endif
