/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/hawser/pods.c - pods: list pods
 *
 * What:  prints a row for each pod, the newest first. With hawser-cri, also pods that are lost, and
 *        below the table what people have to do something about: stops that have failed, and what is
 *        lost.
 * How:   CRI's ListPodSandbox does not return addresses: the status of each pod is requested. What
 *        CRI lacks comes from hawser.v1, if the runtime supports it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/cri-v1.pb-c.h"
#include "api/hawser-v1.pb-c.h"
#include "base/buf.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/hawser/hawser.h"
#include "cli/json.h"
#include "cli/table.h"
#include "cli/text.h"
#include "rpc/grpc/status.h"

#define NS 1000000000

static struct {
	bool quiet;
} given;

static const struct option_entry options[] = {
	{ "quiet", 'q', .help = "print only pod IDs", .flag = &given.quiet },
	{ 0 },
};

static const struct table_column columns[] = {
	{ "ID" },    { "NAME" },      { "NAMESPACE" },
	{ "STATE" }, { "ADDRESSES" }, { "AGE", .right = true },
};

struct row {
	const Runtime__V1__PodSandbox *pod;	       /* NULL: lost */
	Runtime__V1__PodSandboxStatusResponse *status; /* NULL: not requested */
	const Hawser__V1__PodDetails *details;	       /* NULL: not known */
};

struct rows {
	Runtime__V1__ListPodSandboxResponse *pods;
	struct details details;
	struct row *v;
	size_t n;
};

static void rows_done(struct rows *rows)
{
	for (size_t i = 0; i < rows->n; i++)
		auto_api_free(&rows->v[i].status);
	free(rows->v);
	auto_api_free(&rows->pods);
	details_done(&rows->details);
}

AUTO_VALUE_DEFINE(rows_done, struct rows);

/* ---- rows ------------------------------------------------------------------------ */

/* Lost pods are the last. */
static int compare_rows(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (!x->pod || !y->pod)
		return !x->pod - !y->pod;
	if (x->pod->created_at != y->pod->created_at)
		return x->pod->created_at < y->pod->created_at ? 1 : -1;
	return strcmp(x->pod->id, y->pod->id);
}

static int get_rows(struct cli *cli, struct rows *rows, struct hw_err *e)
{
	AUTO(map_free) struct map *by_id = map_new(NULL);
	size_t n_details;
	int r;

	r = list_pods(cli, &rows->pods, e);
	if (r == 0)
		r = details_get(cli, &rows->details, e);
	if (r < 0)
		return r;
	n_details = rows->details.pods ? rows->details.pods->n_pods : 0;
	rows->v = mem_new((rows->pods->n_items + n_details + 1) * sizeof(*rows->v));
	for (size_t i = 0; i < n_details; i++) {
		Hawser__V1__PodDetails *details = rows->details.pods->pods[i];

		map_set(by_id, details->id, details);
		if (details_is_lost(details))
			rows->v[rows->n++] = (struct row){ .details = details };
	}
	for (size_t i = 0; i < rows->pods->n_items; i++) {
		const Runtime__V1__PodSandbox *pod = rows->pods->items[i];

		rows->v[rows->n++] = (struct row){ pod, NULL, map_find(by_id, pod->id) };
	}
	qsort(rows->v, rows->n, sizeof(*rows->v), compare_rows);
	return 0;
}

/* A pod may have been removed since it was listed: then .status stays NULL. */
static int get_status(struct cli *cli, struct row *row, struct hw_err *e)
{
	Runtime__V1__PodSandboxStatusRequest request =
		RUNTIME__V1__POD_SANDBOX_STATUS_REQUEST__INIT;

	if (!row->pod)
		return 0;
	request.pod_sandbox_id = row->pod->id;
	if (runtime_call(cli, "PodSandboxStatus", &request.base, &row->status, e) < 0 &&
	    status_from_err(e) != STATUS_NOT_FOUND)
		return err_ctx(e, "pod \"%s\"", row->pod->id);
	return 0;
}

/* ---- output ---------------------------------------------------------------------- */

static const char *state_of(const struct row *row)
{
	static const char *const states[] = {
		[HAWSER__V1__POD_DETAILS__STATE__MAKING] = "making",
		[HAWSER__V1__POD_DETAILS__STATE__READY] = "ready",
		[HAWSER__V1__POD_DETAILS__STATE__STOPPING] = "stopping",
		[HAWSER__V1__POD_DETAILS__STATE__STOPPED] = "stopped",
		[HAWSER__V1__POD_DETAILS__STATE__REMOVING] = "removing",
		[HAWSER__V1__POD_DETAILS__STATE__LOST] = "lost",
	};
	size_t state = row->details ? (size_t)row->details->state : 0;

	if (state < ARRAY_SIZE(states) && states[state])
		return states[state];
	return row->pod && row->pod->state == RUNTIME__V1__POD_SANDBOX_STATE__SANDBOX_READY
		       ? "ready"
		       : "not ready";
}

static char *format_addresses(const struct row *row)
{
	const Runtime__V1__PodSandboxNetworkStatus *network =
		row->status && row->status->status ? row->status->status->network : NULL;
	AUTO(buf_done) struct buf b = { 0 };

	if (!network || str_empty(network->ip))
		return str_copy("-");
	buf_puts(&b, network->ip);
	for (size_t i = 0; i < network->n_additional_ips; i++)
		buf_printf(&b, " %s", network->additional_ips[i]->ip);
	return buf_take(&b);
}

static void add_row(struct table *t, const struct row *row)
{
	const Runtime__V1__PodSandboxMetadata *m = row->pod ? row->pod->metadata : NULL;

	table_add(t, text_short_id(row->pod ? row->pod->id : row->details->id));
	table_add(t, str_copy(m ? m->name : "-"));
	table_add(t, str_copy(m ? m->namespace_ : "-"));
	table_add(t, str_copy(state_of(row)));
	table_add(t, format_addresses(row));
	table_add(t, row->pod ? text_age((int64_t)time(NULL) - row->pod->created_at / NS)
			      : str_copy("-"));
}

static void add_note(struct hw_strings *notes, char *note)
{
	strings_add(notes, note);
	free(note);
}

/* Return: for example: ' ("web" of pod "default/shop", image "nginx:1", process 4711)'; allocated */
static char *describe_lost(const Hawser__V1__LostContainer *c)
{
	AUTO(buf_done) struct buf b = { 0 };

	if (*c->name)
		buf_printf(&b, " (\"%s\" of pod \"%s/%s\", image \"%s\"", c->name, c->namespace_,
			   c->pod, c->image);
	if (c->pid)
		buf_printf(&b, "%sprocess %u", b.len ? ", " : " (", c->pid);
	buf_puts(&b, b.len ? ")" : "");
	return buf_take(&b);
}

static void add_notes(const struct rows *rows, struct hw_strings *notes)
{
	const Hawser__V1__ListLostContainersResponse *containers = rows->details.containers;
	bool failed = false;

	for (size_t i = 0; i < rows->n; i++) {
		const Hawser__V1__PodDetails *d = rows->v[i].details;
		autofree char *id = d ? text_short_id(d->id) : NULL;

		if (!d)
			continue;
		if (*d->message)
			add_note(notes, str_copy(d->message));
		if (details_is_lost(d))
			add_note(
				notes,
				str_printf("pod %s is not in the database of hawser-cri; it is "
					   "kept with its containers: run \"hawser rm --force %s\"",
					   id, id));
		else
			failed |= *d->message;
	}
	for (size_t i = 0; containers && i < containers->n_containers; i++) {
		autofree char *what = describe_lost(containers->containers[i]);
		autofree char *id = text_short_id(containers->containers[i]->id);

		add_note(notes, str_printf("container %s%s is not in the database of hawser-cri: "
					   "run \"hawser rm --force %s\"",
					   id, what, id));
	}
	if (failed)
		strings_add(notes, "hawser-cri tries again what has failed; \"hawser rm --force "
				   "POD\" removes a pod nevertheless");
}

static void print_rows(const struct rows *rows)
{
	AUTO(table_done) struct table t = TABLE(columns);
	AUTO(hw_strings_free) struct hw_strings notes = { 0 };

	for (size_t i = 0; i < rows->n; i++)
		add_row(&t, &rows->v[i]);
	table_print(&t, stdout);
	add_notes(rows, &notes);
	print_notes(&notes);
}

static void print_ids(const struct rows *rows)
{
	for (size_t i = 0; i < rows->n; i++) {
		autofree char *id =
			text_clean(rows->v[i].pod ? rows->v[i].pod->id : rows->v[i].details->id);

		printf("%s\n", id);
	}
}

/* A pod as ListPodSandbox describes it, with its network and details; of a lost pod only ID and details. */
static struct value *make_json(const struct row *row)
{
	const Runtime__V1__PodSandboxStatus *status = row->status ? row->status->status : NULL;
	struct value *v = row->pod ? message_to_json(&row->pod->base) : value_new_object();

	if (!row->pod)
		value_set(v, "id", value_new_string(row->details->id));
	if (status && status->network)
		value_set(v, "network", message_to_json(&status->network->base));
	if (row->details)
		value_set(v, "details", message_to_json(&row->details->base));
	return v;
}

static void print_all_json(const struct rows *rows)
{
	const Hawser__V1__ListLostContainersResponse *containers = rows->details.containers;
	struct value *all = value_new_object(), *items = value_new_array();
	struct value *lost = value_new_array();

	for (size_t i = 0; i < rows->n; i++)
		value_append(items, make_json(&rows->v[i]));
	for (size_t i = 0; containers && i < containers->n_containers; i++)
		value_append(lost, message_to_json(&containers->containers[i]->base));
	value_set(all, "items", items);
	value_set(all, "lostContainers", lost);
	print_json(all);
}

/* ---- command --------------------------------------------------------------------- */

static int run_pods(struct cli *cli, char **args, struct hw_err *e)
{
	AUTO(rows_done) struct rows rows = { 0 };
	int r;

	(void)args;
	r = get_rows(cli, &rows, e);
	for (size_t i = 0; r == 0 && i < rows.n && (cli->json || !given.quiet); i++)
		r = get_status(cli, &rows.v[i], e);
	if (r < 0)
		return r;
	if (cli->json)
		print_all_json(&rows);
	else if (given.quiet)
		print_ids(&rows);
	else
		print_rows(&rows);
	return 0;
}

const struct command pods_command = {
	.name = "pods",
	.group = "pods",
	.args = "",
	.run = run_pods,
	.summary = "list pods",
	.help = "The newest pod is the first. With hawser-cri, pods that are lost are listed, "
		"too,\n"
		"and below the table are stops and removals that have failed, pods and containers\n"
		"that are lost, and what can be done.\n\n"
		"examples:\n"
		"  hawser pods\n"
		"  hawser pods --json | jq -r '.items[] | .metadata.name + \" \" + .network.ip'\n",
	.options = options,
};
