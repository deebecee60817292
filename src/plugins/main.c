/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/main.c - hawser-plugin: all plugins in one binary
 *
 * What:  the plugin is chosen by the name under which the binary was started,
 *        or by its first argument; the rest are commands for people.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json/value.h"
#include "base/mem.h"
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
#include "plugins/pod/furniture.h"
#include "plugins/portmap/portmap.h"
#include "plugins/rules.h"
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
	"usage: hawser-plugin PLUGIN [--help]     run a plugin, or say what it is\n"
	"       hawser-plugin list [--json]       the plugins of this binary\n"
	"       hawser-plugin install DIR [--force]\n"
	"                                         copy it to DIR, with a link per plugin\n"
	"       hawser-plugin uninstall           remove what plugins have made and left: "
	"bridges,\n"
	"                                         nftables tables\n"
	"       hawser-plugin uninstall DIR       remove that copy and the links\n"
	"       hawser-plugin rules [--json]      what is in our nftables tables, and whose it is\n"
	"       hawser-plugin repair              put back what somebody has flushed from them\n"
	"       hawser-plugin --help | --version\n";

static int fail(const struct hw_err *e)
{
	fprintf(stderr, "hawser-plugin: %s\n", e->msg);
	return 1;
}

static int wrong_usage(void)
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

static int list_json(void)
{
	AUTO(value_free) struct value *list = value_new_array();

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
	autofree char *json = value_format(list, HW_JSON_PRETTY);
	puts(json);
	return 0;
}

static int command_list(int argc, char **argv)
{
	if (argc == 2 && str_equal(argv[1], "--json"))
		return list_json();
	if (argc != 1)
		return wrong_usage();
	for (size_t i = 0; plugins[i]; i++)
		printf("%-12s %s\n", plugins[i]->name, plugins[i]->summary);
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
			return wrong_usage();
		else
			dir = argv[i];
	}
	if (!dir)
		return wrong_usage();
	return install_into(dir, force, plugins, &e) < 0 ? fail(&e) : 0;
}

static int uninstall_furniture(void)
{
	struct hw_err e;

	int r = furniture_remove(firewall_furniture_remove, &e);
	if (r < 0)
		return fail(&e);
	int tables = rules_remove(&e);
	if (tables < 0)
		return fail(&e);
	if (r + tables == 0)
		puts("nothing to remove: the plugins have left nothing on the host");
	return 0;
}

static int command_uninstall(int argc, char **argv)
{
	struct hw_err e;

	if (argc > 2 || (argc == 2 && argv[1][0] == '-'))
		return wrong_usage();
	if (argc == 1)
		return uninstall_furniture();
	int r = install_remove(argv[1], &e);
	if (r < 0)
		return fail(&e);
	printf("%d link%s removed from %s\n", r, r == 1 ? "" : "s", argv[1]);
	return 0;
}

static int command_rules(int argc, char **argv)
{
	bool json = argc == 2 && str_equal(argv[1], "--json");
	struct hw_err e;

	if (argc != 1 && !json)
		return wrong_usage();
	return rules_list(plugins, json, &e) < 0 ? fail(&e) : 0;
}

static int command_repair(int argc, char **argv)
{
	struct hw_err e;

	(void)argv;
	if (argc != 1)
		return wrong_usage();
	int r = rules_repair(plugins, &e);
	if (r < 0)
		return fail(&e);
	printf("%d attachment%s looked after\n", r, r == 1 ? "" : "s");
	return 0;
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
	{ "list", command_list },
	{ "install", command_install },
	{ "uninstall", command_uninstall },
	{ "rules", command_rules },
	{ "repair", command_repair },
	{ "--help", command_help },
	{ "-h", command_help },
	{ "--version", command_version },
};

/* What was printed is said only now to have been lost. */
static int run_command(const struct command *command, int argc, char **argv)
{
	struct hw_err e;
	int status = command->run(argc, argv);

	if (fflush(stdout) == 0)
		return status;
	err_set(&e, -errno, "write to standard output");
	return fail(&e);
}

/* A runtime reads standard output, a person standard error. */
static int no_such_plugin(const char *name)
{
	AUTO(buf_done) struct buf there = { 0 };
	struct hw_err e;

	for (size_t i = 0; plugins[i]; i++)
		buf_printf(&there, "%s%s", i ? ", " : "", plugins[i]->name);
	err_cni(&e, HW_CNI_INTERNAL,
		"no plugin \"%s\" in hawser-plugin " HAWSER_VERSION "; it has %s", name,
		str_or(there.data, "none"));
	if (!getenv("CNI_COMMAND"))
		return fail(&e);
	autofree char *json = error_format(&e);
	fputs(json, stdout);
	return 1;
}

int main(int argc, char **argv)
{
	const char *name = argc > 0 ? basename(argv[0]) : "hawser-plugin";
	const struct hw_plugin *plugin = find_plugin(name);

	if (plugin)
		return program_main(argc, argv, plugin, plugins);
	if (argc < 2)
		return str_equal(name, "hawser-plugin") ? wrong_usage() : no_such_plugin(name);
	plugin = find_plugin(argv[1]);
	if (plugin)
		return program_main(argc - 1, argv + 1, plugin, plugins);
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		if (str_equal(commands[i].name, argv[1]))
			return run_command(&commands[i], argc - 1, argv + 1);
	return no_such_plugin(argv[1]);
}
