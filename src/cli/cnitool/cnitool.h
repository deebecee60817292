/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/cnitool/cnitool.h - what the commands of cnitool share
 *
 * One struct tool is made by main() and handed to the one command that runs.
 * Strings come from the command line and the environment and are borrowed.
 */
#ifndef CLI_CNITOOL_CNITOOL_H
#define CLI_CNITOOL_CNITOOL_H

#include <hawser/cni.h>

#include "base/err.h"

struct tool {
	/* how it was called */
	const char *conf_dir;	     /* --conf-dir, NETCONFPATH */
	const char *plugin_path;     /* --cni-path, CNI_PATH */
	const char *cache_dir;	     /* --cache-dir; NULL: the library's */
	const char *ifname;	     /* --ifname, CNI_IFNAME */
	const char *args;	     /* CNI_ARGS; NULL or "": none */
	const char *capability_args; /* CAP_ARGS; NULL: none */
	int timeout_ms;		     /* --timeout; 0: none */
	bool json, names, yes;

	/* made from it */
	struct hw_strings plugin_dirs; /* plugin_path without empty parts, NULL at the end */
	struct hw_cni *cni;
	int cancel_fd; /* readable after Ctrl-C */

	/* what an error would be about */
	const char *network;
	struct hw_conf *conf;
	char *netns;
	bool bare;	 /* the library does not say which plugin failed: remember it */
	char plugin[64]; /* the one that was looked for last */
};

/* args: what follows the command, NULL at the end; as many as its table entry asks for */
int tool_add(struct tool *t, char **args, struct hw_err *e);
int tool_check(struct tool *t, char **args, struct hw_err *e);
int tool_del(struct tool *t, char **args, struct hw_err *e);
int tool_gc(struct tool *t, char **args, struct hw_err *e);
int tool_status(struct tool *t, char **args, struct hw_err *e);
int tool_list(struct tool *t, char **args, struct hw_err *e);
int tool_validate(struct tool *t, char **args, struct hw_err *e);
int tool_versions(struct tool *t, char **args, struct hw_err *e);

/* The network by its name; t->conf, freed by main(). */
int tool_load(struct tool *t, const char *network, struct hw_err *e);
/* Prints JSON text, or another text, with a newline, and frees it. */
int tool_print(char *text, struct hw_err *e);
/* Writes the error for people, or with --json for programs, to standard error. */
void tool_report(const struct tool *t, const struct hw_err *e);

#endif
