/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/hawser/network.c - network ls, check, gc: networks of hawser-cri
 */
#include <stdio.h>

#include "api/cri-v1.pb-c.h"
#include "api/hawser-v1.pb-c.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/hawser/hawser.h"
#include "cli/json.h"
#include "cli/table.h"
#include "cli/text.h"
#include "rpc/grpc/status.h"

static int list_networks(struct cli *cli, Hawser__V1__ListNetworksResponse **ret, struct hw_err *e)
{
	Hawser__V1__ListNetworksRequest request = HAWSER__V1__LIST_NETWORKS_REQUEST__INIT;

	return service_call(cli, &hawser__v1__networks__descriptor, "List", &request.base, ret, e);
}

int complete_networks(struct cli *cli, const char *word, struct hw_strings *words, struct hw_err *e)
{
	AUTO(api_free) Hawser__V1__ListNetworksResponse *list = NULL;
	int r;

	(void)word;
	r = runtime_complete(cli, e);
	if (r == 0)
		r = list_networks(cli, &list, e);
	for (size_t i = 0; r == 0 && i < list->n_networks; i++) {
		autofree char *name = text_clean(list->networks[i]->name);

		if (*name)
			strings_add(words, name);
	}
	return r;
}

/* ---- ls -------------------------------------------------------------------------- */

static const struct table_column columns[] = {
	{ "NETWORK" }, { "STATE" }, { "PODS", .right = true }, { "PLUGINS", .cut = true },
	{ "FILE" },
};

static const char *state_of(const Hawser__V1__Network *n)
{
	if (!*n->name)
		return "invalid";
	if (n->in_use)
		return n->ready ? "in use" : "in use, not ready";
	return n->ready ? "ready" : "not ready";
}

static char *join(char **words, size_t n)
{
	AUTO(buf_done) struct buf b = { 0 };

	for (size_t i = 0; i < n; i++)
		buf_printf(&b, "%s%s", i ? " " : "", words[i]);
	return buf_take(&b);
}

static void print_networks(const Hawser__V1__ListNetworksResponse *list)
{
	AUTO(table_done) struct table t = TABLE(columns);
	AUTO(hw_strings_free) struct hw_strings notes = { 0 };

	for (size_t i = 0; i < list->n_networks; i++) {
		const Hawser__V1__Network *n = list->networks[i];
		autofree char *note = NULL;

		table_add(&t, str_copy(*n->name ? n->name : "-"));
		table_add(&t, str_copy(state_of(n)));
		table_add(&t, str_printf("%llu", (unsigned long long)n->pods));
		table_add(&t, join(n->plugins, n->n_plugins));
		table_add(&t, str_copy(*n->file ? n->file : "-"));
		if (n->ready)
			continue;
		note = str_printf("%s: %s", *n->name ? n->name : n->file, n->message);
		strings_add(&notes, note);
	}
	table_print(&t, stdout);
	print_notes(&notes);
}

static int run_ls(struct cli *cli, char **args, struct hw_err *e)
{
	AUTO(api_free) Hawser__V1__ListNetworksResponse *list = NULL;

	(void)args;
	if (list_networks(cli, &list, e) < 0)
		return hawser_failed(cli, cli->command->name, e);
	if (cli->json)
		print_json(message_to_json(&list->base));
	else
		print_networks(list);
	return 0;
}

const struct command network_ls_command = {
	.name = "network ls",
	.group = "networks",
	.args = "",
	.run = run_ls,
	.summary = "list networks",
	.help = "Lists the network that new pods are attached to, the other networks in the CNI\n"
		"directory, files that are invalid, and networks that pods are attached to "
		"although\n"
		"their files were deleted. Below the table, it says why a network is not ready.\n\n"
		"examples:\n"
		"  hawser network ls\n"
		"  hawser network ls --json | jq -r '.networks[] | select(.ready | not) | "
		".message'\n",
};

/* ---- check ----------------------------------------------------------------------- */

/* @label: the pod, for people. Prints a line, or appends to @list with --json. */
static int check_pod(struct cli *cli, const char *label, char *id, struct value *list,
		     struct hw_err *e)
{
	Hawser__V1__CheckPodRequest request = HAWSER__V1__CHECK_POD_REQUEST__INIT;
	AUTO(api_free) Hawser__V1__CheckPodResponse *answer = NULL;
	autofree char *clean = text_clean(label), *networks = NULL, *names = NULL;
	struct value *pod;

	request.id = id;
	if (service_call(cli, &hawser__v1__networks__descriptor, "Check", &request.base, &answer,
			 e) < 0) {
		hawser_failed(cli, cli->command->name, e);
		return err_ctx(e, "pod \"%s\"", label);
	}
	if (cli->json) {
		pod = message_to_json(&answer->base);
		value_set(pod, "id", value_new_string(id));
		value_append(list, pod);
		return 0;
	}
	names = join(answer->networks, answer->n_networks);
	networks = text_clean(names);
	if (*networks)
		printf("%s: unchanged (%s)\n", clean, networks);
	else
		printf("%s: not checked: it has no network with CHECK\n", clean);
	return 0;
}

static int check_word(struct cli *cli, const char *word, struct value *list, struct hw_err *e)
{
	autofree char *id = NULL;
	int r;

	r = find_pod(cli, word, &id, e);
	return r < 0 ? r : check_pod(cli, word, id, list, e);
}

/* Pods that are stopped or removed meanwhile are left out. */
static int check_all(struct cli *cli, struct value *list, struct errors *errors, struct hw_err *e)
{
	AUTO(api_free) Runtime__V1__ListPodSandboxResponse *pods = NULL;
	int r;

	r = list_pods(cli, &pods, e);
	if (r < 0)
		return r;
	for (size_t i = 0; i < pods->n_items; i++) {
		const Runtime__V1__PodSandbox *pod = pods->items[i];
		autofree char *label = pod_label(pod);

		if (pod->state != RUNTIME__V1__POD_SANDBOX_STATE__SANDBOX_READY ||
		    check_pod(cli, label, pod->id, list, e) == 0)
			continue;
		if (status_from_err(e) != STATUS_NOT_FOUND &&
		    status_from_err(e) != STATUS_FAILED_PRECONDITION)
			errors_add(errors, e);
		if (is_unimplemented(e))
			break;
	}
	return 0;
}

static int run_check(struct cli *cli, char **args, struct hw_err *e)
{
	struct value *all = value_new_object(), *list = value_new_array();
	struct errors errors = { 0 };

	value_set(all, "unchanged", list);
	if (!args[0] && check_all(cli, list, &errors, e) < 0)
		errors_add(&errors, e);
	for (; *args; args++)
		if (check_word(cli, *args, list, e) < 0)
			errors_add(&errors, e);
	if (cli->json)
		print_json(all);
	else
		value_free(all);
	return errors_result(&errors, e);
}

const struct command network_check_command = {
	.name = "network check",
	.group = "networks",
	.args = "[POD...]",
	.max_args = -1,
	.is_long = true,
	.run = run_check,
	.summary = "check that networks of pods are unchanged",
	.help = "Runs CHECK of the plugins: it compares interfaces, addresses, routes and rules "
		"with\n"
		"what was created for the pod. Without POD, all pods that are ready are checked.\n"
		"The exit status is 1 if something has changed.\n\n"
		"examples:\n"
		"  hawser network check\n"
		"  hawser network check web\n",
};

/* ---- gc -------------------------------------------------------------------------- */

/* @name: "": the networks that hawser-cri collects when it starts */
static int collect(struct cli *cli, char *name, struct hw_strings *collected, struct hw_err *e)
{
	Hawser__V1__GcRequest request = HAWSER__V1__GC_REQUEST__INIT;
	AUTO(api_free) Hawser__V1__GcResponse *answer = NULL;

	request.network = name;
	if (service_call(cli, &hawser__v1__networks__descriptor, "Gc", &request.base, &answer, e) <
	    0)
		return hawser_failed(cli, cli->command->name, e);
	for (size_t i = 0; i < answer->n_networks; i++)
		strings_add(collected, answer->networks[i]);
	return 0;
}

static void print_collected(const struct cli *cli, const struct hw_strings *names)
{
	if (cli->json) {
		struct value *all = value_new_object(), *list = value_new_array();

		for (size_t i = 0; i < names->n; i++)
			value_append(list, value_new_string(names->v[i]));
		value_set(all, "networks", list);
		print_json(all);
		return;
	}
	for (size_t i = 0; i < names->n; i++) {
		autofree char *name = text_clean(names->v[i]);

		printf("collected %s\n", name);
	}
}

static int run_gc(struct cli *cli, char **args, struct hw_err *e)
{
	AUTO(hw_strings_free) struct hw_strings collected = { 0 };
	struct errors errors = { 0 };
	char all[] = "";

	if (!args[0] && collect(cli, all, &collected, e) < 0)
		errors_add(&errors, e);
	for (char **arg = args; *arg; arg++)
		if (collect(cli, *arg, &collected, e) < 0)
			errors_add(&errors, e);
	print_collected(cli, &collected);
	if (collected.n == 0 && errors.n == 0 && !cli->json)
		puts("no network belongs to hawser-cri alone: name one, or set the key "
		     "gc-networks");
	return errors_result(&errors, e);
}

const struct command network_gc_command = {
	.name = "network gc",
	.group = "networks",
	.args = "[NETWORK...]",
	.max_args = -1,
	.is_long = true,
	.run = run_gc,
	.summary = "delete attachments of pods that do not exist",
	.help = "Runs GC of the plugins: it deletes what is left of attachments that no pod has.\n"
		"Attachments of other runtimes are kept if they use the same CNI cache directory.\n"
		"So name only networks that no other runtime uses, or that share this directory.\n"
		"Without NETWORK, it runs GC for the networks that belong to hawser-cri: those in\n"
		"its key gc-networks, that of its template, and the built-in network.\n\n"
		"examples:\n"
		"  hawser network gc\n"
		"  hawser network gc pods\n",
};
