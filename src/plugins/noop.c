/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/noop.c - plugin noop: upstream's test plugin
 *
 * What:  a debug file contains the reply to send; the plugin sends it and writes
 *        the arguments of the call to the same file. DEBUG in CNI_ARGS, or
 *        debugFile in the configuration, names the file. Without a file the reply
 *        is {}.
 * How:   ADD, DEL, CHECK, GC and STATUS share one function.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json/field.h"
#include "base/json/value.h"
#include "base/mem.h"
#include "base/os/file.h"
#include "base/str.h"
#include "cni/plugin/skel.h"
#include "cni/result.h"
#include "cni/runtime/conf.h"
#include "plugins/plugins.h"

#define DEBUG_MAX (4 << 20)

struct noop_conf {
	char *debug_file;
	char *command_log;
};

static const struct hw_field noop_fields[] = {
	{ "debugFile", HW_STRING, HW_AT(struct noop_conf, debug_file),
	  .help = "the debug file: contains the reply to send; the plugin writes the arguments of "
		  "the call to it; DEBUG in CNI_ARGS takes precedence" },
	{ "commandLog", HW_STRING, HW_AT(struct noop_conf, command_log),
	  .help = "a file that contains a JSON list; the plugin appends each call to it" },
	{ 0 },
};

static const char *const noop_versions[] = { "0.-42.0", "0.1.0", "0.2.0", "0.3.0", "0.3.1",
					     "0.4.0",	"1.0.0", "1.1.0", NULL };

/* Content of the debug file. The keys and their order are those of upstream. */
struct noop_debug {
	char *result;
	char *error;
	int error_code;
	char *stderr_text;
	bool has_versions;
	struct hw_strings versions;
	int exit_code;
	char *command;
	char *args; /* JSON */
};

static const struct hw_field debug_fields[] = {
	{ "ReportResult", HW_STRING, HW_AT(struct noop_debug, result), HW_ALWAYS },
	{ "ReportError", HW_STRING, HW_AT(struct noop_debug, error), HW_ALWAYS },
	{ "ReportErrorCode", HW_INT, HW_AT(struct noop_debug, error_code), HW_ALWAYS },
	{ "ReportStderr", HW_STRING, HW_AT(struct noop_debug, stderr_text), HW_ALWAYS },
	{ "ReportVersionSupport", HW_STRINGS, HW_AT(struct noop_debug, versions),
	  .has = HW_HAS(struct noop_debug, has_versions) },
	{ "ExitWithCode", HW_INT, HW_AT(struct noop_debug, exit_code), HW_ALWAYS },
	{ "Command", HW_STRING, HW_AT(struct noop_debug, command), HW_ALWAYS },
	{ "CmdArgs", HW_JSON, HW_AT(struct noop_debug, args) },
	{ 0 },
};

static void debug_done(struct noop_debug *d)
{
	hw_field_clear(debug_fields, d);
}
AUTO_VALUE_DEFINE(debug_done, struct noop_debug);

static int read_debug(const char *path, struct noop_debug *ret, struct hw_err *e)
{
	AUTO(buf_done) struct buf b = { 0 };
	int r;

	r = file_read(AT_FDCWD, path, DEBUG_MAX, &b, e);
	if (r < 0)
		return r;
	r = hw_field_decode(debug_fields, str_or(b.data, ""), b.len, ret, e);
	return r < 0 ? err_ctx(e, "%s", path) : 0;
}

/* Encodes the arguments of the call like upstream encodes its struct skel.CmdArgs. */
static struct value *encode_cmd_args(const struct hw_call *call)
{
	struct value *v = value_new_object();
	autofree char *input = base64_encode(call->input, call->input_len);

	value_set(v, "ContainerID", value_new_string(call->container_id));
	value_set(v, "Netns", value_new_string(call->netns));
	value_set(v, "IfName", value_new_string(call->ifname));
	value_set(v, "Args", value_new_string(call->args));
	value_set(v, "Path", value_new_string(call->path));
	value_set(
		v, "NetnsOverride",
		value_new_string(str_or(((struct skel_frame *)call)->request->netns_override, "")));
	value_set(v, "StdinData", value_new_string(input));
	return v;
}

static int log_command(const char *path, const struct hw_call *call, struct hw_err *e)
{
	AUTO(value_free) struct value *list = NULL;
	AUTO(buf_done) struct buf b = { 0 };
	int r;

	r = file_read(AT_FDCWD, path, DEBUG_MAX, &b, e);
	if (r < 0)
		return r;
	r = b.len ? value_parse(b.data, b.len, &list, e) : 0;
	if (r < 0)
		return err_ctx(e, "%s", path);
	if (!list)
		list = value_new_array();
	if (value_kind(list) != VALUE_ARRAY)
		return err_text(e, -EINVAL, "%s: expected a list, got %s", path,
				value_kind_name(value_kind(list)));
	struct value *entry = value_new_object();
	value_set(entry, "Command", value_new_string(call->command));
	value_set(entry, "CmdArgs", encode_cmd_args(call));
	value_append(list, entry);
	autofree char *json = value_format(list, 0);
	return file_replace(AT_FDCWD, path, json, strlen(json), 0600, 0, e);
}

/* Gets the value of DEBUG in CNI_ARGS. @ret_path: unchanged if there is no DEBUG */
static int find_debug_argument(const char *args, char **ret_path, struct hw_err *e)
{
	AUTO(hw_strings_free) struct hw_strings pairs = { 0 };

	if (!str_empty(args))
		strings_split(args, ';', &pairs);
	for (size_t i = 0; i < pairs.n; i++) {
		AUTO(hw_strings_free) struct hw_strings kv = { 0 };

		strings_split(pairs.v[i], '=', &kv);
		if (kv.n != 2) {
			AUTO(buf_done) struct buf words = { 0 };
			for (size_t w = 0; w < kv.n; w++)
				buf_printf(&words, "%s%s", w ? " " : "", kv.v[w]);
			return err_text(e, -EINVAL, "CNI_ARGS invalid key/value pair: [%s]",
					words.data);
		}
		if (!str_equal(kv.v[0], "DEBUG"))
			continue;
		free(*ret_path);
		*ret_path = str_copy(kv.v[1]);
	}
	return 0;
}

/* Sets the reply that the debug file asks for: a result, an error, or the previous result in the
 * configuration's CNI version (PASSTHROUGH). INJECT-DNS is like PASSTHROUGH, but replaces the
 * name servers. */
static int set_reply(struct hw_call *call, const struct noop_debug *d, struct hw_err *e)
{
	const char *reply = str_or(d->result, "");
	bool inject_dns = str_equal(reply, "INJECT-DNS");
	AUTO(hw_result_free) struct hw_result *result = NULL;

	fputs(str_or(d->stderr_text, ""), stderr);
	if (!str_empty(d->error))
		return err_cni(e, d->error_code ? d->error_code : HW_CNI_INTERNAL, "%s", d->error);
	if (d->exit_code > 0)
		call->exit_status = d->exit_code;
	if (!inject_dns && !str_equal(reply, "PASSTHROUGH")) {
		call->reply = str_copy(reply);
		return 0;
	}
	if (!call->prev)
		return err_text(e, -EINVAL, "no prevResult to pass through");
	result = hw_result_copy(call->prev);
	if (inject_dns) {
		hw_strings_free(&result->dns.nameservers);
		strings_add(&result->dns.nameservers, "1.2.3.4");
	}
	if (hw_result_format(result, call->version, 0, &call->reply, e) < 0)
		return err_ctx(e, "failed to convert result to config \"%s\"", call->version);
	return 0;
}

static int noop_call(struct hw_call *call, struct hw_err *e)
{
	const struct noop_conf *conf = call->conf;
	AUTO(debug_done) struct noop_debug debug = { 0 };
	autofree char *argument = NULL;
	int r;

	r = find_debug_argument(call->args, &argument, e);
	if (r < 0)
		return r;
	const char *path = argument ? argument : str_or(conf->debug_file, "");
	if (str_empty(path)) {
		fputs("CNI_ARGS or config empty, no debug behavior\n", stderr);
		call->reply = str_copy("{}");
		return 0;
	}
	r = read_debug(path, &debug, e);
	if (r < 0)
		return r;

	/* Write the arguments of the call to the debug file. */
	AUTO(value_free) struct value *args = encode_cmd_args(call);
	free(debug.command);
	debug.command = str_copy(call->command);
	free(debug.args);
	debug.args = value_format(args, 0);
	autofree char *json = hw_field_encode(debug_fields, &debug, 0);
	r = file_replace(AT_FDCWD, path, json, strlen(json), 0600, 0, e);
	if (r < 0)
		return r;
	if (!str_empty(conf->command_log)) {
		r = log_command(conf->command_log, call, e);
		if (r < 0)
			return r;
	}
	return set_reply(call, &debug, e);
}

/* The undo of a failed ADD does nothing: ADD creates nothing, and the debug file must not show a
 * DEL that the test did not call. */
static int noop_del(struct hw_call *call, struct hw_err *e)
{
	return str_equal(call->command, "ADD") ? 0 : noop_call(call, e);
}

static int noop_version(struct hw_call *call, struct hw_err *e)
{
	AUTO(debug_done) struct noop_debug debug = { 0 };
	autofree char *path = NULL;
	int r;

	r = find_debug_argument(call->args, &path, e);
	if (r >= 0 && path)
		r = read_debug(path, &debug, e);
	if (r < 0)
		return r;
	if (debug.has_versions)
		call->reply =
			skel_version_reply((const char *const *)debug.versions.v, debug.versions.n);
	else
		call->reply = skel_version_reply(noop_versions, ARRAY_SIZE(noop_versions) - 1);
	return 0;
}

const struct hw_plugin noop_plugin = {
	.size = sizeof(struct hw_plugin),
	.name = "noop",
	.summary = "does nothing; for tests: sends the reply that a debug file contains",
	.add = noop_call,
	.del = noop_del,
	.check = noop_call,
	.gc = noop_call,
	.status = noop_call,
	.version = noop_version,
	.versions = noop_versions,
	.fields = noop_fields,
	.conf_size = sizeof(struct noop_conf),
};
