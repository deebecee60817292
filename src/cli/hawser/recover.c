/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/hawser/recover.c - image recover: rebuild the database of the image store
 *
 * Rules: images that must be pulled again are a result, not an error: the command has done all that
 *        can be done without a registry.
 */
#include <stdio.h>

#include "api/hawser-v1.pb-c.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/hawser/hawser.h"
#include "cli/json.h"
#include "cli/text.h"

static void print_cleaned(const char *before, const char *text)
{
	autofree char *clean = text_clean(text);

	printf("%s%s\n", before, clean);
}

static void print_recovery(const Hawser__V1__RecoverResponse *r)
{
	if (!r->needed) {
		puts("nothing to recover: the database of the image store is complete");
		return;
	}
	for (size_t i = 0; i < r->n_images; i++) {
		const Hawser__V1__LoadedImage *image = r->images[i];

		print_cleaned("", image->n_names ? image->names[0] : image->id);
	}
	printf("%zu images and %llu layers recovered\n", r->n_images,
	       (unsigned long long)r->layers);
	if (r->unknown_layers > 0)
		printf("%llu layers not recovered: the files that are needed for it are missing or "
		       "damaged\n",
		       (unsigned long long)r->unknown_layers);
	if (*r->unrecovered)
		print_cleaned("what could not be recovered was moved, and can be deleted: ",
			      r->unrecovered);
	for (size_t i = 0; i < r->n_missing; i++)
		print_cleaned(i == 0 ? "to be pulled again:\n  " : "  ", r->missing[i]);
	if (r->unknown_layers > 0 && r->n_missing == 0)
		puts("the names of their images are not known: pull the images that this node "
		     "needs");
}

static int run_recover(struct cli *cli, char **args, struct hw_err *e)
{
	Hawser__V1__RecoverRequest request = HAWSER__V1__RECOVER_REQUEST__INIT;
	AUTO(api_free) Hawser__V1__RecoverResponse *answer = NULL;

	(void)args;
	if (service_call(cli, &hawser__v1__images__descriptor, "Recover", &request.base, &answer,
			 e) < 0)
		return hawser_failed(cli, cli->command->name, e);
	if (cli->json)
		print_json(message_to_json(&answer->base));
	else
		print_recovery(answer);
	return 0;
}

const struct command recover_command = {
	.name = "image recover",
	.group = "images",
	.args = "",
	.is_long = true,
	.run = run_recover,
	.summary = "rebuild the database of the image store",
	.help = "If the database (images.db) was lost or damaged, hawser-cri keeps the layers but\n"
		"lists no images. This command rebuilds the database from the files beside it,\n"
		"and prints the images that were recovered and those that must be pulled again.\n"
		"It changes nothing if the database is complete, and may be repeated.\n\n"
		"examples:\n"
		"  hawser image recover\n"
		"  hawser image recover --json | jq -r '.missing[]'\n",
};
