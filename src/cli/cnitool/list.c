/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/cnitool/list.c - list, validate and versions
 *
 * What:  shows the configured networks and the versions of plugins; changes
 *        nothing.
 * How:   each command fills a struct and prints it as text, or as JSON by
 *        a field table.
 */
#include "cli/cnitool/cnitool.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/table.h"
#include "cni/name.h"
#include "cni/runtime/conf.h"
#include "cni/version.h"

static struct {
	bool names;
} given;

static const struct option_entry list_options[] = {
	{ "names", .help = "print only the names of valid networks", .flag = &given.names },
	{ 0 },
};

/* ---- list ------------------------------------------------------------------------ */

struct network_info {
	char *name;
	char *version;
	struct hw_strings plugins;
	struct hw_strings capabilities;
	char *file;
	bool valid;
	char *error; /* NULL if the network is valid */
};

static const struct hw_field network_fields[] = {
	{ "name", HW_STRING, HW_AT(struct network_info, name), .flags = HW_ALWAYS },
	{ "cniVersion", HW_STRING, HW_AT(struct network_info, version), .flags = HW_ALWAYS },
	{ "plugins", HW_STRINGS, HW_AT(struct network_info, plugins), .flags = HW_ALWAYS },
	{ "capabilities", HW_STRINGS, HW_AT(struct network_info, capabilities) },
	{ "file", HW_STRING, HW_AT(struct network_info, file), .flags = HW_ALWAYS },
	{ "valid", HW_BOOL, HW_AT(struct network_info, valid), .flags = HW_ALWAYS },
	{ "error", HW_STRING, HW_AT(struct network_info, error) },
	{ 0 },
};

static const struct hw_field list_fields[] = {
	{ "networks", HW_LIST, 0, .flags = HW_ALWAYS, .sub = network_fields,
	  .size = sizeof(struct network_info) },
	{ 0 },
};

static void networks_done(struct hw_list *networks)
{
	hw_field_clear(list_fields, networks);
}

AUTO_VALUE_DEFINE(networks_done, struct hw_list);

static void fill_info(const struct hw_conf *conf, struct network_info *n)
{
	n->name = str_copy(hw_conf_name(conf));
	n->version = str_copy(version_or_oldest(hw_conf_version(conf)));
	for (size_t i = 0; i < hw_conf_count(conf); i++)
		strings_add(&n->plugins, hw_conf_type(conf, i));
}

/* Makes all checks that do not run a plugin.
 * @earlier: the networks that a search by name finds before this one */
static int check_network(const struct cli *t, const struct hw_list *earlier,
			 const struct network_info *n, struct hw_err *e)
{
	const struct network_info *others = earlier->v;
	int r;

	r = name_check_network(n->name, e);
	for (size_t i = 0; i < n->plugins.n && r >= 0; i++) {
		autofree char *path = NULL;

		r = hw_exec_find(NULL, n->plugins.v[i], (const char *const *)t->plugin_dirs.v,
				 &path, e);
	}
	for (size_t i = 0; i < earlier->n && r >= 0; i++)
		if (str_equal(others[i].name, n->name))
			r = err_text(e, -EEXIST, "hidden by the network of the same name in %s",
				     others[i].file);
	return r;
}

static void add_network(const struct cli *t, const char *file, struct hw_list *networks)
{
	AUTO(hw_conf_free) struct hw_conf *conf = NULL;
	struct network_info n = { .file = str_copy(file) };
	size_t len = strlen(file);
	struct hw_err why;
	int r;

	r = hw_conf_open(file, &conf, &why);
	if (r >= 0) {
		fill_info(conf, &n);
		r = check_network(t, networks, &n, &why);
	}
	n.valid = r >= 0;
	if (!n.valid) {
		/* The file name has its own column: remove it from the message. */
		bool has_file = str_starts(why.msg, file) && str_starts(why.msg + len, ": ");

		n.error = str_copy(has_file ? why.msg + len + strlen(": ") : why.msg);
	}
	networks->v = mem_resize(networks->v, networks->n + 1, sizeof(n));
	memcpy((struct network_info *)networks->v + networks->n++, &n, sizeof(n));
}

static char *join(const struct hw_strings *list)
{
	AUTO(buf_done) struct buf b = { 0 };

	for (size_t i = 0; i < list->n; i++)
		buf_printf(&b, "%s%s", i ? "," : "", list->v[i]);
	return buf_take(&b);
}

static void print_networks(const struct hw_list *networks)
{
	static const struct table_column columns[] = {
		{ "NETWORK" }, { "VERSION" }, { "PLUGINS" }, { "FILE" }, { "STATE" },
	};
	const struct network_info *v = networks->v;
	AUTO(table_done) struct table t = TABLE(columns);

	for (size_t i = 0; i < networks->n; i++) {
		table_add(&t, str_copy(str_or(v[i].name, "-")));
		table_add(&t, str_copy(str_or(v[i].version, "-")));
		table_add(&t, join(&v[i].plugins));
		table_add(&t, str_copy(v[i].file));
		table_add(&t, str_copy(v[i].valid ? "valid" : v[i].error));
	}
	if (networks->n > 0)
		table_print(&t, stdout);
}

static int list_networks(const struct cli *t, struct hw_list *networks, struct hw_err *e)
{
	/* in the order in which a search by name reads the files */
	static const char *const extensions[][3] = { { ".conflist" }, { ".conf", ".json" } };

	for (size_t i = 0; i < ARRAY_SIZE(extensions); i++) {
		AUTO(hw_strings_free) struct hw_strings files = { 0 };
		int r;

		r = hw_conf_files(t->conf_dir, extensions[i], &files, e);
		if (r < 0)
			return r;
		for (size_t j = 0; j < files.n; j++)
			add_network(t, files.v[j], networks);
	}
	return 0;
}

static void add_valid_names(const struct hw_list *networks, struct hw_strings *names)
{
	const struct network_info *v = networks->v;

	for (size_t i = 0; i < networks->n; i++)
		if (v[i].valid)
			strings_add(names, v[i].name);
}

static int run_list(struct cli *t, char **args, struct hw_err *e)
{
	AUTO(networks_done) struct hw_list networks = { 0 };
	AUTO(hw_strings_free) struct hw_strings names = { 0 };
	int r;

	(void)args;
	r = list_networks(t, &networks, e);
	if (r < 0)
		return r;
	if (t->json)
		return tool_print(hw_field_encode(list_fields, &networks, HW_JSON_PRETTY), e);
	if (given.names) {
		add_valid_names(&networks, &names);
		for (size_t i = 0; i < names.n; i++)
			puts(names.v[i]);
		return 0;
	}
	print_networks(&networks);
	if (networks.n == 0)
		fprintf(stderr, "cnitool: no networks found in %s\n", t->conf_dir);
	return 0;
}

const struct command list_command = {
	.name = "list",
	.args = "",
	.run = run_list,
	.summary = "list the configured networks",
	.help = "Shows version, plugins and file of each network, and the error of each invalid "
		"one.\n\n"
		"examples:\n"
		"  cnitool list\n"
		"  cnitool list --json | jq '.networks[] | select(.valid)'\n",
	.options = list_options,
};

int complete_networks(struct cli *t, const char *word, struct hw_strings *words, struct hw_err *e)
{
	AUTO(networks_done) struct hw_list networks = { 0 };
	int r;

	(void)word;
	tool_split_path(t);
	r = list_networks(t, &networks, e);
	add_valid_names(&networks, words);
	return r;
}

/* ---- validate ---------------------------------------------------------------------- */

static char *format_valid(const struct network_info *n)
{
	autofree char *capabilities = join(&n->capabilities);
	autofree char *plugins = join(&n->plugins);

	return str_printf("network \"%s\" (%s) is valid: version %s, plugins %s%s%s", n->name,
			  n->file, n->version, plugins, *capabilities ? ", capabilities " : "",
			  capabilities);
}

static int run_validate(struct cli *t, char **args, struct hw_err *e)
{
	struct network_info n = { .valid = true };
	char *text;
	int r;

	r = tool_load(t, args[0], e);
	if (r < 0)
		return r;
	r = hw_validate(t->cni, t->conf, NULL, &n.capabilities, e);
	if (r < 0)
		return r;
	fill_info(t->conf, &n);
	n.file = str_copy(hw_conf_file(t->conf));
	text = t->json ? hw_field_encode(network_fields, &n, HW_JSON_PRETTY) : format_valid(&n);
	hw_field_clear(network_fields, &n);
	return tool_print(text, e);
}

const struct command validate_command = {
	.name = "validate",
	.args = "NETWORK",
	.min_args = 1,
	.max_args = 1,
	.run = run_validate,
	.summary = "check the plugins of a network",
	.help = "Checks that every plugin is installed and supports the network's version. Runs "
		"the\n"
		"plugins with VERSION; nothing is attached.\n\n"
		"examples:\n"
		"  cnitool validate demo\n",
};

/* ---- versions ---------------------------------------------------------------------- */

struct plugin_info {
	char *type;
	struct hw_strings versions;
};

static const struct hw_field plugin_fields[] = {
	{ "type", HW_STRING, HW_AT(struct plugin_info, type) },
	{ "versions", HW_STRINGS, HW_AT(struct plugin_info, versions), .flags = HW_ALWAYS },
	{ 0 },
};

static const struct hw_field plugins_fields[] = {
	{ "plugins", HW_LIST, 0, .flags = HW_ALWAYS, .sub = plugin_fields,
	  .size = sizeof(struct plugin_info) },
	{ 0 },
};

static void plugins_done(struct hw_list *plugins)
{
	hw_field_clear(plugins_fields, plugins);
}

AUTO_VALUE_DEFINE(plugins_done, struct hw_list);

static int add_versions(const struct cli *t, const char *type, struct hw_list *plugins,
			struct hw_err *e)
{
	struct plugin_info p = { 0 };
	int r;

	r = hw_plugin_versions(t->cni, type, &p.versions, e);
	if (r < 0)
		return r;
	p.type = str_copy(type);
	plugins->v = mem_resize(plugins->v, plugins->n + 1, sizeof(p));
	memcpy((struct plugin_info *)plugins->v + plugins->n++, &p, sizeof(p));
	return 0;
}

/* @name: a plugin or a network; if both exist, the plugin is used */
static int find_versions(struct cli *t, const char *name, struct hw_list *plugins, struct hw_err *e)
{
	const char *const *dirs = (const char *const *)t->plugin_dirs.v;
	autofree char *path = NULL;
	struct hw_err no_plugin, no_network;
	int r = 0;

	t->name_plugin = true;
	if (hw_exec_find(NULL, name, dirs, &path, &no_plugin) >= 0)
		return add_versions(t, name, plugins, e);
	if (hw_conf_load(t->conf_dir, name, &t->conf, &no_network) < 0)
		return err_text(e, -ENOENT, "%.900s, and %.900s", no_plugin.msg, no_network.msg);
	t->network = name;
	for (size_t i = 0; i < hw_conf_count(t->conf) && r >= 0; i++)
		r = add_versions(t, hw_conf_type(t->conf, i), plugins, e);
	return r;
}

static int run_versions(struct cli *t, char **args, struct hw_err *e)
{
	AUTO(plugins_done) struct hw_list plugins = { 0 };
	const struct plugin_info *v;
	int r;

	r = find_versions(t, args[0], &plugins, e);
	if (r < 0)
		return r;
	if (t->json)
		return tool_print(hw_field_encode(plugins_fields, &plugins, HW_JSON_PRETTY), e);
	v = plugins.v;
	for (size_t i = 0; i < plugins.n; i++) {
		printf("%s:", v[i].type);
		for (size_t j = 0; j < v[i].versions.n; j++)
			printf(" %s", v[i].versions.v[j]);
		putchar('\n');
	}
	return 0;
}

const struct command versions_command = {
	.name = "versions",
	.args = "PLUGIN|NETWORK",
	.min_args = 1,
	.max_args = 1,
	.run = run_versions,
	.summary = "print the CNI versions that a plugin supports",
	.help = "For a network, prints the versions of each of its plugins.\n\n"
		"examples:\n"
		"  cnitool versions bridge\n",
};
