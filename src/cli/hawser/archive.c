/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/hawser/archive.c - load, save: read images from an archive, write images to one
 *
 * How:   the archive is a file or a pipe. Calls of hawser.v1 transfer it in pieces,
 *        and hawser does not interpret them.
 * Rules: save never leaves an incomplete file: it writes to a temporary file in the
 *        same directory and renames it when it is complete. Archives are neither read
 *        from nor written to a terminal.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/hawser-v1.pb-c.h"
#include "base/mem.h"
#include "base/os/file.h"
#include "base/str.h"
#include "base/time.h"
#include "cli/hawser/hawser.h"
#include "cli/json.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "cli/text.h"

#define PIECE	   (256 << 10)
#define REDRAW_NS  (100 * 1000000)
#define CLEAR_LINE "\r\033[K"

static struct {
	struct hw_strings names;
	const char *output;
	int format; /* enum Hawser__V1__ArchiveFormat */
} given;

#define FORMATS "oci|docker"
static_assert(HAWSER__V1__ARCHIVE_FORMAT__ARCHIVE_ANY == 0 &&
		      HAWSER__V1__ARCHIVE_FORMAT__ARCHIVE_OCI == 1 &&
		      HAWSER__V1__ARCHIVE_FORMAT__ARCHIVE_DOCKER == 2,
	      "the values of the option --format are those of the protocol");

static const struct option_entry load_options[] = {
	{ "name", 0, "NAME", "name for the image; repeatable (default: names in the archive)",
	  .texts = &given.names },
	{ "format", 0, FORMATS, "format of the archive (default: detect it)",
	  .choice = &given.format },
	{ 0 },
};

static const struct option_entry save_options[] = {
	{ "output", 'o', "FILE", "write to FILE instead of standard output",
	  .text = &given.output },
	{ "format", 0, FORMATS, "format of the archive (default: oci)", .choice = &given.format },
	{ 0 },
};

/* ---- progress line ---------------------------------------------------------------- */

/* A line on standard error that is redrawn in place, and cleared at the end. */
struct meter {
	const char *what;     /* "loading"; NULL: show nothing */
	uint64_t done, total; /* bytes; total 0: unknown */
	int64_t drawn_at;     /* 0: not drawn yet */
};

static void meter_add(struct meter *m, uint64_t bytes)
{
	autofree char *line = NULL;

	m->done += bytes;
	if (!m->what || (m->drawn_at && time_now() - m->drawn_at < REDRAW_NS) ||
	    !terminal_can_redraw(STDERR_FILENO))
		return;
	line = progress_bytes(m->what, m->done, m->total, terminal_width(STDERR_FILENO) - 1);
	fprintf(stderr, CLEAR_LINE "%s", line);
	m->drawn_at = time_now();
}

static void meter_end(struct meter *m)
{
	if (m->drawn_at)
		fputs(CLEAR_LINE, stderr);
	m->drawn_at = 0;
}

AUTO_VALUE_DEFINE(meter_end, struct meter);

/* There is no progress line for a pipe: the program at its other end may use the same terminal. */
static struct meter start_meter(const struct cli *cli, const char *what, int fd)
{
	struct stat st;

	if (cli->json || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return (struct meter){ 0 };
	return (struct meter){ .what = what, .total = (uint64_t)st.st_size };
}

/* ---- load ------------------------------------------------------------------------ */

static int open_input(const char *path, int *ret_fd, struct hw_err *e)
{
	if (path && !str_equal(path, "-")) {
		*ret_fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
		return *ret_fd < 0 ? err_set(e, -errno, "open %s", path) : 0;
	}
	if (isatty(STDIN_FILENO))
		return err_text(e, -EINVAL,
				"cannot read an archive from a terminal: use a file or a pipe");
	*ret_fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
	return *ret_fd < 0 ? err_set(e, -errno, "read from standard input") : 0;
}

static int send_archive(const struct cli *cli, struct rpc_stream *stream, int fd,
			Hawser__V1__LoadRequest *request, struct hw_err *e)
{
	AUTO(meter_end) struct meter meter = start_meter(cli, "loading", fd);
	autofree uint8_t *piece = mem_new(PIECE);
	ssize_t n;
	int r;

	/* An empty piece marks the end of the archive. */
	do {
		do
			n = read(fd, piece, PIECE);
		while (n < 0 && errno == EINTR);
		if (n < 0)
			return err_set(e, -errno, "read the archive");
		request->data = (ProtobufCBinaryData){ (size_t)n, piece };
		r = api_stream_send(stream, &request->base, e);
		if (r < 0)
			return r;
		*request = (Hawser__V1__LoadRequest)HAWSER__V1__LOAD_REQUEST__INIT;
		meter_add(&meter, (uint64_t)n);
	} while (n > 0);
	rpc_stream_end_request(stream);
	return 0;
}

static int load_archive(struct cli *cli, int fd, Hawser__V1__LoadRequest *request,
			Hawser__V1__LoadResponse **ret, struct hw_err *e)
{
	const ProtobufCMessageDescriptor *type = &hawser__v1__load_response__descriptor;
	AUTO(message_free) ProtobufCMessage *answer = NULL, *more = NULL;
	AUTO(rpc_stream_free) struct rpc_stream *stream = NULL;
	int r;

	r = hawser_stream(cli, "Load", NULL, &stream, e);
	if (r < 0)
		return r;
	r = send_archive(cli, stream, fd, request, e);
	if (r < 0)
		return r;
	/* Receive the response, and then the end of the stream, which carries the status. */
	r = api_stream_receive(stream, type, &answer, e);
	if (r < 0)
		return r;
	if (!answer)
		return err_text(e, -EPROTO, "the runtime returned no result");
	r = api_stream_receive(stream, type, &more, e);
	if (r < 0)
		return r;
	*ret = (Hawser__V1__LoadResponse *)take_ptr(answer);
	return 0;
}

static void print_loaded(const Hawser__V1__LoadedImage *image)
{
	autofree char *id = text_short_id(image->id);

	if (!image->n_names)
		printf("loaded %s\n", id);
	for (size_t i = 0; i < image->n_names; i++) {
		autofree char *name = text_clean(image->names[i]);

		printf("loaded %s (%s)\n", name, id);
	}
}

static int run_load(struct cli *cli, char **args, struct hw_err *e)
{
	Hawser__V1__LoadRequest request = HAWSER__V1__LOAD_REQUEST__INIT;
	AUTO(api_free) Hawser__V1__LoadResponse *answer = NULL;
	bool is_stdin = !args[0] || str_equal(args[0], "-");
	autoclose int fd = -1;
	int r;

	request.names = given.names.v;
	request.n_names = given.names.n;
	request.format = (Hawser__V1__ArchiveFormat)given.format;
	r = open_input(args[0], &fd, e);
	if (r < 0)
		return r;
	if (load_archive(cli, fd, &request, &answer, e) < 0) {
		if (is_unimplemented(e))
			return hawser_failed(cli, cli->command->name, e);
		return err_ctx(e, "%s", is_stdin ? "standard input" : args[0]);
	}
	if (cli->json)
		print_json(message_to_json(&answer->base));
	for (size_t i = 0; i < answer->n_images && !cli->json; i++)
		print_loaded(answer->images[i]);
	return 0;
}

const struct command load_command = {
	.name = "load",
	.alias = "image load",
	.group = "images",
	.args = "[FILE]",
	.max_args = 1,
	.is_long = true,
	.run = run_load,
	.summary = "load images from an archive",
	.help = "The archive is read from FILE or from standard input. It must be a tar archive\n"
		"of an OCI image layout, or an archive written by docker save. It must not be\n"
		"compressed. Either all images in the archive are loaded, or none.\n\n"
		"examples:\n"
		"  hawser load tool.tar\n"
		"  podman save busybox | hawser load --name localhost/busybox:1\n",
	.options = load_options,
};

/* ---- save ------------------------------------------------------------------------ */

struct output {
	int fd;
	const char *path; /* NULL: standard output or a special file */
};

/* Path of the temporary file. It is global because the signal handler deletes the file. */
static char partial[4096];

static void remove_partial(int signal_number)
{
	unlink(partial);
	_exit(128 + signal_number);
}

/* Opens the temporary file, and installs signal handlers that delete it. */
static int open_partial(const char *path, struct output *out, struct hw_err *e)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	const struct sigaction action = { .sa_handler = remove_partial };
	const char *slash = strrchr(path, '/');
	int dir = slash ? (int)(slash - path) + 1 : 0;
	struct sigaction before;

	if (snprintf(partial, sizeof(partial), "%.*s.%s~", dir, path, path + dir) >=
	    (int)sizeof(partial))
		return err_set(e, -ENAMETOOLONG, "write %s", path);
	out->fd = open(partial, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
	if (out->fd < 0)
		return err_set(e, -errno, "write %s", path);
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
		sigaction(signals[i], NULL, &before);
		if (before.sa_handler != SIG_IGN)
			sigaction(signals[i], &action, NULL);
	}
	out->path = path;
	return 0;
}

static int open_output(const char *path, struct output *out, struct hw_err *e)
{
	struct stat st;

	if (!path || str_equal(path, "-")) {
		if (isatty(STDOUT_FILENO))
			return err_text(e, -EINVAL,
					"cannot write an archive to a terminal: use --output "
					"FILE or a pipe");
		out->fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
	} else if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
		out->fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	} else {
		return open_partial(path, out, e);
	}
	return out->fd < 0 ? err_set(e, -errno, "write %s", str_or(path, "to standard output")) : 0;
}

/* @r: 0 if the archive is complete, or a negative errno. Only a complete archive is renamed to its
 * path. */
static int close_output(struct output *out, int r, struct hw_err *e)
{
	if (r == 0 && out->path && fsync(out->fd) < 0)
		r = err_set(e, -errno, "write %s", out->path);
	if (close(out->fd) < 0 && r == 0)
		r = err_set(e, -errno, "write the archive");
	if (!out->path)
		return r;
	if (r == 0 && rename(partial, out->path) < 0)
		r = err_set(e, -errno, "rename %s to %s", partial, out->path);
	if (r < 0)
		unlink(partial);
	return r;
}

static int receive_archive(const struct cli *cli, struct rpc_stream *stream, int fd,
			   struct hw_err *e)
{
	AUTO(meter_end) struct meter meter = start_meter(cli, "saving", fd);
	int r;

	do {
		AUTO(api_free) Hawser__V1__SaveResponse *piece = NULL;

		r = api_stream_receive(stream, &hawser__v1__save_response__descriptor,
				       (ProtobufCMessage **)&piece, e);
		if (r == 1 && file_write_fd(fd, piece->data.data, piece->data.len, e) < 0)
			r = err_ctx(e, "write the archive");
		if (r == 1)
			meter_add(&meter, piece->data.len);
	} while (r == 1);
	return r;
}

static int save_archive(struct cli *cli, const Hawser__V1__SaveRequest *request, int fd,
			struct hw_err *e)
{
	AUTO(rpc_stream_free) struct rpc_stream *stream = NULL;
	int r;

	r = hawser_stream(cli, "Save", &request->base, &stream, e);
	if (r == 0)
		r = receive_archive(cli, stream, fd, e);
	return r < 0 ? hawser_failed(cli, cli->command->name, e) : 0;
}

static int run_save(struct cli *cli, char **args, struct hw_err *e)
{
	Hawser__V1__SaveRequest request = HAWSER__V1__SAVE_REQUEST__INIT;
	struct output out = { .fd = -1 };
	int r;

	request.images = args;
	while (args[request.n_images])
		request.n_images++;
	request.format = (Hawser__V1__ArchiveFormat)given.format;
	r = open_output(given.output, &out, e);
	if (r < 0)
		return r;
	return close_output(&out, save_archive(cli, &request, out.fd, e), e);
}

const struct command save_command = {
	.name = "save",
	.alias = "image save",
	.group = "images",
	.args = "IMAGE...",
	.min_args = 1,
	.max_args = -1,
	.is_long = true,
	.run = run_save,
	.summary = "save images to an archive",
	.help = "All images are written to one archive: to standard output, or with --output to\n"
		"a file. If hawser fails, no incomplete file is left.\n\n"
		"examples:\n"
		"  hawser save -o tool.tar example.com/tool:1\n"
		"  hawser save --format docker busybox | docker load\n",
	.options = save_options,
};
