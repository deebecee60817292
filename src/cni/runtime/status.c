/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/runtime/status.c - STATUS, VERSION and validation of a network
 *
 * What:  libcni's GetStatusNetworkList, GetVersionInfo and ValidateNetworkList.
 *        None of them changes anything.
 */
#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "base/time.h"
#include "cni/runtime/cni.h"
#include "cni/runtime/exec.h"
#include "cni/runtime/run.h"
#include "cni/version.h"

int hw_status(const struct hw_cni *cni, const struct hw_conf *conf, struct hw_err *e)
{
	const struct conf_request request = { 0 };
	AUTO(run_done) struct run run = { 0 };
	int r;

	if (!version_at_least(conf->version, "1.1.0"))
		return 0;
	r = run_init(&run, cni, conf, NULL, e);
	for (size_t i = 0; r >= 0 && i < conf->n_plugins; i++) {
		autofree char *output = NULL;
		size_t len;

		r = run_plugin(&run, i, "STATUS", &request, &output, &len, e);
	}
	return r < 0 ? r : 0;
}

/* ---- VERSION ---------------------------------------------------------------------- */

struct version_reply {
	char *version;
	struct hw_strings supported;
};

static const struct hw_field version_fields[] = {
	{ "cniVersion", HW_STRING, HW_AT(struct version_reply, version) },
	{ "supportedVersions", HW_STRINGS, HW_AT(struct version_reply, supported) },
	{ 0 },
};

static int parse_version_reply(const char *json, size_t len, struct hw_strings *ret_versions,
			       struct hw_err *e)
{
	struct version_reply reply = { 0 };
	int r;

	r = hw_field_decode(version_fields, json, len, &reply, e);
	if (r < 0)
		return err_ctx(e, "decoding version info");
	if (str_empty(reply.version)) {
		r = err_text(e, -EINVAL, "decoding version info: missing field cniVersion");
	} else if (reply.supported.n > 0) {
		*ret_versions = reply.supported;
		reply.supported = (struct hw_strings){ 0 };
	} else if (str_equal(reply.version, "0.2.0")) { /* spec 0.2.0: the list is optional */
		*ret_versions = (struct hw_strings){ 0 };
		strings_add(ret_versions, "0.1.0");
		strings_add(ret_versions, "0.2.0");
	} else {
		r = err_text(e, -EINVAL, "decoding version info: missing field supportedVersions");
	}
	hw_field_clear(version_fields, &reply);
	return r;
}

static int plugin_versions(const struct hw_cni *cni, const char *plugin, int64_t deadline,
			   struct hw_strings *ret_versions, struct hw_err *e)
{
	static const char input[] = "{\"cniVersion\":\"" VERSION_NEWEST "\"}";
	struct exec_call call = {
		.exec = &cni->exec,
		/* plugins of spec 0.1.0 require these variables */
		.env = { "VERSION", "", .netns = "dummy", .ifname = "dummy", .args = "",
			 .path = "dummy" },
		.input = input,
		.input_len = strlen(input),
		.stderr_mode = cni->stderr_mode,
		.cancel_fd = cni->cancel_fd,
		.deadline = deadline,
	};
	autofree char *output = NULL;
	autofree char *path = NULL;
	size_t len;
	int r;

	r = exec_find(&cni->exec, plugin, (const char *const *)cni->plugin_dirs, &path, e);
	if (r < 0)
		return r;
	call.plugin = path;
	r = exec_call(&call, &output, &len, e);
	if (r < 0 && str_equal(e->msg, "unknown CNI_COMMAND: VERSION") && !*e->details) {
		*ret_versions = (struct hw_strings){ 0 };
		strings_add(ret_versions, VERSION_OLDEST);
		return 0;
	}
	return r < 0 ? r : parse_version_reply(output, len, ret_versions, e);
}

int hw_plugin_versions(const struct hw_cni *cni, const char *plugin,
		       struct hw_strings *ret_versions, struct hw_err *e)
{
	return plugin_versions(cni, plugin, time_deadline(cni->timeout_ms), ret_versions, e);
}

/* ---- validation --------------------------------------------------------------------- */

/* Checks all plugins. The errors of a list are joined in brackets, as in libcni. */
static int validate_plugins(const struct hw_cni *cni, const struct hw_conf *conf, struct hw_err *e)
{
	const char *version = version_or_oldest(conf->version);
	AUTO(buf_done) struct buf all = { 0 };
	char text[sizeof(e->msg) + sizeof(e->details)];
	int64_t deadline = time_deadline(cni->timeout_ms);
	int first = 0;

	for (size_t i = 0; i < conf->n_plugins; i++) {
		AUTO(hw_strings_free) struct hw_strings versions = { 0 };
		const char *type = conf->plugins[i].type;
		int r;

		r = plugin_versions(cni, type, deadline, &versions, e);
		if (r >= 0 && !strings_has(&versions, version))
			r = err_text(e, -EOPNOTSUPP,
				     "plugin %s does not support config version \"%s\"", type,
				     version);
		if (r >= 0)
			continue;
		first = first ? first : r;
		buf_printf(&all, "%s%s", all.len ? " " : "", err_format(e, text, sizeof(text)));
	}
	return first < 0 && conf->list ? err_text(e, first, "[%s]", all.data) : first;
}

int hw_validate(const struct hw_cni *cni, const struct hw_conf *conf,
		const char *const *capabilities, struct hw_strings *ret_capabilities,
		struct hw_err *e)
{
	AUTO(hw_strings_free) struct hw_strings declared = { 0 };
	int r;

	for (size_t i = 0; i < conf->n_plugins; i++)
		for (size_t j = 0; j < conf->plugins[i].capabilities.n; j++)
			if (!strings_has(&declared, conf->plugins[i].capabilities.v[j]))
				strings_add(&declared, conf->plugins[i].capabilities.v[j]);
	r = validate_plugins(cni, conf, e);
	if (r < 0)
		return r;
	for (; capabilities && *capabilities; capabilities++)
		if (!strings_has(&declared, *capabilities))
			return err_text(e, -EOPNOTSUPP,
					"network \"%s\" does not declare capability \"%s\"",
					conf->name, *capabilities);
	if (ret_capabilities) {
		*ret_capabilities = declared;
		declared = (struct hw_strings){ 0 };
	}
	return 0;
}
