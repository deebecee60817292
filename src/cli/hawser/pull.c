/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/hawser/pull.c - pull: pull an image from its registry
 *
 * What:  with hawser-cri, shows the progress of each layer: on a terminal it is redrawn
 *        in place, otherwise a line is printed for each change of state. With other
 *        runtimes, calls CRI's PullImage, which reports no progress.
 * How:   calls hawser.v1 first, and CRI if the runtime does not implement hawser.v1.
 * Rules: progress goes to standard error, name and ID of the image to standard
 *        output. Passwords are wiped before their memory is freed, and never
 *        printed.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/cri-v1.pb-c.h"
#include "api/hawser-v1.pb-c.h"
#include "base/mem.h"
#include "base/os/file.h"
#include "base/str.h"
#include "base/time.h"
#include "cli/hawser/hawser.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "cli/text.h"

#define PULL_SECONDS 3600	    /* of a command whose other calls are short */
#define SECRET_MAX   (64 << 10)	    /* a password may be a long token */
#define FRAME_NS     (50 * 1000000) /* between frames; a change of state is shown at once */

static struct {
	const char *creds, *platform;
	bool password_stdin, quiet;
} given;

static const struct option_entry options[] = {
	{ "creds", 0, "USER[:PASSWORD]",
	  "log in to the registry; without PASSWORD, hawser asks for it", .text = &given.creds },
	{ "password-stdin", .help = "read the password from standard input",
	  .flag = &given.password_stdin },
	{ "platform", 0, "OS/ARCH[/VARIANT]",
	  "pull for this platform (default: the runtime's platform)", .text = &given.platform },
	{ "quiet", 'q', .help = "print only the image ID", .flag = &given.quiet },
	{ 0 },
};

struct display {
	struct progress progress;
	bool silent; /* --quiet, --json */
	bool redraw; /* the progress is redrawn in place, on a terminal */
	int64_t drawn_at;
};

/* ---- credentials --- */

struct creds {
	char *username, *password; /* NULL without --creds */
};

static void free_secret(char *secret)
{
	if (secret)
		explicit_bzero(secret, strlen(secret));
	free(secret);
}

static void creds_done(struct creds *creds)
{
	free_secret(creds->username);
	free_secret(creds->password);
	*creds = (struct creds){ 0 };
}

AUTO_VALUE_DEFINE(creds_done, struct creds);

/* Reads the first line, without its newline, which echo(1) adds. */
static int read_password_from_stdin(char **ret, struct hw_err *e)
{
	struct buf b = { 0 };
	int r;

	r = file_read_fd(STDIN_FILENO, SECRET_MAX, &b, e);
	if (r < 0)
		return err_ctx(e, "read the password from standard input");
	*ret = buf_take(&b);
	(*ret)[strcspn(*ret, "\r\n")] = '\0';
	if (**ret)
		return 0;
	free_secret(take_ptr(*ret));
	return err_text(e, -EINVAL, "--password-stdin: standard input is empty");
}

static int prompt_for_password(const char *username, char **ret, struct hw_err *e)
{
	autofree char *user = text_clean(username);
	autofree char *prompt = str_printf("Password for %s: ", user);

	if (terminal_read_secret(prompt, ret, e) < 0)
		return err_ctx(e,
			       "read the password of %s (use --password-stdin to read it from "
			       "standard input)",
			       user);
	return 0;
}

/* Gets the credentials from the options. Prompts for the password if the options have none. */
static int get_creds(struct cli *cli, struct creds *ret, struct hw_err *e)
{
	const char *colon = given.creds ? strchr(given.creds, ':') : NULL;
	int r = 0;

	*ret = (struct creds){ 0 };
	if (!given.creds && given.password_stdin)
		return usage_error(cli, e, "--password-stdin requires --creds USER");
	if (!given.creds)
		return 0;
	if (colon == given.creds || !*given.creds)
		return usage_error(cli, e, "invalid value for --creds: want USER or USER:PASSWORD");
	if (colon && given.password_stdin)
		return usage_error(cli, e,
				   "--password-stdin conflicts with the password in --creds");
	ret->username = colon ? str_ncopy(given.creds, (size_t)(colon - given.creds))
			      : str_copy(given.creds);
	if (colon)
		ret->password = str_copy(colon + 1);
	else if (given.password_stdin)
		r = read_password_from_stdin(&ret->password, e);
	else
		r = prompt_for_password(ret->username, &ret->password, e);
	if (r < 0)
		creds_done(ret);
	return r;
}

/* ---- progress -------------------------------------------------------------------- */

static void redraw(struct display *d)
{
	AUTO(buf_done) struct buf frame = { 0 };
	struct hw_err ignored;

	progress_frame(&d->progress, terminal_width(STDERR_FILENO), terminal_height(STDERR_FILENO),
		       &frame);
	file_write_fd(STDERR_FILENO, frame.data, frame.len, &ignored);
	d->drawn_at = time_now();
}

static int show_progress(struct display *d, const Hawser__V1__PullProgress *message,
			 struct hw_err *e)
{
	bool changed = false;

	for (size_t i = 0; i < message->n_layers; i++) {
		const Hawser__V1__LayerProgress *l = message->layers[i];
		const struct progress_layer layer = { l->digest, (enum progress_state)l->state,
						      l->done_bytes, l->total_bytes };
		int r;

		r = progress_update(&d->progress, &layer, e);
		if (r < 0)
			return r;
		changed |= r;
		if (r && !d->silent && !d->redraw) {
			autofree char *line = progress_line(&layer, 0);

			fprintf(stderr, "%s\n", line);
		}
	}
	if (d->redraw && (changed || time_now() - d->drawn_at >= FRAME_NS))
		redraw(d);
	return 0;
}

/* ---- hawser.v1 ------------------------------------------------------------------- */

static int receive_progress(struct rpc_stream *stream, struct display *d, char **ret_id,
			    char **ret_ref, struct hw_err *e)
{
	int r;

	for (;;) {
		AUTO(api_free) Hawser__V1__PullProgress *message = NULL;

		r = api_stream_receive(stream, &hawser__v1__pull_progress__descriptor,
				       (ProtobufCMessage **)&message, e);
		if (r <= 0)
			return r;
		r = show_progress(d, message, e);
		if (r < 0)
			return r;
		if (str_empty(message->image_id))
			continue;
		free(*ret_id);
		free(*ret_ref);
		*ret_id = str_copy(message->image_id);
		*ret_ref = str_copy(message->image_ref);
	}
}

static int pull_hawser(struct cli *cli, const char *image, const struct creds *creds, char **ret_id,
		       char **ret_ref, struct hw_err *e)
{
	Hawser__V1__PullRequest request = HAWSER__V1__PULL_REQUEST__INIT;
	Hawser__V1__Credentials credentials = HAWSER__V1__CREDENTIALS__INIT;
	AUTO(rpc_stream_free) struct rpc_stream *stream = NULL;
	struct display d = { .silent = given.quiet || cli->json };
	int r;

	d.redraw = !d.silent && terminal_can_redraw(STDERR_FILENO);
	credentials.username = creds->username;
	credentials.password = creds->password;
	request.image = (char *)image;
	request.platform = (char *)str_or(given.platform, "");
	request.credentials = creds->username ? &credentials : NULL;
	r = hawser_stream(cli, "Pull", &request.base, &stream, e);
	if (r == 0)
		r = receive_progress(stream, &d, ret_id, ret_ref, e);
	if (d.redraw && d.progress.n)
		redraw(&d);
	progress_done(&d.progress);
	return r;
}

/* ---- CRI ------------------------------------------------------------------------- */

static int pull_cri(struct cli *cli, const char *image, const struct creds *creds, char **ret_id,
		    struct hw_err *e)
{
	Runtime__V1__PullImageRequest request = RUNTIME__V1__PULL_IMAGE_REQUEST__INIT;
	Runtime__V1__ImageSpec spec = RUNTIME__V1__IMAGE_SPEC__INIT;
	Runtime__V1__AuthConfig auth = RUNTIME__V1__AUTH_CONFIG__INIT;
	AUTO(api_free) Runtime__V1__PullImageResponse *answer = NULL;
	int r;

	spec.image = (char *)image;
	auth.username = creds->username;
	auth.password = creds->password;
	request.image = &spec;
	request.auth = creds->username ? &auth : NULL;
	r = image_call(cli, "PullImage", &request.base, &answer, e);
	if (r == 0)
		*ret_id = str_copy(answer->image_ref);
	return r;
}

static int pull(struct cli *cli, const char *image, const struct creds *creds, char **ret_id,
		char **ret_ref, struct hw_err *e)
{
	int r;

	r = pull_hawser(cli, image, creds, ret_id, ret_ref, e);
	if (r < 0 && is_unimplemented(e) && given.platform)
		return hawser_failed(cli, "--platform", e);
	if (r < 0 && is_unimplemented(e))
		r = pull_cri(cli, image, creds, ret_id, e);
	if (r == 0 && str_empty(*ret_id))
		r = err_text(e, -EPROTO, "the runtime returned no image ID");
	return r < 0 ? err_ctx(e, "pull \"%s\"", image) : 0;
}

int image_pull(struct cli *cli, const char *image, char **ret_id, struct hw_err *e)
{
	const struct creds none = { 0 };
	autofree char *ref = NULL;
	int r;

	cli->expected = PULL_SECONDS;
	r = pull(cli, image, &none, ret_id, &ref, e);
	cli->expected = 0;
	return r;
}

/* ---- command --------------------------------------------------------------------- */

static int run_pull(struct cli *cli, char **args, struct hw_err *e)
{
	AUTO(creds_done) struct creds creds = { 0 };
	autofree char *id = NULL, *ref = NULL, *line = NULL;
	int r;

	r = get_creds(cli, &creds, e);
	if (r < 0)
		return r;
	r = pull(cli, args[0], &creds, &id, &ref, e);
	if (r < 0)
		return r;
	if (cli->json) {
		struct value *v = value_new_object();

		value_set(v, "image", value_new_string(args[0]));
		value_set(v, "imageId", value_new_string(id));
		value_set(v, "imageRef", value_new_string(str_or(ref, "")));
		print_json(v);
		return 0;
	}
	line = text_clean(given.quiet || str_empty(ref) ? id : ref);
	printf("%s\n", line);
	return 0;
}

const struct command pull_command = {
	.name = "pull",
	.alias = "image pull",
	.group = "images",
	.args = "IMAGE",
	.min_args = 1,
	.max_args = 1,
	.is_long = true,
	.run = run_pull,
	.summary = "pull an image from its registry",
	.help = "The progress of each layer is shown on standard error. The name of the image\n"
		"with its digest is printed on standard output. Short names are completed as in\n"
		"Docker and Kubernetes: \"busybox\" means docker.io/library/busybox:latest.\n"
		"A password on the command line is visible to other users of this host.\n\n"
		"examples:\n"
		"  hawser pull registry.k8s.io/pause:3.10\n"
		"  hawser pull --creds ann --password-stdin example.com/tool:1 < secret\n",
	.options = options,
};
