/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/template.h - templates of a network configuration, as containerd's cni_conf_template
 *
 * What:  the subset of Go's text/template that such files use:
 *
 *	{{.PodCIDR}}                                     the first of the node's pod CIDRs
 *	{{range .PodCIDRRanges}} ... {{.}} ... {{end}}   for each of them; .Routes as well
 *	{{range $i, $r := .Routes}} ... {{$r}} ... {{else}} ... {{end}}
 *	{{if $i}} ... {{else}} ... {{end}}               not zero, not empty
 *	{{- ... -}}                                      removes the white space around it
 *
 * Rules: depth, steps and output are bounded; anything else in a template is an error
 *        with its line.
 */
#ifndef CRI_TEMPLATE_H
#define CRI_TEMPLATE_H

#include <stddef.h>

#include <hawser/field.h>

#include "base/buf.h"
#include "base/err.h"

struct template_data {
	const char *pod_cidr;
	const struct hw_strings *ranges, *routes;
};

/* *ret is overwritten on success only. Return: 0, -EINVAL, -EFBIG if a bound is exceeded */
int template_render(const char *text, size_t len, const struct template_data *data, struct buf *ret,
		    struct hw_err *e);

#endif
