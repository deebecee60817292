/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/cnitool/cnitool.h - options and commands of cnitool
 *
 * main() fills one struct cli, which is passed to the command that runs
 * (cli/command.h). It borrows its strings from the command line and the
 * environment.
 */
#ifndef CLI_CNITOOL_CNITOOL_H
#define CLI_CNITOOL_CNITOOL_H

#include <hawser/cni.h>

#include "base/err.h"
#include "cli/command.h"

struct cli {
	/* options and environment */
	const char *conf_dir;	     /* --conf-dir, NETCONFPATH */
	const char *plugin_path;     /* --cni-path, CNI_PATH */
	const char *cache_dir;	     /* --cache-dir; NULL: the library's default */
	const char *ifname;	     /* --ifname, CNI_IFNAME */
	const char *args;	     /* CNI_ARGS; NULL or "": none */
	const char *capability_args; /* CAP_ARGS; NULL: none */
	int timeout;		     /* --timeout, seconds; 0: no timeout */
	bool json;

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

extern const struct command add_command, check_command, del_command, gc_command, status_command,
	list_command, validate_command, versions_command;

/* Completions of the arguments NETWORK and NETNS. */
int complete_networks(struct cli *t, const char *word, struct hw_strings *words, struct hw_err *e);
int complete_netns(struct cli *t, const char *word, struct hw_strings *words, struct hw_err *e);

/* Fills t->plugin_dirs, which main() frees. */
void tool_split_path(struct cli *t);
/* Loads the network into t->conf, which main() frees. */
int tool_load(struct cli *t, const char *network, struct hw_err *e);
/* Writes @text and a newline to standard output, and frees it. */
int tool_print(char *text, struct hw_err *e);
/* Writes an error to standard error: as text with a hint, or as JSON with --json. */
void tool_report(const struct cli *t, const struct hw_err *e);
void tool_report_usage_error(const struct cli *t, const char *msg, const char *hint);

#endif
