/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/network/template.h - templates of a network configuration, like containerd's cni_conf_template
 *
 * What:  the subset of Go's text/template that such files use:
 *
 *	{{.PodCIDR}}                                     the first of the node's pod CIDRs
 *	{{range .PodCIDRRanges}} ... {{.}} ... {{end}}   for each pod CIDR; also for .Routes
 *	{{range $i, $r := .Routes}} ... {{$r}} ... {{else}} ... {{end}}
 *	{{if $i}} ... {{else}} ... {{end}}               true if not zero and not empty
 *	{{- ... -}}                                      removes the white space around it
 *
 * Rules: depth, steps and output are limited. Other actions are rejected with an error
 *        that names the line.
 */
#ifndef POD_NETWORK_TEMPLATE_H
#define POD_NETWORK_TEMPLATE_H

#include <stddef.h>

#include <hawser/field.h>

#include "base/buf.h"
#include "base/err.h"

struct template_data {
	const char *pod_cidr;
	const struct hw_strings *ranges, *routes;
};

/* *ret is overwritten on success only. Return: 0; -EINVAL: invalid template; -EFBIG: a limit is
 * exceeded */
int template_render(const char *text, size_t len, const struct template_data *data, struct buf *ret,
		    struct hw_err *e);

#endif
