/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/pod-cidr.h - the addresses that kubelet gives this node's pods
 *
 * What:  check what kubelet says, keep it in the state folder for the networks of
 *        pods, and fill the template of a network configuration with it.
 */
#ifndef CRI_POD_CIDR_H
#define CRI_POD_CIDR_H

#include <hawser/field.h>

#include "base/err.h"

#define POD_CIDR_CONFLIST "10-hawser.conflist"

/* "10.1.0.0/24" or "10.1.0.0/24,fd00::/64"; "": none are known. */
int pod_cidr_parse(const char *text, struct hw_strings *ret_ranges, struct hw_err *e);
int pod_cidr_save(const char *state, const char *text, struct hw_err *e);
/* Return: 1; 0: none is kept */
int pod_cidr_read(const char *state, char **ret_text, struct hw_err *e);
/* Write CONF_DIR/10-hawser.conflist, all or nothing. Return: 1; 0: it is there as it should be */
int pod_cidr_render(const char *text, const char *template_file, const char *conf_dir,
		    struct hw_err *e);

#endif
