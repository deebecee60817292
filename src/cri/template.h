/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/template.h - a network configuration with gaps, as containerd's cni_conf_template
 *
 * What:  the part of Go's text/template that such files use:
 *
 *	{{.PodCIDR}}                                  the first of the node's pod CIDRs
 *	{{range .PodCIDRRanges}} ... {{.}} ... {{end}}   for each of them; .Routes likewise
 *	{{range $i, $r := .Routes}} ... {{$r}} ... {{else}} ... {{end}}
 *	{{if $i}} ... {{else}} ... {{end}}            not the first; not empty
 *	{{- ... -}}                                   without the white space around it
 *
 * Rules: bounded in depth, steps and output; all else is refused, with its line.
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

/* @ret is overwritten, on success only. -EINVAL, -EFBIG. */
int template_render(const char *text, size_t len, const struct template_data *data, struct buf *ret,
		    struct hw_err *e);

#endif
