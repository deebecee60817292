/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/runtime/conf.c - network configurations
 *
 * What:  parses a network configuration, gives access to its parts, and
 *        formats the configuration that each plugin gets as input.
 * How:   a list is parsed key by key, because libcni has its own text for
 *        each error; a plugin object by a field table. The whole object is kept,
 *        because the plugin gets all of its keys.
 * Not:   conf-file.c reads files, name.c validates names, exec.c finds
 *        plugins.
 */
#include "cni/runtime/conf.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/json/field.h"
#include "base/str.h"
#include "cni/version.h"

#define IN_LIST	  "error parsing configuration list: "
#define IN_PLUGIN "error parsing configuration: "

/* ---- plugin objects ----------------------------------------------------------- */

static const struct hw_field plugin_fields[] = {
	{ "cniVersion", HW_STRING, HW_AT(struct conf_plugin, version) },
	{ "name", HW_STRING, HW_AT(struct conf_plugin, name) },
	{ "type", HW_STRING, HW_AT(struct conf_plugin, type) },
	{ "capabilities", HW_FLAGS, HW_AT(struct conf_plugin, capabilities) },
	{ 0 },
};

static void plugin_done(struct conf_plugin *plugin)
{
	hw_field_clear(plugin_fields, plugin);
	value_free(plugin->object);
	free(plugin->bytes);
}

int conf_add_plugin(struct hw_conf *conf, struct value *object, struct hw_err *e)
{
	struct conf_plugin plugin = { 0 };
	bool is_list;
	int r;

	r = field_decode(plugin_fields, object, &plugin, e);
	if (r < 0)
		return err_ctx(e, "error parsing configuration");
	if (str_empty(plugin.type)) {
		is_list = value_get(object, "plugins");
		plugin_done(&plugin);
		return err_text(e, -EINVAL, IN_PLUGIN "missing 'type'%s",
				is_list ? " ('plugins' found: is it a .conflist?)" : "");
	}
	plugin.object = value_ref(object);
	plugin.bytes = value_format(object, 0);
	conf->plugins = mem_resize(conf->plugins, conf->n_plugins + 1, sizeof(*conf->plugins));
	conf->plugins[conf->n_plugins++] = plugin;
	return 0;
}

int conf_fill_plugin(struct hw_conf *conf, const char *json, size_t len, struct hw_err *e)
{
	AUTO(value_free) struct value *object = NULL;
	int r;

	r = value_parse(json, len, &object, e);
	if (r < 0)
		return err_ctx(e, "error parsing configuration");
	conf->name = str_copy(str_or(value_string(value_find(object, "name")), ""));
	conf->bytes = str_ncopy(json, len);
	r = conf_add_plugin(conf, object, e);
	if (r < 0)
		return r;
	conf->version = str_copy(str_or(conf->plugins[0].version, ""));
	return 0;
}

/* ---- lists ---------------------------------------------------------------------- */

/* Sets *best to the version if it is supported and higher than *best. */
static int update_best_version(const char *version, const char **best, struct hw_err *e)
{
	int order, r;

	r = hw_version_compare(version, *best ? *best : VERSION_OLDEST, &order, e);
	if (r < 0)
		return r;
	if (version_family(version) != VERSION_FAMILY_NONE && (!*best || order > 0))
		*best = version;
	return 0;
}

/* Chooses the highest supported version from cniVersion and cniVersions, or cniVersion if none is
 * supported. */
static int choose_version(const struct value *versions, const char *version,
			  const char **ret_version, struct hw_err *e)
{
	const char *best = NULL;
	int r;

	for (size_t i = 0; i < value_count(versions); i++) {
		const struct value *entry = value_at(versions, i);

		if (value_kind(entry) != VALUE_STRING)
			return err_text(e, -EINVAL,
					IN_LIST "invalid type for cniVersions index %zu: "
						"expected a string, got %s",
					i, value_kind_name(value_kind(entry)));
		r = update_best_version(value_string(entry), &best, e);
		if (r < 0)
			return err_ctx(e, IN_LIST "invalid cniVersions entry %s at index %zu",
				       value_string(entry), i);
	}
	if (!str_empty(version)) {
		r = update_best_version(version, &best, e);
		if (r < 0)
			return err_ctx(e, IN_LIST "invalid cniVersion %s", version);
	}
	*ret_version = best ? best : version;
	return 0;
}

static int parse_list_version(const struct value *list, struct hw_conf *conf, struct hw_err *e)
{
	const struct value *single = value_get(list, "cniVersion");
	const struct value *several = value_get(list, "cniVersions");
	const char *version = "";
	int r;

	if (single && value_kind(single) != VALUE_STRING)
		return err_text(e, -EINVAL,
				IN_LIST "invalid cniVersion type: expected a string, got %s",
				value_kind_name(value_kind(single)));
	if (several && value_kind(several) != VALUE_ARRAY)
		return err_text(e, -EINVAL,
				IN_LIST "invalid type for cniVersions: expected an array, got %s",
				value_kind_name(value_kind(several)));
	if (single)
		version = value_string(single);
	if (several) {
		r = choose_version(several, version, &version, e);
		if (r < 0)
			return r;
	}
	conf->version = str_copy(version);
	return 0;
}

/* Upstream also accepts the strings "true" and "false". */
static int parse_list_flag(const struct value *list, const char *key, bool *ret_flag,
			   struct hw_err *e)
{
	const struct value *flag = value_get(list, key);
	const char *text;

	*ret_flag = flag && value_bool(flag);
	if (!flag || value_kind(flag) == VALUE_BOOL)
		return 0;
	text = value_string(flag);
	if (!text)
		return err_text(e, -EINVAL,
				IN_LIST "invalid type %s for %s, expected true or false",
				value_kind_name(value_kind(flag)), key);
	*ret_flag = strcasecmp(text, "true") == 0;
	if (*ret_flag || strcasecmp(text, "false") == 0)
		return 0;
	return err_text(e, -EINVAL, IN_LIST "invalid value \"%s\" for %s, expected true or false",
			text, key);
}

static int parse_list_plugins(const struct value *list, struct hw_conf *conf, struct hw_err *e)
{
	const struct value *plugins;
	int r;

	plugins = value_get(list, "plugins");
	if (!plugins && conf->only_inlined)
		return err_text(e, -EINVAL,
				IN_LIST "`loadOnlyInlinedPlugins` is true, and no 'plugins' key");
	if (!plugins)
		return 0;
	if (value_kind(plugins) != VALUE_ARRAY)
		return err_text(e, -EINVAL,
				IN_LIST "invalid 'plugins' type: expected an array, got %s",
				value_kind_name(value_kind(plugins)));
	if (value_count(plugins) == 0)
		return err_text(e, -EINVAL, IN_LIST "no plugins in list");
	for (size_t i = 0; i < value_count(plugins); i++) {
		r = conf_add_plugin(conf, value_at(plugins, i), e);
		if (r < 0)
			return err_ctx(e, "failed to parse plugin config %zu", i);
	}
	return 0;
}

int conf_fill_list(struct hw_conf *conf, const char *json, size_t len, struct hw_err *e)
{
	AUTO(value_free) struct value *list = NULL;
	const struct value *name;
	int r;

	r = value_parse(json, len, &list, e);
	if (r < 0)
		return err_ctx(e, "error parsing configuration list");
	if (value_kind(list) != VALUE_OBJECT)
		return err_text(e, -EINVAL, IN_LIST "expected an object, got %s",
				value_kind_name(value_kind(list)));
	conf->list = true;
	conf->bytes = str_ncopy(json, len);
	name = value_get(list, "name");
	if (!name)
		return err_text(e, -EINVAL, IN_LIST "no name");
	if (value_kind(name) != VALUE_STRING)
		return err_text(e, -EINVAL, IN_LIST "invalid name type: expected a string, got %s",
				value_kind_name(value_kind(name)));
	conf->name = str_copy(value_string(name));
	r = parse_list_version(list, conf, e);
	if (r < 0)
		return r;
	r = parse_list_flag(list, "disableCheck", &conf->disable_check, e);
	if (r < 0)
		return r;
	r = parse_list_flag(list, "disableGC", &conf->disable_gc, e);
	if (r < 0)
		return r;
	r = parse_list_flag(list, "loadOnlyInlinedPlugins", &conf->only_inlined, e);
	if (r < 0)
		return r;
	return parse_list_plugins(list, conf, e);
}

int conf_check_plugins(const struct hw_conf *conf, struct hw_err *e)
{
	if (conf->n_plugins == 0)
		return err_text(e, -EINVAL, "no plugin configs found for network \"%s\"",
				conf->name);
	return 0;
}

/* ---- construction --------------------------------------------------------------- */

struct hw_conf *conf_new(void)
{
	return mem_new(sizeof(struct hw_conf));
}

void hw_conf_free(struct hw_conf *conf)
{
	if (!conf)
		return;
	for (size_t i = 0; i < conf->n_plugins; i++)
		plugin_done(&conf->plugins[i]);
	free(conf->plugins);
	free(conf->name);
	free(conf->version);
	free(conf->file);
	free(conf->bytes);
	free(conf);
}

int hw_conf_parse(const char *json, size_t len, struct hw_conf **ret_conf, struct hw_err *e)
{
	AUTO(hw_conf_free) struct hw_conf *conf = conf_new();
	int r;

	r = conf_fill_list(conf, json, len, e);
	if (r < 0)
		return r;
	r = conf_check_plugins(conf, e);
	if (r < 0)
		return r;
	*ret_conf = take_ptr(conf);
	return 0;
}

int hw_conf_parse_plugin(const char *json, size_t len, struct hw_conf **ret_conf, struct hw_err *e)
{
	AUTO(hw_conf_free) struct hw_conf *conf = conf_new();
	int r;

	r = conf_fill_plugin(conf, json, len, e);
	if (r < 0)
		return r;
	*ret_conf = take_ptr(conf);
	return 0;
}

char *conf_list_text(const struct hw_conf *plugin)
{
	AUTO(value_free) struct value *list = value_new_object();
	struct value *plugins = value_new_array();

	value_append(plugins, value_ref(plugin->plugins[0].object));
	value_set(list, "cniVersion", value_new_string(plugin->version));
	value_set(list, "name", value_new_string(plugin->name));
	value_set(list, "plugins", plugins);
	return value_format(list, 0);
}

int hw_conf_to_list(const struct hw_conf *plugin, struct hw_conf **ret_list, struct hw_err *e)
{
	autofree char *text = NULL;

	if (plugin->list)
		return err_text(e, -EINVAL, "network \"%s\" is already a list", plugin->name);
	text = conf_list_text(plugin);
	return hw_conf_parse(text, strlen(text), ret_list, e);
}

/* ---- access ------------------------------------------------------------------------- */

const char *hw_conf_name(const struct hw_conf *conf)
{
	return conf->name;
}

const char *hw_conf_version(const struct hw_conf *conf)
{
	return conf->version;
}

const char *hw_conf_file(const struct hw_conf *conf)
{
	return conf->file;
}

const char *hw_conf_bytes(const struct hw_conf *conf)
{
	return conf->bytes;
}

bool hw_conf_is_list(const struct hw_conf *conf)
{
	return conf->list;
}

bool hw_conf_check_disabled(const struct hw_conf *conf)
{
	return conf->disable_check;
}

bool hw_conf_gc_disabled(const struct hw_conf *conf)
{
	return conf->disable_gc;
}

size_t hw_conf_count(const struct hw_conf *conf)
{
	return conf->n_plugins;
}

const char *hw_conf_type(const struct hw_conf *conf, size_t i)
{
	return i < conf->n_plugins ? conf->plugins[i].type : NULL;
}

const char *hw_conf_plugin(const struct hw_conf *conf, size_t i)
{
	return i < conf->n_plugins ? conf->plugins[i].bytes : NULL;
}

/* ---- a plugin's input ------------------------------------------------------------------- */

int conf_parse_object(const char *json, const char *what, struct value **ret_object,
		      struct hw_err *e)
{
	AUTO(value_free) struct value *v = NULL;
	int r;

	r = value_parse(json, strlen(json), &v, e);
	if (r < 0)
		return err_ctx(e, "%s", what);
	if (value_kind(v) != VALUE_OBJECT)
		return err_text(e, -EINVAL, "%s: expected an object, got %s", what,
				value_kind_name(value_kind(v)));
	*ret_object = take_ptr(v);
	return 0;
}

/* Sets runtimeConfig to the capability arguments that the plugin declares. If the caller
 * passes no such argument, a runtimeConfig of the configuration file stays, as in libcni. */
static int set_runtime_config(struct value *request, const struct conf_plugin *plugin,
			      const char *capability_args, struct hw_err *e)
{
	AUTO(value_free) struct value *args = NULL;
	AUTO(value_free) struct value *runtime = value_new_object();
	int r;

	if (!capability_args || plugin->capabilities.n == 0)
		return 0;
	r = conf_parse_object(capability_args, "capability arguments", &args, e);
	if (r < 0)
		return r;
	for (size_t i = 0; i < plugin->capabilities.n; i++) {
		struct value *arg = value_get(args, plugin->capabilities.v[i]);

		if (arg)
			value_set(runtime, plugin->capabilities.v[i], value_ref(arg));
	}
	if (value_count(runtime) > 0)
		value_set(request, "runtimeConfig", take_ptr(runtime));
	return 0;
}

int conf_request(const struct hw_conf *conf, size_t i, const struct conf_request *request,
		 char **ret_json, struct hw_err *e)
{
	const struct conf_plugin *plugin = &conf->plugins[i];
	AUTO(value_free) struct value *v = value_copy(plugin->object);
	int r;

	value_set(v, "name", value_new_string(conf->name));
	value_set(v, "cniVersion", value_new_string(conf->version));
	if (request->prev_result) {
		struct value *prev;

		r = value_parse(request->prev_result, strlen(request->prev_result), &prev, e);
		if (r < 0)
			return err_ctx(e, "previous result");
		value_set(v, "prevResult", prev);
	}
	r = set_runtime_config(v, plugin, request->capability_args, e);
	if (r < 0)
		return r;
	if (request->with_valid) {
		struct value *list = value_new_array();

		for (size_t j = 0; j < request->n_valid; j++) {
			struct value *entry = value_new_object();

			value_set(entry, "containerID",
				  value_new_string(request->valid[j].container_id));
			value_set(entry, "ifname", value_new_string(request->valid[j].ifname));
			value_append(list, entry);
		}
		/* the first key is that of the release candidates of spec 1.1.0 */
		value_set(v, "cni.dev/attachments", value_ref(list));
		value_set(v, "cni.dev/valid-attachments", list);
	}
	/* Keys are sorted as in libcni. Some plugins ignore case and use the last one of
	 * "CNIVersion" and "cniVersion": in this order, that is our cniVersion. */
	*ret_json = value_format(v, HW_JSON_SORTED);
	return 0;
}
