/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/hawser/info.c - info and version: what is at the other end of the socket
 *
 * How:   CRI's Version, Status and ImageFsInfo; Info of hawser.v1 where it is offered.
 */
#include <stdio.h>
#include <time.h>

#include "api/cri-v1.pb-c.h"
#include "api/hawser-v1.pb-c.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/hawser/hawser.h"
#include "cli/json.h"
#include "cli/text.h"

#define NS 1000000000

static int get_version(struct cli *cli, Runtime__V1__VersionResponse **ret, struct hw_err *e)
{
	Runtime__V1__VersionRequest request = RUNTIME__V1__VERSION_REQUEST__INIT;

	return runtime_call(cli, "Version", &request.base, ret, e);
}

/* ---- version --------------------------------------------------------------------- */

static void print_versions(const Runtime__V1__VersionResponse *v)
{
	print_field("hawser", HAWSER_VERSION);
	if (!v)
		return;
	print_field_taken("runtime", str_printf("%s %s", v->runtime_name, v->runtime_version));
	print_field_taken("api", str_printf("CRI %s", v->runtime_api_version));
}

static void print_versions_json(const Runtime__V1__VersionResponse *version)
{
	struct value *v = value_new_object();

	value_set(v, "hawser", value_new_string(HAWSER_VERSION));
	if (version)
		value_set(v, "runtime", json_of(&version->base));
	print_json(v);
}

/* Our own is told whether or not the runtime answers. */
static int version(struct cli *cli, char **args, struct hw_err *e)
{
	AUTO(api_free) Runtime__V1__VersionResponse *answer = NULL;
	int r = get_version(cli, &answer, e);

	(void)args;
	if (cli->json)
		print_versions_json(answer);
	else
		print_versions(answer);
	return r;
}

const struct command version_command = {
	.name = "version",
	.args = "",
	.run = version,
	.summary = "of this program and of the runtime",
	.help = "hawser --version asks no runtime.\n\n"
		"  hawser version --runtime unix:/run/containerd/containerd.sock\n",
};

/* ---- info ------------------------------------------------------------------------ */

struct facts {
	Runtime__V1__VersionResponse *version;
	Runtime__V1__StatusResponse *status;
	Runtime__V1__ImageFsInfoResponse *storage;
	Hawser__V1__InfoResponse *daemon; /* NULL: not offered */
};

static void facts_done(struct facts *f)
{
	auto_api_free(&f->version);
	auto_api_free(&f->status);
	auto_api_free(&f->storage);
	auto_api_free(&f->daemon);
}

AUTO_VALUE_DEFINE(facts_done, struct facts);

static int get_daemon(struct cli *cli, Hawser__V1__InfoResponse **ret, struct hw_err *e)
{
	Hawser__V1__InfoRequest request = HAWSER__V1__INFO_REQUEST__INIT;
	int r = runtime_connect(cli, e);

	if (r == 0)
		r = api_call(cli->client, &hawser__v1__daemon__descriptor, "Info", &request.base,
			     runtime_deadline(cli), (ProtobufCMessage **)ret, e);
	return r < 0 && is_unimplemented(e) ? 0 : r;
}

static int collect(struct cli *cli, struct facts *f, struct hw_err *e)
{
	Runtime__V1__StatusRequest status = RUNTIME__V1__STATUS_REQUEST__INIT;
	Runtime__V1__ImageFsInfoRequest storage = RUNTIME__V1__IMAGE_FS_INFO_REQUEST__INIT;
	int r = get_version(cli, &f->version, e);

	if (r == 0)
		r = runtime_call(cli, "Status", &status.base, &f->status, e);
	if (r == 0)
		r = image_call(cli, "ImageFsInfo", &storage.base, &f->storage, e);
	if (r == 0)
		r = get_daemon(cli, &f->daemon, e);
	return r;
}

static void print_conditions(const Runtime__V1__RuntimeStatus *status)
{
	for (size_t i = 0; status && i < status->n_conditions; i++) {
		const Runtime__V1__RuntimeCondition *c = status->conditions[i];
		autofree char *name = text_clean(c->type);

		print_field_taken(name, c->status ? str_copy("yes")
						  : str_printf("no: %s%s%s", c->reason,
							       str_empty(c->message) ? "" : ": ",
							       c->message));
	}
}

static void print_storage(const Runtime__V1__ImageFsInfoResponse *storage)
{
	for (size_t i = 0; i < storage->n_image_filesystems; i++) {
		const Runtime__V1__FilesystemUsage *fs = storage->image_filesystems[i];
		autofree char *size = text_size(fs->used_bytes ? fs->used_bytes->value : 0);

		print_field_taken(
			"images in",
			str_printf("%s (%s)", fs->fs_id ? fs->fs_id->mountpoint : "?", size));
	}
}

static void print_daemon(const Hawser__V1__InfoResponse *d)
{
	autofree char *age = text_age((int64_t)time(NULL) - d->started_at / NS);
	autofree char *size = text_size(d->layer_bytes);

	print_field_taken("process", str_printf("%u, for %s", d->pid, age));
	print_field_taken("images",
			  str_printf("%llu of %llu layers, %s", (unsigned long long)d->images,
				     (unsigned long long)d->layers, size));
	print_field("root", d->root);
	print_field("state", d->state);
	print_field("config", str_empty(d->config) ? "none" : d->config);
	print_field_taken("long calls",
			  str_printf("%u of at most %u", d->long_calls, d->long_calls_max));
	print_field("kernel", d->kernel);
}

static void print_info_json(const struct facts *f)
{
	struct value *v = value_new_object();

	value_set(v, "version", json_of(&f->version->base));
	value_set(v, "status", json_of(&f->status->base));
	value_set(v, "imageFsInfo", json_of(&f->storage->base));
	if (f->daemon)
		value_set(v, "daemon", json_of(&f->daemon->base));
	print_json(v);
}

static int info(struct cli *cli, char **args, struct hw_err *e)
{
	AUTO(facts_done) struct facts f = { 0 };
	int r = collect(cli, &f, e);

	(void)args;
	if (r < 0)
		return r;
	if (cli->json) {
		print_info_json(&f);
		return 0;
	}
	print_versions(f.version);
	print_field("socket", cli->socket);
	print_conditions(f.status->status);
	print_storage(f.storage);
	if (f.daemon)
		print_daemon(f.daemon);
	return 0;
}

const struct command info_command = {
	.name = "info",
	.args = "",
	.run = info,
	.summary = "the runtime: is it ready, what does it hold?",
	.help = "With hawser-cri also its process, folders and numbers of images and\n"
		"layers.\n\n"
		"  hawser info\n"
		"  hawser info --json | jq .status.status.conditions\n",
};
