/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/spec/cdi.h - devices of the Container Device Interface: edits of a container's configuration
 *
 * What:  vendors describe their devices in files, in JSON or YAML: which environment variables, device nodes
 *        and mounts a container needs to use a device. Its name is "vendor.com/class=name".
 *
 *	directories	the files *.json, *.yaml and *.yml of each; a device of a later directory replaces one with the
 *			same name of an earlier one; two in the same directory are an error
 *	of a file	its edits for all devices are applied once; then those of each device
 *	env		replaces a variable with the same name
 *	deviceNodes	what is not given is read from the node of the host; allowed in the device cgroup
 *	mounts		after those of the request
 *	other edits	refused by name, such as hooks
 *
 * Rules: the size and the number of files are limited. A file that cannot be used matters only if a device is
 *        not found without it.
 */
#ifndef OCI_SPEC_CDI_H
#define OCI_SPEC_CDI_H

#include "oci/spec/spec.h"

/* The usual directories. */
#define CDI_DIRECTORIES "/etc/cdi:/var/run/cdi"

/* A file. */
struct cdi_spec;

/* Parses a file. Return: 0; -EINVAL or -EFBIG */
int cdi_parse(const char *text, size_t len, bool is_yaml, struct cdi_spec **ret_spec,
	      struct hw_err *e);
void cdi_spec_free(struct cdi_spec *spec); /* accepts NULL */
AUTO_DEFINE(cdi_spec_free, struct cdi_spec);
/* Applies all edits of a file: for fuzzing. */
int cdi_apply_all(const struct cdi_spec *spec, struct oci_spec *s, struct hw_err *e);

/* Applies the edits of these devices. spec_set_process() and spec_set_devices() must have been called. @dirs: separated by colons. Return: 0; -EINVAL if a name is malformed, or an edit is invalid or not
 * supported; -ENODATA if there is no such device; or another negative errno */
int cdi_apply(const char *dirs, const struct hw_strings *names, struct oci_spec *s,
	      struct hw_err *e);

#endif
