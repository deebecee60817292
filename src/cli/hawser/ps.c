/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/hawser/ps.c - ps: list containers
 *
 * What:  prints a row for each container, the newest first; by default only those that run.
 * How:   CRI returns the ID of a container's pod, and often only the ID of its image. Their
 *        names come from the lists of pods and images.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/cri-v1.pb-c.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/time.h"
#include "cli/hawser/hawser.h"
#include "cli/json.h"
#include "cli/table.h"
#include "cli/text.h"

#define NS 1000000000

static struct {
	bool all, quiet;
} given;

static const struct option_entry options[] = {
	{ "all", 'a', .help = "also list containers that do not run", .flag = &given.all },
	{ "quiet", 'q', .help = "print only container IDs", .flag = &given.quiet },
	{ 0 },
};

static const struct table_column columns[] = {
	{ "ID" },    { "NAME" },
	{ "POD" },   { "IMAGE", .cut = true },
	{ "STATE" }, { "AGE", .right = true },
};

/* ---- names ----------------------------------------------------------------------- */

/* Return: a name that find_pod() accepts; the ID of a pod that has been removed meanwhile */
static char *get_pod_name(const Runtime__V1__ListPodSandboxResponse *pods, const char *id)
{
	for (size_t i = 0; i < pods->n_items; i++) {
		const Runtime__V1__PodSandboxMetadata *m = pods->items[i]->metadata;

		if (m && str_equal(pods->items[i]->id, id))
			return pod_label(pods->items[i]);
	}
	return text_short_id(id);
}

static bool is_image(const Runtime__V1__Image *image, const char *ref)
{
	bool is = !str_empty(ref) && str_equal(image->id, ref);

	for (size_t i = 0; i < image->n_repo_digests && !is; i++)
		is = str_equal(image->repo_digests[i], ref);
	return is;
}

static char *get_image_name(const Runtime__V1__ListImagesResponse *images,
			    const Runtime__V1__Container *c)
{
	const char *given_name = c->image ? c->image->image : "";

	if (c->image && !str_empty(c->image->user_specified_image))
		return str_copy(c->image->user_specified_image);
	for (size_t i = 0; i < images->n_images; i++) {
		const Runtime__V1__Image *image = images->images[i];

		if (image->n_repo_tags &&
		    (is_image(image, given_name) || is_image(image, c->image_id) ||
		     is_image(image, c->image_ref)))
			return str_copy(image->repo_tags[0]);
	}
	return str_starts(given_name, "sha256:") ? text_short_id(given_name) : str_copy(given_name);
}

/* ---- output ---------------------------------------------------------------------- */

static const char *state_name(Runtime__V1__ContainerState state)
{
	switch (state) {
	case RUNTIME__V1__CONTAINER_STATE__CONTAINER_CREATED:
		return "created";
	case RUNTIME__V1__CONTAINER_STATE__CONTAINER_RUNNING:
		return "running";
	case RUNTIME__V1__CONTAINER_STATE__CONTAINER_EXITED:
		return "exited";
	default:
		return "unknown";
	}
}

static int compare_ages(const void *a, const void *b)
{
	const Runtime__V1__Container *x = *(Runtime__V1__Container *const *)a;
	const Runtime__V1__Container *y = *(Runtime__V1__Container *const *)b;

	if (x->created_at != y->created_at)
		return x->created_at > y->created_at ? -1 : 1;
	return strcmp(x->id, y->id);
}

static int print_rows(struct cli *cli, const Runtime__V1__ListContainersResponse *list,
		      struct hw_err *e)
{
	AUTO(api_free) Runtime__V1__ListPodSandboxResponse *pods = NULL;
	AUTO(api_free) Runtime__V1__ListImagesResponse *images = NULL;
	AUTO(table_done) struct table t = TABLE(columns);
	int64_t now = time_real();
	int r;

	r = list_pods(cli, &pods, e);
	if (r < 0)
		return r;
	r = list_images(cli, NULL, &images, e);
	if (r < 0)
		return r;
	for (size_t i = 0; i < list->n_containers; i++) {
		const Runtime__V1__Container *c = list->containers[i];

		table_add(&t, text_short_id(c->id));
		table_add(&t, str_copy(c->metadata ? c->metadata->name : ""));
		table_add(&t, get_pod_name(pods, c->pod_sandbox_id));
		table_add(&t, get_image_name(images, c));
		table_add(&t, str_copy(state_name(c->state)));
		table_add(&t, text_age((now - c->created_at) / NS));
	}
	table_print(&t, stdout);
	return 0;
}

/* ---- command --------------------------------------------------------------------- */

static int run_ps(struct cli *cli, char **args, struct hw_err *e)
{
	Runtime__V1__ContainerFilter filter = RUNTIME__V1__CONTAINER_FILTER__INIT;
	Runtime__V1__ContainerStateValue running = RUNTIME__V1__CONTAINER_STATE_VALUE__INIT;
	AUTO(api_free) Runtime__V1__ListContainersResponse *list = NULL;
	int r;

	(void)args;
	running.state = RUNTIME__V1__CONTAINER_STATE__CONTAINER_RUNNING;
	filter.state = given.all ? NULL : &running;
	r = list_containers(cli, &filter, &list, e);
	if (r < 0)
		return r;
	if (list->n_containers)
		qsort(list->containers, list->n_containers, sizeof(*list->containers),
		      compare_ages);
	if (cli->json) {
		print_json(message_to_json(&list->base));
		return 0;
	}
	if (!given.quiet)
		return print_rows(cli, list, e);
	for (size_t i = 0; i < list->n_containers; i++) {
		autofree char *id = text_clean(list->containers[i]->id);

		printf("%s\n", id);
	}
	return 0;
}

const struct command ps_command = {
	.name = "ps",
	.group = "containers",
	.args = "",
	.run = run_ps,
	.summary = "list containers",
	.help = "Lists the containers that run, the newest first. A pod outside the namespace "
		"default\n"
		"is shown as NAMESPACE/NAME.\n\n"
		"examples:\n"
		"  hawser ps\n"
		"  hawser ps -a --json | jq -r '.containers[].metadata.name'\n",
	.options = options,
};
