/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/hawser/verify.c - image verify: verify the stored files of images
 *
 * How:   hawser.v1's Verify reports each layer as soon as it has been read.
 * Rules: the exit status is 1 if a layer is still damaged at the end, or if an image could not be
 *        verified or repaired; the others are verified nevertheless.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "api/hawser-v1.pb-c.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/hawser/hawser.h"
#include "cli/json.h"
#include "cli/text.h"

static struct {
	bool repair;
} given;

static const struct option_entry options[] = {
	{ "repair", .help = "pull damaged layers again", .flag = &given.repair },
	{ 0 },
};

struct verify_totals {
	size_t layers, damaged, repaired, unchecked;
	struct value *list; /* for --json */
};

/* Flushes standard output after each layer, because verifying all images may take minutes. */
static void print_layer(const Hawser__V1__VerifyResponse *layer)
{
	static const char *const states[] = { "good", "DAMAGED", "repaired", "unknown" };
	const char *state = (size_t)layer->state < ARRAY_SIZE(states) ? states[layer->state] : "?";
	autofree char *image = text_short_id(layer->image_id), *id = text_short_id(layer->diff_id);
	autofree char *size = text_size(layer->bytes);

	printf("%-12s  %-12s  %-8s  %8llu files  %9s\n", image, id, state,
	       (unsigned long long)layer->files, size);
	for (size_t i = 0; i < layer->n_damaged; i++) {
		autofree char *path = text_clean(layer->damaged[i]);

		printf("    %s\n", path);
	}
	fflush(stdout);
}

static int verify_images(struct cli *cli, char **args, struct verify_totals *totals,
			 struct hw_err *e)
{
	Hawser__V1__VerifyRequest request = HAWSER__V1__VERIFY_REQUEST__INIT;
	AUTO(rpc_stream_free) struct rpc_stream *stream = NULL;
	int r;

	request.images = args;
	while (args[request.n_images])
		request.n_images++;
	request.repair = given.repair;
	if (hawser_stream(cli, "Verify", &request.base, &stream, e) < 0)
		return hawser_failed(cli, cli->command->name, e);
	for (;;) {
		AUTO(api_free) Hawser__V1__VerifyResponse *layer = NULL;

		r = api_stream_receive(stream, &hawser__v1__verify_response__descriptor,
				       (ProtobufCMessage **)&layer, e);
		if (r <= 0)
			return r < 0 ? hawser_failed(cli, cli->command->name, e) : 0;
		totals->layers++;
		totals->damaged += layer->state == HAWSER__V1__VERIFY_RESPONSE__STATE__DAMAGED;
		totals->repaired += layer->state == HAWSER__V1__VERIFY_RESPONSE__STATE__REPAIRED;
		totals->unchecked +=
			layer->state == HAWSER__V1__VERIFY_RESPONSE__STATE__NOT_CHECKED;
		if (cli->json)
			value_append(totals->list, message_to_json(&layer->base));
		else
			print_layer(layer);
	}
}

static int run_verify(struct cli *cli, char **args, struct hw_err *e)
{
	AUTO(value_free) struct value *all = value_new_object();
	struct verify_totals totals = { .list = value_new_array() };
	int r;

	value_set(all, "layers", totals.list);
	r = verify_images(cli, args, &totals, e);
	if (r < 0 && totals.layers == 0)
		return r;
	if (cli->json) {
		print_json(take_ptr(all));
	} else {
		printf("%zu layers, %zu damaged, %zu repaired", totals.layers, totals.damaged,
		       totals.repaired);
		if (totals.unchecked > 0)
			printf(", %zu not checked", totals.unchecked);
		putchar('\n');
	}
	if (r < 0 || !totals.damaged)
		return r;
	return err_text(
		e, -EBADMSG, "%zu of %zu layers are damaged%s", totals.damaged, totals.layers,
		given.repair ? " and could not be repaired" : "; --repair pulls them again");
}

const struct command verify_command = {
	.name = "image verify",
	.group = "images",
	.args = "[IMAGE...]",
	.max_args = -1,
	.is_long = true,
	.run = run_verify,
	.summary = "verify the stored files of images",
	.help = "Hashes every file of every layer and compares the hash with that of the file\n"
		"when it was unpacked. Without IMAGE, all images are verified. The exit status\n"
		"is 1 if a layer is still damaged at the end. A layer whose archive contains a\n"
		"file twice cannot be verified: its state is \"unknown\".\n\n"
		"examples:\n"
		"  hawser image verify\n"
		"  hawser image verify --repair busybox\n",
	.options = options,
};
