/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/hawser/verify.c - image verify: is what is stored what was pulled?
 *
 * How:   hawser.v1's Verify tells of each layer as it was read; so does this.
 * Rules: damage that is left makes the exit status 1.
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

struct tally {
	size_t layers, damaged, repaired, unchecked;
	struct value *list; /* for --json */
};

static const char *state_name(int state)
{
	static const char *const names[] = { "good", "DAMAGED", "repaired", "unknown" };

	return (size_t)state < ARRAY_SIZE(names) ? names[state] : "?";
}

/* A line as soon as it is known: reading all may take minutes. */
static void print_layer(const Hawser__V1__VerifyResponse *layer)
{
	autofree char *image = text_short_id(layer->image_id), *id = text_short_id(layer->diff_id);
	autofree char *size = text_size(layer->bytes);

	printf("%-12s  %-12s  %-8s  %8llu files  %9s\n", image, id, state_name((int)layer->state),
	       (unsigned long long)layer->files, size);
	for (size_t i = 0; i < layer->n_damaged; i++) {
		autofree char *path = text_clean(layer->damaged[i]);

		printf("    %s\n", path);
	}
	fflush(stdout);
}

static void count(struct tally *tally, const struct cli *cli,
		  const Hawser__V1__VerifyResponse *layer)
{
	tally->layers++;
	tally->damaged += layer->state == HAWSER__V1__VERIFY_RESPONSE__STATE__DAMAGED;
	tally->repaired += layer->state == HAWSER__V1__VERIFY_RESPONSE__STATE__REPAIRED;
	tally->unchecked += layer->state == HAWSER__V1__VERIFY_RESPONSE__STATE__NOT_CHECKED;
	if (cli->json)
		value_append(tally->list, json_of(&layer->base));
	else
		print_layer(layer);
}

static int follow(struct cli *cli, struct rpc_stream *stream, struct tally *tally, struct hw_err *e)
{
	int r;

	for (;;) {
		AUTO(api_free) Hawser__V1__VerifyResponse *layer = NULL;

		r = api_stream_receive(stream, &hawser__v1__verify_response__descriptor,
				       (ProtobufCMessage **)&layer, e);
		if (r <= 0)
			return r;
		count(tally, cli, layer);
	}
}

static int ask(struct cli *cli, char **args, struct tally *tally, struct hw_err *e)
{
	Hawser__V1__VerifyRequest request = HAWSER__V1__VERIFY_REQUEST__INIT;
	AUTO(rpc_stream_free) struct rpc_stream *stream = NULL;
	int r;

	request.images = args;
	while (args[request.n_images])
		request.n_images++;
	request.repair = cli->repair;
	r = hawser_stream(cli, "Verify", &request.base, &stream, e);
	if (r == 0)
		r = follow(cli, stream, tally, e);
	return r < 0 ? hawser_failed(cli, cli->command->name, e) : 0;
}

static void print_tally(const struct tally *tally)
{
	printf("%zu layers, %zu damaged, %zu repaired", tally->layers, tally->damaged,
	       tally->repaired);
	if (tally->unchecked > 0)
		printf(", %zu not checked", tally->unchecked);
	putchar('\n');
}

static int verify(struct cli *cli, char **args, struct hw_err *e)
{
	AUTO(value_free) struct value *all = value_new_object();
	struct tally tally = { .list = value_new_array() };
	int r;

	value_set(all, "layers", tally.list);
	r = ask(cli, args, &tally, e);
	if (r < 0)
		return r;
	if (cli->json)
		print_json(take_ptr(all));
	else
		print_tally(&tally);
	if (!tally.damaged)
		return 0;
	return err_text(e, -EBADMSG, "%zu of %zu layers are damaged%s", tally.damaged, tally.layers,
			cli->repair ? " and could not be repaired" : "; --repair pulls them again");
}

static const struct option_entry options[] = {
	{ "repair", 0, OPTION_FLAG, offsetof(struct cli, repair), NULL,
	  "pull again what is damaged, and only that" },
	{ 0 },
};

const struct command verify_command = {
	.name = "image verify",
	.args = "[IMAGE...]",
	.max_args = -1,
	.is_long = true,
	.run = verify,
	.summary = "read stored images again and compare",
	.help = "Every file of every layer is hashed and compared with what was unpacked;\n"
		"without IMAGE those of all images. Exit status 1 if damage is left.\n"
		"Of a layer that has some of its files twice it cannot be known.\n\n"
		"  hawser image verify\n"
		"  hawser image verify --repair busybox\n",
	.options = options,
};
