/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/main.c - hawser-plugin: all plugins in one binary
 *
 * What:  if the binary was started under the name of a plugin, it runs that plugin.
 *        Otherwise the first argument is the name of a plugin, or a command for
 *        administrators.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json/value.h"
#include "base/mem.h"
#include "base/os/file.h"
#include "base/str.h"
#include "cni/error.h"
#include "cni/plugin/program.h"
#include "cni/plugin/skel.h"
#include "plugins/bandwidth/bandwidth.h"
#include "plugins/bridge/bridge.h"
#include "plugins/firewall/firewall.h"
#include "plugins/host-local/host-local.h"
#include "plugins/install.h"
#include "plugins/plugins.h"
#include "plugins/pod/host-objects.h"
#include "plugins/pod/rules.h"
#include "plugins/portmap/portmap.h"
#include "plugins/rules.h"
#include "plugins/serve.h"
#include "plugins/tuning/tuning.h"

static const struct hw_plugin *const plugins[] = {
	&bandwidth_plugin,
	&bridge_plugin,
	&firewall_plugin,
	&host_local_plugin,
	&loopback_plugin,
	&noop_plugin,
	&portmap_plugin,
	&ptp_plugin,
	&static_plugin,
	&tuning_plugin,
	NULL,
};

static const char usage[] =
	"usage: hawser-plugin PLUGIN [--help]     run a plugin, or describe it\n"
	"       hawser-plugin list [--json]       list the plugins of this binary\n"
	"       hawser-plugin install DIR [--force]\n"
	"                                         copy this binary to DIR, with a link per plugin\n"
	"       hawser-plugin uninstall           remove the objects that plugins created once per "
	"host:\n"
	"                                         bridges, VLAN gateways, firewall rules, nftables "
	"tables\n"
	"       hawser-plugin uninstall DIR       remove the copy and its links from DIR\n"
	"       hawser-plugin rules [--json]      list the elements of our nftables tables and "
	"their\n"
	"                                         owners\n"
	"       hawser-plugin repair              restore deleted nftables rules and elements\n"
	"       hawser-plugin serve               run plugins for hawser-cri, which starts this "
	"command\n"
	"       hawser-plugin --help | --version\n";

static int print_error(const struct hw_err *e)
{
	fprintf(stderr, "hawser-plugin: %s\n", e->msg);
	return 1;
}

static int print_usage_error(void)
{
	fputs(usage, stderr);
	return 1;
}

static const struct hw_plugin *find_plugin(const char *name)
{
	for (size_t i = 0; plugins[i]; i++)
		if (str_equal(plugins[i]->name, name))
			return plugins[i];
	return NULL;
}

static int command_list(int argc, char **argv)
{
	AUTO(value_free) struct value *list = value_new_array();
	bool json = argc == 2 && str_equal(argv[1], "--json");

	if (argc != 1 && !json)
		return print_usage_error();
	if (!json) {
		for (size_t i = 0; plugins[i]; i++)
			printf("%-12s %s\n", plugins[i]->name, plugins[i]->summary);
		return 0;
	}
	for (size_t i = 0; plugins[i]; i++) {
		const char *const *versions = skel_versions(plugins[i]);
		struct value *entry = value_new_object(), *supported = value_new_array();

		for (size_t v = 0; versions[v]; v++)
			value_append(supported, value_new_string(versions[v]));
		value_set(entry, "name", value_new_string(plugins[i]->name));
		value_set(entry, "summary", value_new_string(plugins[i]->summary));
		value_set(entry, "supportedVersions", supported);
		value_append(list, entry);
	}
	autofree char *text = value_format(list, HW_JSON_PRETTY);
	puts(text);
	return 0;
}

static int command_install(int argc, char **argv)
{
	const char *dir = NULL;
	bool force = false;
	struct hw_err e;

	for (int i = 1; i < argc; i++) {
		if (str_equal(argv[i], "--force"))
			force = true;
		else if (dir || argv[i][0] == '-')
			return print_usage_error();
		else
			dir = argv[i];
	}
	if (!dir)
		return print_usage_error();
	return install_into(dir, force, plugins, &e) < 0 ? print_error(&e) : 0;
}

static const struct host_object_kind host_object_kinds[] = {
	{ HOST_OBJECT_IPTABLES, firewall_host_object_remove },
	{ HOST_OBJECT_FORWARD, firewall_host_chain_remove },
	{ HOST_OBJECT_MASQUERADE, pod_rules_host_object_remove },
	{ 0 },
};

static int command_uninstall(int argc, char **argv)
{
	struct hw_err e;
	int tables, objects;

	if (argc > 2 || (argc == 2 && argv[1][0] == '-'))
		return print_usage_error();
	if (argc == 2) {
		int links;

		links = install_remove(argv[1], &e);
		if (links < 0)
			return print_error(&e);
		printf("%d link%s removed from %s\n", links, links == 1 ? "" : "s", argv[1]);
		return 0;
	}
	objects = host_objects_remove(host_object_kinds, &e);
	if (objects < 0)
		return print_error(&e);
	tables = rules_remove(&e);
	if (tables < 0)
		return print_error(&e);
	if (objects + tables == 0)
		puts("nothing to remove");
	return 0;
}

static int command_rules(int argc, char **argv)
{
	bool json = argc == 2 && str_equal(argv[1], "--json");
	struct hw_err e;

	if (argc != 1 && !json)
		return print_usage_error();
	return rules_list(plugins, json, &e) < 0 ? print_error(&e) : 0;
}

static int command_repair(int argc, char **argv)
{
	struct hw_err e;
	int r;

	(void)argv;
	if (argc != 1)
		return print_usage_error();
	r = rules_repair(plugins, &e);
	if (r < 0)
		return print_error(&e);
	printf("rules of %d attachment%s restored\n", r, r == 1 ? "" : "s");
	return 0;
}

static int command_serve(int argc, char **argv)
{
	struct hw_err e;

	(void)argv;
	if (argc != 1)
		return print_usage_error();
	return serve_run(plugins, &e) < 0 ? print_error(&e) : 0;
}

static int command_help(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	fputs(usage, stdout);
	return 0;
}

static int command_version(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	puts("hawser-plugin " HAWSER_VERSION);
	return 0;
}

static const struct command {
	const char *name;
	int (*run)(int argc, char **argv);
} commands[] = {
	{ "list", command_list },	    { "install", command_install },
	{ "uninstall", command_uninstall }, { "rules", command_rules },
	{ "repair", command_repair },	    { "serve", command_serve },
	{ "--help", command_help },	    { "-h", command_help },
	{ "--version", command_version },
};

/* Prints a CNI error to standard output if a runtime called us, else a line to standard error. */
static int refuse_unknown(const char *name)
{
	AUTO(buf_done) struct buf names = { 0 };
	struct hw_err e;

	for (size_t i = 0; plugins[i]; i++)
		buf_printf(&names, "%s%s", i ? ", " : "", plugins[i]->name);
	err_cni(&e, HW_CNI_INTERNAL,
		"unknown plugin \"%s\": hawser-plugin " HAWSER_VERSION " has %s", name,
		str_or(names.data, "none"));
	if (!getenv("CNI_COMMAND"))
		return print_error(&e);
	autofree char *json = error_format(&e);
	fputs(json, stdout);
	return 1;
}

int main(int argc, char **argv)
{
	const char *name = argc > 0 ? basename(argv[0]) : "hawser-plugin";
	const struct hw_plugin *plugin = find_plugin(name);
	struct hw_err e;

	if (plugin)
		return program_main(argc, argv, plugin, plugins);
	if (argc < 2)
		return str_equal(name, "hawser-plugin") ? print_usage_error()
							: refuse_unknown(name);
	plugin = find_plugin(argv[1]);
	if (plugin)
		return program_main(argc - 1, argv + 1, plugin, plugins);
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		if (!str_equal(commands[i].name, argv[1]))
			continue;
		file_open_missing_stdio(O_RDWR);
		int status = commands[i].run(argc - 1, argv + 1);
		return file_flush_stdout(&e) < 0 ? print_error(&e) : status;
	}
	return refuse_unknown(argv[1]);
}
