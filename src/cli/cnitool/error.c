/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/cnitool/error.c - error messages with a hint
 *
 * What:  prints an error to standard error: network, file, plugin, message,
 *        and a hint if there is one.
 * How:   some hints are chosen by the text of the message. Those texts are
 *        upstream's and do not change.
 */
#include "cli/cnitool/cnitool.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"

struct tool_error {
	int code;
	char *msg, *details;
	char *network, *file, *plugin, *hint;
};

static const struct hw_field error_fields[] = {
	{ "code", HW_INT, HW_AT(struct tool_error, code), .flags = HW_ALWAYS },
	{ "msg", HW_STRING, HW_AT(struct tool_error, msg), .flags = HW_ALWAYS },
	{ "details", HW_STRING, HW_AT(struct tool_error, details) },
	{ "network", HW_STRING, HW_AT(struct tool_error, network) },
	{ "file", HW_STRING, HW_AT(struct tool_error, file) },
	{ "plugin", HW_STRING, HW_AT(struct tool_error, plugin) },
	{ "hint", HW_STRING, HW_AT(struct tool_error, hint) },
	{ 0 },
};

/* Return: the hint, or NULL */
static char *find_hint(const struct cli *t, const struct hw_err *e)
{
	if (strstr(e->msg, "failed to find plugin") || strstr(e->msg, "no paths provided"))
		return str_printf(
			"set CNI_PATH to the directories that contain the plugins (currently %s)",
			t->plugin_path);
	if (strstr(e->msg, "no net configuration"))
		return str_printf("set NETCONFPATH to the directory that contains the networks "
				  "(currently %s); "
				  "\"cnitool list\" lists them",
				  t->conf_dir);
	if (t->netns && access(t->netns, F_OK) < 0 && errno == ENOENT) {
		if (str_starts(t->netns, "/run/netns/") || str_starts(t->netns, "/var/run/netns/"))
			return str_printf("namespace %s does not exist; create it with \"ip netns "
					  "add %s\"",
					  t->netns, strrchr(t->netns, '/') + 1);
		return str_printf("namespace %s does not exist; \"ip netns add NAME\" creates "
				  "/run/netns/NAME",
				  t->netns);
	}
	if (e->code == -ECANCELED)
		return str_copy("interrupted; \"cnitool del\" removes anything that is left");
	if (e->code == -ETIMEDOUT)
		return str_copy("--timeout SECONDS sets a longer timeout");
	if (err_wire(e) == HW_CNI_TRY_AGAIN)
		return str_copy("another process is using the network; try again");
	if (err_wire(e) == HW_CNI_INCOMPATIBLE_VERSION && t->network)
		return str_printf("\"cnitool versions %s\" prints the versions that the network's "
				  "plugins support",
				  t->network);
	if ((e->code == -EPERM || e->code == -EACCES) && geteuid() != 0)
		return str_copy("run cnitool as root");
	return NULL;
}

/* An error of ADD or DEL names the plugin: plugin type="T" failed (add): ... For other
 * errors, t->plugin is the name. */
static char *find_plugin(const struct cli *t, const struct hw_err *e)
{
	static const char prefix[] = "plugin type=\"";
	const char *at = strstr(e->msg, prefix);

	if (at)
		return str_ncopy(at + strlen(prefix), strcspn(at + strlen(prefix), "\""));
	return *t->plugin ? str_copy(t->plugin) : NULL;
}

/* Frees @hint. */
static void print_error(const struct cli *t, const struct hw_err *e, char *hint)
{
	char message[sizeof(e->msg) + sizeof(e->details)];
	struct tool_error r = {
		.code = err_wire(e),
		.msg = str_copy(e->msg),
		.details = str_copy(e->details),
		.network = str_copy(t->network),
		.file = str_copy(t->conf ? hw_conf_file(t->conf) : NULL),
		.plugin = find_plugin(t, e),
		.hint = hint,
	};
	AUTO(buf_done) struct buf b = { 0 };

	if (t->json) {
		autofree char *json = hw_field_encode(error_fields, &r, 0);

		buf_printf(&b, "%s\n", json);
	} else {
		err_format(e, message, sizeof(message));
		buf_puts(&b, "cnitool: ");
		if (r.network)
			buf_printf(&b, "network \"%s\"", r.network);
		if (r.file)
			buf_printf(&b, " (%s)", r.file);
		if (r.network)
			buf_puts(&b, ": ");
		if (r.plugin && !strstr(message, "plugin type="))
			buf_printf(&b, "plugin \"%s\": ", r.plugin);
		buf_printf(&b, "%s\n", message);
		if (r.hint)
			buf_printf(&b, "hint: %s\n", r.hint);
	}
	fputs(b.data, stderr);
	hw_field_clear(error_fields, &r);
}

void tool_report(const struct cli *t, const struct hw_err *e)
{
	print_error(t, e, find_hint(t, e));
}

void tool_report_usage_error(const struct cli *t, const char *msg, const char *hint)
{
	struct hw_err e;

	err_text(&e, -EINVAL, "%s", msg);
	print_error(t, &e, str_copy(hint));
}
