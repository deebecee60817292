/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/hawser/rmi.c - rmi: remove images
 *
 * What:  removes images with all their names. CRI ignores an image that does not exist.
 *        Here it is an error unless --force is given, because the name is probably
 *        misspelled.
 * Rules: if one image cannot be removed, the remaining images are still removed.
 */
#include <stdio.h>

#include "api/cri-v1.pb-c.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/hawser/hawser.h"
#include "cli/text.h"
#include "rpc/grpc/status.h"

static struct {
	bool force;
} given;

static const struct option_entry options[] = {
	{ "force", 'f', .help = "ignore images that do not exist", .flag = &given.force },
	{ 0 },
};

static void print_untagged(char **names, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		autofree char *name = text_clean(names[i]);

		printf("untagged %s\n", name);
	}
}

/* @removed: with --json, the ID of the removed image is appended to this list */
static int find_and_remove(struct cli *cli, const char *name, struct value *removed,
			   struct hw_err *e)
{
	Runtime__V1__RemoveImageRequest request = RUNTIME__V1__REMOVE_IMAGE_REQUEST__INIT;
	Runtime__V1__ImageSpec spec = RUNTIME__V1__IMAGE_SPEC__INIT;
	AUTO(api_free) Runtime__V1__RemoveImageResponse *answer = NULL;
	AUTO(api_free) Runtime__V1__ImageStatusResponse *status = NULL;
	autofree char *id = NULL;
	const Runtime__V1__Image *image;
	int r;

	r = image_status(cli, name, false, &status, e);
	if (r < 0)
		return given.force && status_from_err(e) == STATUS_NOT_FOUND ? 0 : r;
	image = status->image;
	spec.image = image->id;
	request.image = &spec;
	r = image_call(cli, "RemoveImage", &request.base, &answer, e);
	if (r < 0)
		return err_ctx(e, "remove image \"%s\"", name);
	if (cli->json) {
		value_append(removed, value_new_string(image->id));
		return 0;
	}
	print_untagged(image->repo_tags, image->n_repo_tags);
	print_untagged(image->repo_digests, image->n_repo_digests);
	id = text_clean(image->id);
	printf("removed  %s\n", id);
	return 0;
}

static int run_rmi(struct cli *cli, char **args, struct hw_err *e)
{
	struct value *removed = value_new_array(), *all = value_new_object();
	struct errors errors = { 0 };

	value_set(all, "removed", removed);
	for (; *args; args++)
		if (find_and_remove(cli, *args, removed, e) < 0)
			errors_add(&errors, e);
	if (cli->json)
		print_json(all);
	else
		value_free(all);
	return errors_result(&errors, e);
}

const struct command rmi_command = {
	.name = "rmi",
	.alias = "image rm",
	.group = "images",
	.args = "IMAGE...",
	.min_args = 1,
	.max_args = -1,
	.run = run_rmi,
	.summary = "remove images",
	.help = "An image is removed together with all its names. IMAGE is a name, an ID, or a\n"
		"prefix of an ID.\n\n"
		"examples:\n"
		"  hawser rmi busybox:1.36 0123456789ab\n",
	.options = options,
};
