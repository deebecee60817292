/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/skel.h - a plugin call without I/O: environment and bytes in, answer out
 *
 * skel_call() is the whole protocol of facts section 3. skel_main() puts it
 * between getenv(), standard input and standard output; delegation to a plugin
 * of the same binary and a serving process call it directly.
 */
#ifndef CNI_SKEL_H
#define CNI_SKEL_H

#include <hawser/plugin.h>

#include "base/err.h"

struct skel_request {
	const char *command, *container_id, *netns, *ifname, *args, *path, *netns_override;
	const char *state_dir;
	const char *input;
	size_t input_len;
	/* The plugins of this binary, NULL at the end: delegation looks here before it execs. */
	const struct hw_plugin *const *siblings;
};

struct skel_reply {
	char *output; /* for standard output; NULL: nothing */
	char *notice; /* for standard error; NULL: nothing */
	int status;   /* exit status */
};

/* Return: 0, or -1 when the reply carries an error object; *e is then that error too */
int skel_call(const struct hw_plugin *plugin, const struct skel_request *request,
	      struct skel_reply *ret_reply, struct hw_err *e);
int skel_main(int argc, char **argv, const struct hw_plugin *plugin,
	      const struct hw_plugin *const *siblings);

#endif
