/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/runtime/conf.c - a network's configuration
 *
 * What:  make a struct hw_conf from text, say what is in it, and write what
 *        each of its plugins gets as input.
 * How:   a list is read key by key, since libcni's texts name each fault; a
 *        plugin object by a table, and kept whole for its plugin.
 * Rules: the conf_fill_ functions fill an empty struct and leave it half
 *        filled on failure: hw_conf_free() takes that too.
 * Not:   conf-file.c reads files, name.c checks names, exec.c finds
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

/* ---- one plugin -------------------------------------------------------------- */

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

/** conf_add_plugin() - append a plugin by its object, which is borrowed */
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
				is_list ? " (it has 'plugins': is it a .conflist?)" : "");
	}
	plugin.object = value_ref(object);
	plugin.bytes = value_format(object, 0);
	conf->plugins = mem_resize(conf->plugins, conf->n_plugins + 1, sizeof(*conf->plugins));
	conf->plugins[conf->n_plugins++] = plugin;
	return 0;
}

/** conf_fill_plugin() - fill from a single plugin's text */
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

/* ---- a list ------------------------------------------------------------------- */

static int list_name(const struct value *list, struct hw_conf *conf, struct hw_err *e)
{
	const struct value *name = value_get(list, "name");

	if (!name)
		return err_text(e, -EINVAL, IN_LIST "no name");
	if (value_kind(name) != VALUE_STRING)
		return err_text(e, -EINVAL, IN_LIST "invalid name type: %s, want a string",
				value_kind_name(value_kind(name)));
	conf->name = str_copy(value_string(name));
	return 0;
}

/* Takes the version when it is one of ours and above the one that we have. */
static int prefer_version(const char *version, const char **best, struct hw_err *e)
{
	int order, r;

	r = hw_version_compare(version, *best ? *best : VERSION_OLDEST, &order, e);
	if (r < 0)
		return r;
	if (version_family(version) != VERSION_FAMILY_NONE && (!*best || order > 0))
		*best = version;
	return 0;
}

/* The highest of cniVersion and cniVersions that we implement, else cniVersion as it is. */
static int list_choose_version(const struct value *versions, const char *version,
			       const char **ret_version, struct hw_err *e)
{
	const char *best = NULL;
	int r;

	for (size_t i = 0; i < value_count(versions); i++) {
		const struct value *entry = value_at(versions, i);

		if (value_kind(entry) != VALUE_STRING)
			return err_text(e, -EINVAL,
					IN_LIST "invalid type for cniVersions index %zu: %s, "
						"want a string",
					i, value_kind_name(value_kind(entry)));
		r = prefer_version(value_string(entry), &best, e);
		if (r < 0)
			return err_ctx(e, IN_LIST "invalid cniVersions entry %s at index %zu",
				       value_string(entry), i);
	}
	if (!str_empty(version)) {
		r = prefer_version(version, &best, e);
		if (r < 0)
			return err_ctx(e, IN_LIST "invalid cniVersion %s", version);
	}
	*ret_version = best ? best : version;
	return 0;
}

static int list_version(const struct value *list, struct hw_conf *conf, struct hw_err *e)
{
	const struct value *one = value_get(list, "cniVersion");
	const struct value *several = value_get(list, "cniVersions");
	const char *version = "";
	int r;

	if (one && value_kind(one) != VALUE_STRING)
		return err_text(e, -EINVAL, IN_LIST "invalid cniVersion type: %s, want a string",
				value_kind_name(value_kind(one)));
	if (several && value_kind(several) != VALUE_ARRAY)
		return err_text(e, -EINVAL, IN_LIST "invalid type for cniVersions: %s, want a list",
				value_kind_name(value_kind(several)));
	if (one)
		version = value_string(one);
	if (several) {
		r = list_choose_version(several, version, &version, e);
		if (r < 0)
			return r;
	}
	conf->version = str_copy(version);
	return 0;
}

/* Upstream takes "true" and "false" as text, too. */
static int list_flag(const struct value *list, const char *key, bool *ret_flag, struct hw_err *e)
{
	const struct value *flag = value_get(list, key);
	const char *text;

	*ret_flag = flag && value_bool(flag);
	if (!flag || value_kind(flag) == VALUE_BOOL)
		return 0;
	text = value_string(flag);
	if (!text)
		return err_text(e, -EINVAL, IN_LIST "invalid type %s for %s, want true or false",
				value_kind_name(value_kind(flag)), key);
	*ret_flag = strcasecmp(text, "true") == 0;
	if (*ret_flag || strcasecmp(text, "false") == 0)
		return 0;
	return err_text(e, -EINVAL, IN_LIST "invalid value \"%s\" for %s, want true or false", text,
			key);
}

static int list_flags(const struct value *list, struct hw_conf *conf, struct hw_err *e)
{
	const struct {
		const char *key;
		bool *flag;
	} flags[] = {
		{ "disableCheck", &conf->disable_check },
		{ "disableGC", &conf->disable_gc },
		{ "loadOnlyInlinedPlugins", &conf->only_inlined },
	};
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		r = list_flag(list, flags[i].key, flags[i].flag, e);
		if (r < 0)
			return r;
	}
	return 0;
}

static int list_plugins(const struct value *list, struct hw_conf *conf, struct hw_err *e)
{
	const struct value *plugins = value_get(list, "plugins");
	int r;

	if (!plugins && conf->only_inlined)
		return err_text(e, -EINVAL,
				IN_LIST "`loadOnlyInlinedPlugins` is true, and no 'plugins' key");
	if (!plugins)
		return 0;
	if (value_kind(plugins) != VALUE_ARRAY)
		return err_text(e, -EINVAL, IN_LIST "invalid 'plugins' type: %s, want a list",
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

/** conf_fill_list() - fill from a list's text; plugins in files of their own come later */
int conf_fill_list(struct hw_conf *conf, const char *json, size_t len, struct hw_err *e)
{
	static int (*const steps[])(const struct value *, struct hw_conf *, struct hw_err *) = {
		list_name,
		list_version,
		list_flags,
		list_plugins,
	};
	AUTO(value_free) struct value *list = NULL;
	int r;

	r = value_parse(json, len, &list, e);
	if (r < 0)
		return err_ctx(e, "error parsing configuration list");
	if (value_kind(list) != VALUE_OBJECT)
		return err_text(e, -EINVAL, IN_LIST "%s, want an object",
				value_kind_name(value_kind(list)));
	conf->list = true;
	conf->bytes = str_ncopy(json, len);
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		r = steps[i](list, conf, e);
		if (r < 0)
			return r;
	}
	return 0;
}

/** conf_check_plugins() - a network without plugins is none */
int conf_check_plugins(const struct hw_conf *conf, struct hw_err *e)
{
	if (conf->n_plugins == 0)
		return err_text(e, -EINVAL, "no plugin configs found for network \"%s\"",
				conf->name);
	return 0;
}

/* ---- from text ------------------------------------------------------------------ */

/** conf_new() - an empty configuration, to be filled */
struct hw_conf *conf_new(void)
{
	return mem_new(sizeof(struct hw_conf));
}

/**
 * hw_conf_free() - end a configuration
 * @conf: may be NULL
 */
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

/**
 * hw_conf_parse() - a list from text
 * @json: @len bytes
 *
 * Return: 0, or a negative errno; a list without plugins is one
 */
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

/**
 * hw_conf_parse_plugin() - a single plugin's configuration from text
 */
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

/** conf_list_text() - the text of a list of one, as libcni makes it of a single plugin */
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

/**
 * hw_conf_to_list() - wrap a single plugin into a list of one
 * @plugin: of hw_conf_parse_plugin()
 */
int hw_conf_to_list(const struct hw_conf *plugin, struct hw_conf **ret_list, struct hw_err *e)
{
	autofree char *text = NULL;

	if (plugin->list)
		return err_text(e, -EINVAL, "network \"%s\" is a list already", plugin->name);
	text = conf_list_text(plugin);
	return hw_conf_parse(text, strlen(text), ret_list, e);
}

/* ---- what it says ------------------------------------------------------------------- */

/** hw_conf_name() - the network's name; "" when it has none */
const char *hw_conf_name(const struct hw_conf *conf)
{
	return conf->name;
}

/** hw_conf_version() - the spec version as chosen; "" when not given */
const char *hw_conf_version(const struct hw_conf *conf)
{
	return conf->version;
}

/** hw_conf_file() - where it was read; NULL when not from a file */
const char *hw_conf_file(const struct hw_conf *conf)
{
	return conf->file;
}

/** hw_conf_bytes() - the text it was made from */
const char *hw_conf_bytes(const struct hw_conf *conf)
{
	return conf->bytes;
}

/** hw_conf_is_list() - a list, or a single plugin? */
bool hw_conf_is_list(const struct hw_conf *conf)
{
	return conf->list;
}

/** hw_conf_check_disabled() - does disableCheck make CHECK a silent success? */
bool hw_conf_check_disabled(const struct hw_conf *conf)
{
	return conf->disable_check;
}

/** hw_conf_gc_disabled() - does disableGC make GC a silent success? */
bool hw_conf_gc_disabled(const struct hw_conf *conf)
{
	return conf->disable_gc;
}

/** hw_conf_count() - how many plugins it has */
size_t hw_conf_count(const struct hw_conf *conf)
{
	return conf->n_plugins;
}

/** hw_conf_type() - plugin i's type; NULL beyond the last */
const char *hw_conf_type(const struct hw_conf *conf, size_t i)
{
	return i < conf->n_plugins ? conf->plugins[i].type : NULL;
}

/** hw_conf_plugin() - plugin i's JSON text; NULL beyond the last */
const char *hw_conf_plugin(const struct hw_conf *conf, size_t i)
{
	return i < conf->n_plugins ? conf->plugins[i].bytes : NULL;
}

/* ---- what a plugin gets ---------------------------------------------------------------- */

static int request_prev(struct value *request, const char *prev_result, struct hw_err *e)
{
	struct value *prev;
	int r;

	if (!prev_result)
		return 0;
	r = value_parse(prev_result, strlen(prev_result), &prev, e);
	if (r < 0)
		return err_ctx(e, "previous result");
	value_set(request, "prevResult", prev);
	return 0;
}

/**
 * conf_parse_object() - text that a caller gives for an object
 * @json: the text
 * @what: what it is, for messages
 */
int conf_parse_object(const char *json, const char *what, struct value **ret_object,
		      struct hw_err *e)
{
	AUTO(value_free) struct value *v = NULL;
	int r;

	r = value_parse(json, strlen(json), &v, e);
	if (r < 0)
		return err_ctx(e, "%s", what);
	if (value_kind(v) != VALUE_OBJECT)
		return err_text(e, -EINVAL, "%s: %s, want an object", what,
				value_kind_name(value_kind(v)));
	*ret_object = take_ptr(v);
	return 0;
}

/* Of the capability arguments, those that the plugin declares; none leave runtimeConfig alone. */
static int request_runtime(struct value *request, const struct conf_plugin *plugin,
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

/* Under both keys: the spec's, and the one that the release candidates of 1.1.0 had. */
static void request_valid(struct value *request, const struct hw_valid *valid, size_t n_valid)
{
	struct value *list = value_new_array();

	for (size_t i = 0; i < n_valid; i++) {
		struct value *entry = value_new_object();

		value_set(entry, "containerID", value_new_string(valid[i].container_id));
		value_set(entry, "ifname", value_new_string(valid[i].ifname));
		value_append(list, entry);
	}
	value_set(request, "cni.dev/attachments", value_ref(list));
	value_set(request, "cni.dev/valid-attachments", list);
}

/**
 * conf_request() - the configuration that plugin i gets on its standard input
 * @conf:    the network
 * @request: what to put into it
 *
 * Keys are sorted, as libcni's are: a plugin that folds case and takes the last
 * of "CNIVersion" and "cniVersion" must see ours.
 */
int conf_request(const struct hw_conf *conf, size_t i, const struct conf_request *request,
		 char **ret_json, struct hw_err *e)
{
	const struct conf_plugin *plugin = &conf->plugins[i];
	AUTO(value_free) struct value *v = value_copy(plugin->object);
	int r;

	value_set(v, "name", value_new_string(conf->name));
	value_set(v, "cniVersion", value_new_string(conf->version));
	r = request_prev(v, request->prev_result, e);
	if (r < 0)
		return r;
	r = request_runtime(v, plugin, request->capability_args, e);
	if (r < 0)
		return r;
	if (request->with_valid)
		request_valid(v, request->valid, request->n_valid);
	*ret_json = value_format(v, HW_JSON_SORTED);
	return 0;
}
