/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/hawser/rmi.c - rmi: remove images
 *
 * What:  CRI removes an image with all its names, and an image that is not there
 *        is no error to it. Here it is one, since it is likely a slip of the hand,
 *        unless --force says that it is not.
 * Rules: one that cannot be removed does not keep the others.
 */
#include <stdio.h>

#include "api/cri-v1.pb-c.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/hawser/hawser.h"
#include "cli/text.h"
#include "rpc/grpc/status.h"

static int remove_image(struct cli *cli, const char *id, struct hw_err *e)
{
	Runtime__V1__RemoveImageRequest request = RUNTIME__V1__REMOVE_IMAGE_REQUEST__INIT;
	AUTO(api_free) Runtime__V1__RemoveImageResponse *answer = NULL;
	Runtime__V1__ImageSpec spec = RUNTIME__V1__IMAGE_SPEC__INIT;

	spec.image = (char *)id;
	request.image = &spec;
	return image_call(cli, "RemoveImage", &request.base, &answer, e);
}

static void print_names(char **names, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		autofree char *name = text_clean(names[i]);

		printf("untagged %s\n", name);
	}
}

static void print_removed(const Runtime__V1__Image *image)
{
	autofree char *id = text_clean(image->id);

	print_names(image->repo_tags, image->n_repo_tags);
	print_names(image->repo_digests, image->n_repo_digests);
	printf("removed  %s\n", id);
}

/* @removed: NULL, or the ids for --json */
static int remove_one(struct cli *cli, const char *image, struct value *removed, struct hw_err *e)
{
	AUTO(api_free) Runtime__V1__ImageStatusResponse *status = NULL;
	int r = image_status(cli, image, false, &status, e);

	if (r < 0)
		return cli->force && status_of(e) == STATUS_NOT_FOUND ? 0 : r;
	r = remove_image(cli, status->image->id, e);
	if (r < 0)
		return err_ctx(e, "remove image \"%s\"", image);
	if (cli->json)
		value_append(removed, value_new_string(status->image->id));
	else
		print_removed(status->image);
	return 0;
}

static int rmi(struct cli *cli, char **args, struct hw_err *e)
{
	struct value *removed = value_new_array(), *all = value_new_object();
	struct errors errors = { 0 };

	value_set(all, "removed", removed);
	for (; *args; args++)
		if (remove_one(cli, *args, removed, e) < 0)
			errors_add(&errors, e);
	if (cli->json)
		print_json(all);
	else
		value_free(all);
	return errors_end(&errors, e);
}

static const struct option_entry options[] = {
	{ "force", 'f', OPTION_FLAG, offsetof(struct cli, force), NULL,
	  "an image that is not there is no error" },
	{ 0 },
};

const struct command rmi_command = {
	.name = "rmi",
	.args = "IMAGE...",
	.min_args = 1,
	.max_args = -1,
	.run = rmi,
	.summary = "remove images",
	.help = "An image goes with all its names, whichever was given. Ids, and beginnings\n"
		"of ids, are taken too.\n\n"
		"  hawser rmi busybox:1.36 0123456789ab\n",
	.options = options,
};
