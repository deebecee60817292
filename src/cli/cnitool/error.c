/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/cnitool/error.c - what went wrong, with what, and what to do about it
 *
 * What:  one error on standard error: the network, its file, the plugin, the
 *        message; then a hint where we know one.
 * How:   the library's texts are upstream's, so a hint may go by them.
 */
#include "cli/cnitool/cnitool.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"

struct report {
	int code;
	char *msg, *details;
	char *network, *file, *plugin, *hint;
};

static const struct hw_field report_fields[] = {
	{ "code", HW_INT, HW_AT(struct report, code), .flags = HW_ALWAYS },
	{ "msg", HW_STRING, HW_AT(struct report, msg), .flags = HW_ALWAYS },
	{ "details", HW_STRING, HW_AT(struct report, details) },
	{ "network", HW_STRING, HW_AT(struct report, network) },
	{ "file", HW_STRING, HW_AT(struct report, file) },
	{ "plugin", HW_STRING, HW_AT(struct report, plugin) },
	{ "hint", HW_STRING, HW_AT(struct report, hint) },
	{ 0 },
};

static bool says(const struct hw_err *e, const char *text)
{
	return strstr(e->msg, text) != NULL;
}

static bool netns_is_missing(const struct tool *t)
{
	return t->netns && access(t->netns, F_OK) < 0 && errno == ENOENT;
}

static char *hint_netns(const struct tool *t)
{
	if (str_starts(t->netns, "/run/netns/") || str_starts(t->netns, "/var/run/netns/"))
		return str_printf("there is no namespace %s; make it with \"ip netns add %s\"",
				  t->netns, strrchr(t->netns, '/') + 1);
	return str_printf("there is no namespace %s; \"ip netns add NAME\" makes /run/netns/NAME",
			  t->netns);
}

/* Return: the hint, or NULL when the message has to speak for itself */
static char *find_hint(const struct tool *t, const struct hw_err *e)
{
	if (says(e, "failed to find plugin") || says(e, "no paths provided"))
		return str_printf("set CNI_PATH to the directories that hold the plugins; now %s",
				  t->plugin_path);
	if (says(e, "no net configuration"))
		return str_printf("NETCONFPATH says where networks are configured, now %s; "
				  "\"cnitool list\" shows what is there",
				  t->conf_dir);
	if (netns_is_missing(t))
		return hint_netns(t);
	if (e->code == -ECANCELED)
		return str_copy("interrupted; \"cnitool del\" removes whatever may be left");
	if (e->code == -ETIMEDOUT)
		return str_copy("--timeout SECONDS gives it more time");
	if (err_wire(e) == HW_CNI_TRY_AGAIN)
		return str_copy("somebody else is working on it: try again");
	if (err_wire(e) == HW_CNI_INCOMPATIBLE_VERSION && t->network)
		return str_printf("\"cnitool versions %s\" shows what its plugins support",
				  t->network);
	if ((e->code == -EPERM || e->code == -EACCES) && geteuid() != 0)
		return str_copy("run it as root");
	return NULL;
}

/* ADD and DEL say which plugin failed, as upstream's do: plugin type="T" failed (add): ... */
static char *find_plugin(const struct tool *t, const struct hw_err *e)
{
	static const char before[] = "plugin type=\"";
	const char *at = strstr(e->msg, before);

	if (at)
		return str_ncopy(at + strlen(before), strcspn(at + strlen(before), "\""));
	return *t->plugin ? str_copy(t->plugin) : NULL;
}

static void print_for_people(const struct report *r, const char *message)
{
	AUTO(buf_done) struct buf b = { 0 };

	buf_puts(&b, "cnitool: ");
	if (r->network)
		buf_printf(&b, "network \"%s\"", r->network);
	if (r->file)
		buf_printf(&b, " (%s)", r->file);
	if (r->network)
		buf_puts(&b, ": ");
	if (r->plugin && !strstr(message, "plugin type="))
		buf_printf(&b, "plugin \"%s\": ", r->plugin);
	buf_printf(&b, "%s\n", message);
	if (r->hint)
		buf_printf(&b, "hint: %s\n", r->hint);
	fputs(b.data, stderr);
}

/** tool_report() - the one place where an error is printed */
void tool_report(const struct tool *t, const struct hw_err *e)
{
	char message[sizeof(e->msg) + sizeof(e->details)];
	struct report r = {
		.code = err_wire(e),
		.msg = str_copy(e->msg),
		.details = str_copy(e->details),
		.network = str_copy(t->network),
		.file = str_copy(t->conf ? hw_conf_file(t->conf) : NULL),
		.plugin = find_plugin(t, e),
		.hint = find_hint(t, e),
	};

	if (t->json) {
		autofree char *json = hw_field_encode(report_fields, &r, 0);

		fprintf(stderr, "%s\n", json);
	} else {
		print_for_people(&r, err_format(e, message, sizeof(message)));
	}
	hw_field_clear(report_fields, &r);
}
