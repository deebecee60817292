/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/cnitool/cnitool.c - run CNI networks by hand
 *
 * What:  the program cnitool: upstream's commands add, check, del, gc and
 *        status, and in addition list, validate and versions.
 * How:   the list of commands, and the options of all commands; the other files
 *        of this folder have the commands.
 *        On Ctrl-C the signal handler makes a descriptor readable, which
 *        libhawser polls while a plugin runs: the plugin is killed and an
 *        incomplete attachment is undone. A second Ctrl-C does not interrupt
 *        the undo.
 * Rules: the exit status is 0 or 1, as in upstream.
 */
#include "cli/cnitool/cnitool.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/os/file.h"
#include "base/str.h"
#include "cni/runtime/cni.h"
#include "cni/runtime/conf.h"

#define CONF_DIR    "/etc/cni/net.d"
#define PLUGIN_PATH "/opt/cni/bin"
#define IFNAME	    "eth0"
#define TIMEOUT_S   300

static struct cli cli = { .timeout = TIMEOUT_S, .cancel_fd = -1 };

static const struct command *const commands[] = {
	&add_command,  &check_command,	  &del_command,	     &gc_command, &status_command,
	&list_command, &validate_command, &versions_command, NULL,
};

static const struct option_entry options[] = {
	{ "ifname", 'i', "NAME", "interface in the namespace (default: CNI_IFNAME, or " IFNAME ")",
	  .text = &cli.ifname },
	{ "cni-path", 0, "DIR[:DIR...]",
	  "plugin directories (default: CNI_PATH, or " PLUGIN_PATH ")", .text = &cli.plugin_path },
	{ "conf-dir", 0, "DIR", "directory of networks (default: NETCONFPATH, or " CONF_DIR ")",
	  .text = &cli.conf_dir },
	{ "cache-dir", 0, "DIR", "cache of attachments (default: /var/lib/cni)",
	  .text = &cli.cache_dir },
	{ "timeout", 0, "SECONDS", "timeout of the whole command, 0: no timeout (default: 300)",
	  .seconds = &cli.timeout },
	{ "json", .help = "print output and errors as JSON", .flag = &cli.json },
	{ 0 },
};

static const struct completion completions[] = {
	{ "NETWORK", .find = complete_networks },
	{ "NETNS", ":file", .find = complete_netns },
	{ "NAME", "eth0 eth1 net1" },
	{ "DIR[:DIR...]", ":dir" },
	{ 0 },
};

/* ---- Ctrl-C --------------------------------------------------------------------- */

static int cancel_event = -1;

static void handle_signal(int signal_number)
{
	static const uint64_t one = 1;
	int saved = errno;

	(void)signal_number;
	(void)!write(cancel_event, &one, sizeof(one));
	errno = saved;
}

/* The handler writes to an eventfd, which libhawser polls as its cancel descriptor. */
static int catch_signals(struct cli *t, struct hw_err *e)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction action = { .sa_handler = handle_signal, .sa_flags = SA_RESTART }, old;

	t->cancel_fd = cancel_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (cancel_event < 0)
		return err_set(e, -errno, "eventfd");
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
		sigaction(signals[i], NULL, &old);
		/* a signal that nohup or a background job ignores stays ignored */
		if (old.sa_handler != SIG_IGN)
			sigaction(signals[i], &action, NULL);
	}
	return 0;
}

/* ---- struct cli ------------------------------------------------------------------- */

static const char *env_or(const char *name, const char *def)
{
	const char *value = getenv(name);

	return str_empty(value) ? def : value;
}

/* Remembers the name of the plugin for error messages. */
static int find_plugin(void *ctx, const char *plugin, const char *const *dirs, char **ret_path,
		       struct hw_err *e)
{
	struct cli *t = ctx;

	if (t->name_plugin)
		snprintf(t->plugin, sizeof(t->plugin), "%s", plugin);
	return hw_exec_find(NULL, plugin, dirs, ret_path, e);
}

void tool_split_path(struct cli *t)
{
	AUTO(hw_strings_free) struct hw_strings dirs = { 0 };

	strings_split(t->plugin_path, ':', &dirs);
	for (size_t i = 0; i < dirs.n; i++)
		if (*dirs.v[i])
			strings_add(&t->plugin_dirs, dirs.v[i]);
	strings_add(&t->plugin_dirs, NULL);
	t->plugin_dirs.n--;
}

static int tool_open(struct cli *t, struct hw_err *e)
{
	const struct hw_exec exec = { .size = sizeof(exec), .ctx = t, .find = find_plugin };
	struct hw_cni_options o = { .size = sizeof(o), .exec = &exec };
	int r;

	r = catch_signals(t, e);
	if (r < 0)
		return r;
	tool_split_path(t);
	o.plugin_dirs = (const char *const *)t->plugin_dirs.v;
	o.cache_dir = t->cache_dir;
	o.cancel_fd = t->cancel_fd;
	o.timeout_ms = t->timeout * 1000;
	return hw_cni_new(&o, &t->cni, e);
}

int tool_load(struct cli *t, const char *network, struct hw_err *e)
{
	t->network = network;
	return hw_conf_load(t->conf_dir, network, &t->conf, e);
}

int tool_print(char *text, struct hw_err *e)
{
	autofree char *line = str_printf("%s\n", text);

	free(text);
	return file_write_fd(STDOUT_FILENO, line, strlen(line), e);
}

/* ---- main ----------------------------------------------------------------------- */

static int run_command(struct cli *t, const struct command *command, char **args)
{
	struct hw_err e;
	int r;

	r = tool_open(t, &e);
	if (r >= 0)
		r = command->run(t, args, &e);
	if (r < 0)
		tool_report(t, &e);
	hw_cni_free(t->cni);
	hw_conf_free(t->conf);
	hw_strings_free(&t->plugin_dirs);
	free(t->netns);
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static const struct program program = {
	.name = "cnitool",
	.version = "cnitool (hawser) " HAWSER_VERSION,
	.summary = "Run CNI networks by hand: attach and detach network namespaces.",
	.environment = "  CNI_PATH NETCONFPATH CNI_IFNAME   see the options above\n"
		       "  CNI_ARGS                          arguments for the plugins, K=V;K=V\n"
		       "  CAP_ARGS                          JSON object of capability arguments\n",
	.commands = commands,
	.options = options,
	.completions = completions,
	.ignores_extra_args = true, /* upstream ignores them without a message */
	.usage_status = EXIT_FAILURE,
	.report_usage_error = tool_report_usage_error,
	.run = run_command,
};

int main(int argc, char **argv)
{
	(void)argc;
	cli.conf_dir = env_or("NETCONFPATH", CONF_DIR);
	cli.plugin_path = env_or("CNI_PATH", PLUGIN_PATH);
	cli.ifname = env_or("CNI_IFNAME", IFNAME);
	cli.args = env_or("CNI_ARGS", NULL);
	cli.capability_args = env_or("CAP_ARGS", NULL);
	return command_main(&program, &cli, argv);
}
