/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/cnitool/cnitool.h - options and commands of cnitool
 *
 * main() fills one struct tool and passes it to the command. It borrows its
 * strings from the command line and the environment.
 */
#ifndef CLI_CNITOOL_CNITOOL_H
#define CLI_CNITOOL_CNITOOL_H

#include <hawser/cni.h>

#include "base/err.h"

struct tool {
	/* options and environment */
	const char *conf_dir;	     /* --conf-dir, NETCONFPATH */
	const char *plugin_path;     /* --cni-path, CNI_PATH */
	const char *cache_dir;	     /* --cache-dir; NULL: the library's default */
	const char *ifname;	     /* --ifname, CNI_IFNAME */
	const char *args;	     /* CNI_ARGS; NULL or "": none */
	const char *capability_args; /* CAP_ARGS; NULL: none */
	int timeout_ms;		     /* --timeout; 0: no timeout */
	bool json, names, yes;

	/* derived from the options */
	struct hw_strings plugin_dirs; /* plugin_path without empty entries; NULL at the end */
	struct hw_cni *cni;
	int cancel_fd; /* becomes readable on Ctrl-C */

	/* context for error messages */
	const char *network;
	struct hw_conf *conf;
	char *netns;
	bool name_plugin; /* store the plugin's name in .plugin: the library's errors lack it */
	char plugin[64];  /* the last plugin that was searched for */
};

/* The commands. @args: the arguments after the command; their number is checked */
int tool_add(struct tool *t, char **args, struct hw_err *e);
int tool_check(struct tool *t, char **args, struct hw_err *e);
int tool_del(struct tool *t, char **args, struct hw_err *e);
int tool_gc(struct tool *t, char **args, struct hw_err *e);
int tool_status(struct tool *t, char **args, struct hw_err *e);
int tool_list(struct tool *t, char **args, struct hw_err *e);
int tool_validate(struct tool *t, char **args, struct hw_err *e);
int tool_versions(struct tool *t, char **args, struct hw_err *e);

/* Loads the network into t->conf, which main() frees. */
int tool_load(struct tool *t, const char *network, struct hw_err *e);
/* Writes @text and a newline to standard output, and frees it. */
int tool_print(char *text, struct hw_err *e);
/* Writes an error to standard error: as text with a hint, or as JSON with --json. */
void tool_report(const struct tool *t, const struct hw_err *e);

#endif
