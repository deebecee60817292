/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/cnitool/cnitool.c - run CNI networks by hand
 *
 * What:  the program cnitool: upstream's commands add, check, del, gc and
 *        status, and in addition list, validate and versions.
 * How:   a const table of commands. main() reads options and environment into
 *        a struct tool, runs one command and reports its error.
 *        On Ctrl-C the signal handler makes a descriptor readable, which
 *        libhawser polls while a plugin runs: the plugin is killed and an
 *        incomplete attachment is undone. A second Ctrl-C does not interrupt
 *        the undo.
 * Rules: the exit status is 0 or 1, as in upstream.
 */
#include "cli/cnitool/cnitool.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/json/value.h"
#include "base/mem.h"
#include "base/os/file.h"
#include "base/str.h"
#include "cni/runtime/cni.h"
#include "cni/runtime/conf.h"

#define CONF_DIR    "/etc/cni/net.d"
#define PLUGIN_PATH "/opt/cni/bin"
#define IFNAME	    "eth0"
#define TIMEOUT_S   300

static const struct command {
	const char *name;
	const char *args;
	int min_args, max_args;
	int (*run)(struct tool *t, char **args, struct hw_err *e);
	const char *summary;
	const char *help;
} commands[] = {
	{ "add", "NETWORK NETNS", 2, 2, tool_add, "attach a network namespace to a network",
	  "Runs the network's plugins in order and prints the result as JSON. If a plugin fails\n"
	  "or you press Ctrl-C, the attachment is undone.\n\n"
	  "  ip netns add pod && cnitool add demo /run/netns/pod\n"
	  "  CAP_ARGS='{\"portMappings\":[{\"hostPort\":8080,\"containerPort\":80,"
	  "\"protocol\":\"tcp\"}]}' \\\n"
	  "      cnitool add demo /run/netns/pod\n" },
	{ "check", "NETWORK NETNS", 2, 2, tool_check, "check an attachment",
	  "Succeeds and prints nothing if the attachment is still as add created it; otherwise\n"
	  "prints the difference. The network's version must be 0.4.0 or later.\n\n"
	  "  cnitool check demo /run/netns/pod\n" },
	{ "del", "NETWORK NETNS", 2, 2, tool_del, "detach a network namespace",
	  "Also succeeds if the attachment or the namespace no longer exists.\n\n"
	  "  cnitool del demo /run/netns/pod\n" },
	{ "gc", "NETWORK", 1, 2, tool_gc, "delete EVERY attachment of a network",
	  "Detaches every container in the cache of this network, including those that other\n"
	  "programs attached. Then runs the plugins with GC, so that they delete everything else\n"
	  "of this network. On a terminal it first lists the attachments and asks for\n"
	  "confirmation; --yes skips the question.\n\n"
	  "  cnitool gc demo\n" },
	{ "status", "NETWORK", 1, 2, tool_status, "check that a network is ready",
	  "Succeeds if containers can be attached now. Runs each plugin of the network with\n"
	  "STATUS if the network's version is 1.1.0 or later.\n\n"
	  "  cnitool status demo && echo ready\n" },
	{ "list", "", 0, 0, tool_list, "list the configured networks",
	  "Shows version, plugins and file of each network, and the error of each invalid one.\n"
	  "--names prints only the names of the valid networks.\n\n"
	  "  cnitool list\n"
	  "  cnitool list --json | jq '.networks[] | select(.valid)'\n" },
	{ "validate", "NETWORK", 1, 1, tool_validate, "check the plugins of a network",
	  "Checks that every plugin is installed and supports the network's version. Runs the\n"
	  "plugins with VERSION; nothing is attached.\n\n"
	  "  cnitool validate demo\n" },
	{ "versions", "PLUGIN|NETWORK", 1, 1, tool_versions,
	  "print the CNI versions that a plugin supports",
	  "For a network, prints the versions of each of its plugins.\n\n"
	  "  cnitool versions bridge\n" },
};

enum { OPT_CNI_PATH = 256, OPT_CONF_DIR, OPT_CACHE_DIR, OPT_TIMEOUT, OPT_JSON, OPT_NAMES };

static const struct option options[] = {
	{ "ifname", required_argument, NULL, 'i' },
	{ "cni-path", required_argument, NULL, OPT_CNI_PATH },
	{ "conf-dir", required_argument, NULL, OPT_CONF_DIR },
	{ "cache-dir", required_argument, NULL, OPT_CACHE_DIR },
	{ "timeout", required_argument, NULL, OPT_TIMEOUT },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "names", no_argument, NULL, OPT_NAMES },
	{ "yes", no_argument, NULL, 'y' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ 0 },
};

static const char options_help[] =
	"options (in parentheses: environment variable and default):\n"
	"  -i, --ifname NAME      name of the interface in the namespace (CNI_IFNAME, " IFNAME ")\n"
	"      --cni-path DIRS    plugin directories, DIR:DIR:... (CNI_PATH, " PLUGIN_PATH ")\n"
	"      --conf-dir DIR     directory with networks (NETCONFPATH, " CONF_DIR ")\n"
	"      --cache-dir DIR    cache of attachments (/var/lib/cni)\n"
	"      --timeout SECONDS  timeout of the whole command; 0: no timeout (300)\n"
	"      --json             print output and errors as JSON\n"
	"      --names            list: print names only\n"
	"  -y, --yes              gc: do not ask for confirmation\n"
	"  -h, --help             print this help, or the help of a command\n"
	"  -V, --version          print the version\n"
	"environment:\n"
	"  CNI_PATH NETCONFPATH CNI_IFNAME   see the options above\n"
	"  CNI_ARGS                          arguments for the plugins, K=V;K=V\n"
	"  CAP_ARGS                          JSON object of capability arguments\n";

/* ---- help --------------------------------------------------------------------- */

static void print_help(FILE *out)
{
	fputs("usage: cnitool [OPTIONS] COMMAND NETWORK [NETNS]\n\n"
	      "Runs CNI networks by hand: attaches and detaches network namespaces.\n\n"
	      "commands:\n",
	      out);
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		int width = fprintf(out, "  %s %s", commands[i].name, commands[i].args);

		fprintf(out, "%*s%s\n", 27 - width, "", commands[i].summary);
	}
	fprintf(out, "\n%s\n\"cnitool help COMMAND\" prints the help of a command.\n",
		options_help);
}

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		if (str_equal(commands[i].name, name))
			return &commands[i];
	return NULL;
}

static int report_unknown_command(const char *name)
{
	fprintf(stderr, "cnitool: unknown command \"%s\"\nhint: the commands are", name);
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		fprintf(stderr, " %s", commands[i].name);
	fputs("; see cnitool --help\n", stderr);
	return EXIT_FAILURE;
}

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
static int catch_signals(struct tool *t, struct hw_err *e)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction action = { .sa_handler = handle_signal, .sa_flags = SA_RESTART }, old;
	const struct sigaction ignore = { .sa_handler = SIG_IGN };

	sigaction(SIGPIPE, &ignore, NULL); /* writing to a closed pipe then fails with EPIPE */
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

/* ---- struct tool ------------------------------------------------------------------ */

static const char *env_or(const char *name, const char *def)
{
	const char *value = getenv(name);

	return str_empty(value) ? def : value;
}

/* Remembers the name of the plugin for error messages. */
static int find_plugin(void *ctx, const char *plugin, const char *const *dirs, char **ret_path,
		       struct hw_err *e)
{
	struct tool *t = ctx;

	if (t->name_plugin)
		snprintf(t->plugin, sizeof(t->plugin), "%s", plugin);
	return hw_exec_find(NULL, plugin, dirs, ret_path, e);
}

static int tool_open(struct tool *t, struct hw_err *e)
{
	const struct hw_exec exec = { .size = sizeof(exec), .ctx = t, .find = find_plugin };
	struct hw_cni_options o = { .size = sizeof(o), .exec = &exec };
	AUTO(hw_strings_free) struct hw_strings dirs = { 0 };
	int r;

	r = catch_signals(t, e);
	if (r < 0)
		return r;
	strings_split(t->plugin_path, ':', &dirs);
	for (size_t i = 0; i < dirs.n; i++)
		if (*dirs.v[i])
			strings_add(&t->plugin_dirs, dirs.v[i]);
	strings_add(&t->plugin_dirs, NULL);
	t->plugin_dirs.n--;
	o.plugin_dirs = (const char *const *)t->plugin_dirs.v;
	o.cache_dir = t->cache_dir;
	o.cancel_fd = t->cancel_fd;
	o.timeout_ms = t->timeout_ms;
	return hw_cni_new(&o, &t->cni, e);
}

int tool_load(struct tool *t, const char *network, struct hw_err *e)
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

/* ---- options ---------------------------------------------------------------------- */

struct info_options {
	bool help, version;
};

static bool read_option(struct tool *t, int option, struct info_options *info)
{
	long long seconds;

	switch (option) {
	case 'i':
		t->ifname = optarg;
		return true;
	case OPT_CNI_PATH:
		t->plugin_path = optarg;
		return true;
	case OPT_CONF_DIR:
		t->conf_dir = optarg;
		return true;
	case OPT_CACHE_DIR:
		t->cache_dir = optarg;
		return true;
	case OPT_TIMEOUT:
		if (!str_to_int64(optarg, 0, INT_MAX / 1000, &seconds)) {
			fprintf(stderr,
				"cnitool: --timeout: expected a number of seconds, got \"%s\"\n",
				optarg);
			return false;
		}
		t->timeout_ms = seconds * 1000;
		return true;
	case OPT_JSON:
		return t->json = true;
	case OPT_NAMES:
		return t->names = true;
	case 'y':
		return t->yes = true;
	case 'h':
		return info->help = true;
	case 'V':
		return info->version = true;
	default:
		fputs("hint: cnitool --help lists the options\n", stderr);
		return false;
	}
}

/* ---- main ----------------------------------------------------------------------- */

static int run_command(struct tool *t, const struct command *c, int argc, char **argv)
{
	struct hw_err e;
	int r;

	if (argc < c->min_args) {
		fprintf(stderr, "usage: cnitool [OPTIONS] %s %s\nhint: see \"cnitool help %s\"\n",
			c->name, c->args, c->name);
		return EXIT_FAILURE;
	}
	/* upstream ignores extra arguments without a message */
	for (int i = c->max_args; i < argc; i++)
		fprintf(stderr, "cnitool: extra argument \"%s\" is ignored\n", argv[i]);
	r = tool_open(t, &e);
	if (r >= 0)
		r = c->run(t, argv, &e);
	if (r < 0)
		tool_report(t, &e);
	hw_cni_free(t->cni);
	hw_conf_free(t->conf);
	hw_strings_free(&t->plugin_dirs);
	free(t->netns);
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int show_help(const char *command)
{
	const struct command *c = find_command(command);

	if (command && !c)
		return report_unknown_command(command);
	if (c)
		printf("usage: cnitool [OPTIONS] %s %s\n\n%s: %s\n\n%s\n%s", c->name, c->args,
		       c->name, c->summary, c->help, options_help);
	else
		print_help(stdout);
	return EXIT_SUCCESS;
}

static int run_cnitool(int argc, char **argv)
{
	struct tool t = {
		.conf_dir = env_or("NETCONFPATH", CONF_DIR),
		.plugin_path = env_or("CNI_PATH", PLUGIN_PATH),
		.ifname = env_or("CNI_IFNAME", IFNAME),
		.args = env_or("CNI_ARGS", NULL),
		.capability_args = env_or("CAP_ARGS", NULL),
		.timeout_ms = TIMEOUT_S * 1000,
		.cancel_fd = -1,
	};
	struct info_options info = { 0 };
	const struct command *c;
	char **args;
	int option;

	while ((option = getopt_long(argc, argv, "i:yhV", options, NULL)) >= 0)
		if (!read_option(&t, option, &info))
			return EXIT_FAILURE;
	args = argv + optind;
	if (info.version)
		return puts("cnitool (hawser) " HAWSER_VERSION) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
	if (str_equal(args[0], "help"))
		return show_help(args[1]);
	if (info.help)
		return show_help(args[0]);
	if (!args[0]) {
		print_help(stderr);
		return EXIT_FAILURE;
	}
	c = find_command(args[0]);
	if (!c)
		return report_unknown_command(args[0]);
	return run_command(&t, c, argc - optind - 1, args + 1);
}

int main(int argc, char **argv)
{
	file_open_missing_stdio(O_RDWR);
	value_seed();
	int status = run_cnitool(argc, argv);
	if (fflush(stdout) == 0)
		return status;
	fprintf(stderr, "cnitool: write to standard output: %s\n", strerrordesc_np(errno));
	return EXIT_FAILURE;
}
