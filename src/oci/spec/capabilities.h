/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/spec/capabilities.h - capabilities of a container
 *
 *	start		the default list; all if add has ALL or the container is privileged; none if
 *			drop has ALL
 *	add		single names
 *	ambient		added to all five sets, so that a process of another user than root keeps it
 *	drop		single names, also of add and ambient
 *
 * Rules: names are accepted with or without CAP_, in upper or lower case. A container never gets a
 *        capability that this process lacks: crun would fail. "all" means all of this process; a
 *        default that this process lacks is left out; a name in add or ambient that it lacks is an
 *        error. Without ambient, the inheritable and ambient sets are empty (CVE-2022-24769).
 */
#ifndef OCI_SPEC_CAPABILITIES_H
#define OCI_SPEC_CAPABILITIES_H

#include "oci/spec/spec.h"

/* NULL means: empty. */
struct spec_capabilities {
	const struct hw_strings *defaults, *add, *drop, *ambient;
	bool privileged;    /* all of this process; the other members do not matter */
	uint64_t available; /* spec_own_capabilities() */
};

/* The capabilities that this process can pass on: permitted, and in its bounding set. A bit for each
 * number of <linux/capability.h>. */
uint64_t spec_own_capabilities(void);

/* Fills in s->process.capabilities. Return: 0; -EINVAL for an unknown name; -EPERM for one that this
 * process lacks */
int spec_set_capabilities(struct oci_spec *s, const struct spec_capabilities *c, struct hw_err *e);

/* The set of these names as bits, for checks of a list from a configuration file. Return: 0; -EINVAL for
 * an unknown name */
int spec_parse_capabilities(const struct hw_strings *names, uint64_t *ret_set, struct hw_err *e);

#endif
