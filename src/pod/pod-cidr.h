/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/pod-cidr.h - the pod CIDR that kubelet assigns to this node
 *
 * What:  parse the CIDR, save it in the state directory, and render the template of
 *        the network configuration with it.
 */
#ifndef POD_POD_CIDR_H
#define POD_POD_CIDR_H

#include <hawser/field.h>

#include "base/err.h"

#define POD_CIDR_CONFLIST "10-hawser.conflist"

/* Parses CIDRs separated by commas, such as "10.1.0.0/24,fd00::/64"; "" gives an empty list. */
int pod_cidr_parse(const char *text, struct hw_strings *ret_ranges, struct hw_err *e);
int pod_cidr_save(const char *state, const char *text, struct hw_err *e);
/* Return: 1 if read, *ret_text is allocated; 0 if no pod CIDR was saved */
int pod_cidr_read(const char *state, char **ret_text, struct hw_err *e);
/* Renders the template for the pod CIDR @text and replaces CONF_DIR/10-hawser.conflist atomically.
 * Return: 1 if written; 0 if the file already has this content */
int pod_cidr_render(const char *text, const char *template_file, const char *conf_dir,
		    struct hw_err *e);

#endif
