/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/spec/process.h - the process of a container
 *
 *	args	command, else the image's entrypoint; then args, else the image's cmd, unless there is a
 *		command: it replaces both
 *	env	PATH, HOSTNAME, HOME, TERM; the image's variables; the request's variables. A later variable
 *		replaces an earlier one of the same name.
 *	cwd	the request's, else the image's, else /. crun creates it.
 *	oom	raised to the lowest value that this process may set (oom-score.h)
 */
#ifndef OCI_SPEC_PROCESS_H
#define OCI_SPEC_PROCESS_H

#include "oci/spec/spec.h"

/* Pointers are borrowed. NULL means: empty. */
struct spec_process {
	/* of the image */
	const struct hw_strings *entrypoint, *cmd, *image_env;
	const char *image_cwd;
	/* of the request */
	const struct hw_strings *command, *args;
	const struct hw_map *env;
	const char *cwd;
	const char *hostname;
	const char *home; /* of the user: see oci/user.h */
	bool terminal;
	bool no_new_privileges;
	uint32_t uid, gid;
	const uint32_t *groups; /* supplemental groups */
	size_t n_groups;
	int oom_score_adj;
	const struct hw_list *rlimits; /* struct oci_rlimit */
};

/* Fills in s->process, except for capabilities and security modules. Return: 0; -EINVAL if the process
 * has no arguments, the directory is relative, or a variable is invalid; or another negative errno */
int spec_set_process(struct oci_spec *s, const struct spec_process *p, struct hw_err *e);

/* Whether a variable can be written to config.json: the name is not empty and has no "=", the value is
 * UTF-8 without NUL. spec_set_process() checks the same for strings. Return: 0; -EINVAL, with the name
 * but not the value in the message */
int spec_check_env(const char *name, const void *value, size_t len, struct hw_err *e);

#endif
