/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/hawser/info.c - info, version: show the state and the version of the runtime
 *
 * How:   calls CRI's Version, Status and ImageFsInfo, and Info of hawser.v1 if the
 *        runtime supports it.
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
	print_field_and_free("runtime", str_printf("%s %s", v->runtime_name, v->runtime_version));
	print_field_and_free("api", str_printf("CRI %s", v->runtime_api_version));
}

/* The version of hawser is printed even if the runtime does not respond. */
static int run_version(struct cli *cli, char **args, struct hw_err *e)
{
	AUTO(api_free) Runtime__V1__VersionResponse *answer = NULL;
	int r;

	(void)args;
	r = get_version(cli, &answer, e);
	if (cli->json) {
		struct value *all = value_new_object();

		value_set(all, "hawser", value_new_string(HAWSER_VERSION));
		if (answer)
			value_set(all, "runtime", message_to_json(&answer->base));
		print_json(all);
	} else {
		print_versions(answer);
	}
	return r;
}

const struct command version_command = {
	.name = "version",
	.group = "runtime",
	.args = "",
	.run = run_version,
	.summary = "show the versions of hawser and the runtime",
	.help = "Use hawser --version to print only the version of hawser.\n\n"
		"examples:\n"
		"  hawser version --runtime unix:/run/containerd/containerd.sock\n",
};

/* ---- info ------------------------------------------------------------------------ */

struct runtime_info {
	Runtime__V1__VersionResponse *version;
	Runtime__V1__StatusResponse *status;
	Runtime__V1__ImageFsInfoResponse *storage;
	Hawser__V1__InfoResponse *daemon; /* NULL: the runtime does not support it */
};

static void runtime_info_done(struct runtime_info *i)
{
	auto_api_free(&i->version);
	auto_api_free(&i->status);
	auto_api_free(&i->storage);
	auto_api_free(&i->daemon);
}

AUTO_VALUE_DEFINE(runtime_info_done, struct runtime_info);

static int get_runtime_info(struct cli *cli, struct runtime_info *i, struct hw_err *e)
{
	Runtime__V1__StatusRequest status = RUNTIME__V1__STATUS_REQUEST__INIT;
	Runtime__V1__ImageFsInfoRequest storage = RUNTIME__V1__IMAGE_FS_INFO_REQUEST__INIT;
	Hawser__V1__InfoRequest daemon = HAWSER__V1__INFO_REQUEST__INIT;
	int r;

	r = get_version(cli, &i->version, e);
	if (r < 0)
		return r;
	r = runtime_call(cli, "Status", &status.base, &i->status, e);
	if (r < 0)
		return r;
	r = image_call(cli, "ImageFsInfo", &storage.base, &i->storage, e);
	if (r < 0)
		return r;
	r = service_call(cli, &hawser__v1__daemon__descriptor, "Info", &daemon.base, &i->daemon, e);
	return r < 0 && is_unimplemented(e) ? 0 : r;
}

static void print_conditions(const Runtime__V1__RuntimeStatus *status)
{
	for (size_t i = 0; status && i < status->n_conditions; i++) {
		const Runtime__V1__RuntimeCondition *c = status->conditions[i];
		autofree char *name = text_clean(c->type);

		print_field_and_free(name, c->status ? str_copy("yes")
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

		print_field_and_free(
			"image store",
			str_printf("%s (%s)", fs->fs_id ? fs->fs_id->mountpoint : "?", size));
	}
}

static void print_daemon(const Hawser__V1__InfoResponse *d)
{
	autofree char *age = text_age((int64_t)time(NULL) - d->started_at / NS);
	autofree char *size = text_size(d->layer_bytes);

	print_field_and_free("process", str_printf("%u, running for %s", d->pid, age));
	print_field_and_free("images", str_printf("%llu, with %llu layers (%s)",
						  (unsigned long long)d->images,
						  (unsigned long long)d->layers, size));
	if (!str_empty(d->store_loss))
		print_field_and_free(
			"database",
			str_printf("lost: %s; run \"hawser image recover\"", d->store_loss));
	print_field("root", d->root);
	print_field("state", d->state);
	print_field("config", str_empty(d->config) ? "none" : d->config);
	print_field_and_free("long calls",
			     str_printf("%u, at most %u", d->long_calls, d->long_calls_max));
	print_field("kernel", d->kernel);
}

static int run_info(struct cli *cli, char **args, struct hw_err *e)
{
	AUTO(runtime_info_done) struct runtime_info i = { 0 };
	int r;

	(void)args;
	r = get_runtime_info(cli, &i, e);
	if (r < 0)
		return r;
	if (cli->json) {
		struct value *all = value_new_object();

		value_set(all, "version", message_to_json(&i.version->base));
		value_set(all, "status", message_to_json(&i.status->base));
		value_set(all, "imageFsInfo", message_to_json(&i.storage->base));
		if (i.daemon)
			value_set(all, "daemon", message_to_json(&i.daemon->base));
		print_json(all);
		return 0;
	}
	print_versions(i.version);
	print_field("socket", cli->socket);
	print_conditions(i.status->status);
	print_storage(i.storage);
	if (i.daemon)
		print_daemon(i.daemon);
	return 0;
}

const struct command info_command = {
	.name = "info",
	.group = "runtime",
	.args = "",
	.run = run_info,
	.summary = "show the state of the runtime",
	.help = "Shows whether the runtime and its network are ready, and the size of the image\n"
		"store. With hawser-cri it also shows the process, its directories, and the\n"
		"number of images and layers.\n\n"
		"examples:\n"
		"  hawser info\n"
		"  hawser info --json | jq .status.status.conditions\n",
};
