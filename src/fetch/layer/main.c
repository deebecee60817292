/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/layer/main.c - hawser-layer: verifies and rebuilds a stored layer, for the daemon
 *
 * What:  hawser-layer verify DIR              compare the files with the recipe, send a report
 *        hawser-layer verify-blob DIR DIGEST  compare the blob with its digest, send a report
 *        hawser-layer archive DIR             rebuild the layer's archive, write it to descriptor 3
 *        hawser-layer blob DIR DIGEST         write the stored blob to descriptor 3
 *        DIR contains root/, recipe and, for some layers, blob; see image/store/store.h. Standard
 *        input is a socket for the one message that each command sends (image/protocol/job.h). Not
 *        for direct use.
 * Rules: ends when the socket is closed (base/os/helper.h). Exit status 0, or 1 after a FAILED
 *        message. Before the first file is opened, the process is confined to DIR, which becomes
 *        its root, read-only (confine.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/os/file.h"
#include "base/os/helper.h"
#include "base/str.h"
#include "confine/confine.h"
#include "fetch/codec/sha256.h"
#include "fetch/layer/rebuild.h"
#include "fetch/recipe/recipe.h"
#include "image/protocol/job.h"
#include "image/protocol/layer-report.h"

#define CHUNK	(256 << 10)
#define SEND_MS (30 * 1000)	    /* timeout for sending a message */
#define MEMORY	((size_t)256 << 20) /* limit in bytes */

struct stored_layer {
	int root, recipe;
};

static int enter_layer(const char *dir, struct hw_err *e)
{
	autoclose int fd = -1;

	sha256_free(sha256_new()); /* at its first use OpenSSL reads its configuration file */
	fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_set(e, -errno, "open %s", dir);
	return confine(CONFINE_LAYER, fd, e);
}

static int open_layer(const char *dir, struct stored_layer *ret, struct hw_err *e)
{
	int r;

	r = enter_layer(dir, e);
	if (r < 0)
		return r;
	ret->recipe = -1;
	ret->root = open("/root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (ret->root < 0)
		return err_set(e, -errno, "open %s/root", dir);
	ret->recipe = open("/recipe", O_RDONLY | O_CLOEXEC);
	return ret->recipe < 0 ? err_set(e, -errno, "open %s/recipe", dir) : 0;
}

/* ---- verify ------------------------------------------------------------------------- */

/* Paths in an archive may contain any bytes, but a report must be UTF-8: invalid bytes are
 * escaped. */
static void add_damaged(struct verify_report *report, const char *path, const char *why)
{
	autofree char *text = str_printf("%s: %s", path, why);
	AUTO(buf_done) struct buf escaped = { 0 };

	report->n_damaged++;
	if (report->damaged.n >= VERIFY_NAMED_MAX)
		return;
	for (const char *p = text; *p;) {
		size_t n = str_utf8_len(p);

		if (n > 0)
			buf_add(&escaped, p, n);
		else
			buf_printf(&escaped, "\\x%02x", (unsigned char)*p);
		p += n ? n : 1;
	}
	strings_add(&report->damaged, escaped.data);
}

static int on_damaged(void *ctx, const char *path, const char *why, struct hw_err *e)
{
	(void)e;
	add_damaged(ctx, path, why);
	return 0;
}

static int count_other(void *ctx, const void *data, size_t len, struct hw_err *e)
{
	(void)ctx;
	(void)data;
	(void)len;
	(void)e;
	return 0;
}

static int count_file(void *ctx, const struct recipe_file *file, struct hw_err *e)
{
	struct verify_report *report = ctx;

	(void)e;
	report->files++;
	for (size_t i = 0; i < file->n_pieces; i++)
		report->bytes += file->pieces[i].len;
	return 0;
}

static int count_end(void *ctx, int64_t size, const uint8_t sum[DIGEST_SIZE], struct hw_err *e)
{
	(void)ctx;
	(void)size;
	(void)sum;
	(void)e;
	return 0;
}

static int send_report(const struct verify_report *report, struct hw_err *e)
{
	return job_send_table(HELPER_SOCKET, JOB_REPORT, verify_fields, report, -1, SEND_MS, e);
}

/* An unreadable recipe is also reported as damage. */
static int verify_layer(char **args, struct hw_err *e)
{
	static const struct recipe_sink counter = { count_other, count_file, count_end };
	AUTO(verify_report_done) struct verify_report report = { 0 };
	struct stored_layer layer;
	int r;

	r = open_layer(args[0], &layer, e);
	if (r < 0)
		return r;
	if (recipe_read(layer.recipe, &counter, &report, e) < 0 ||
	    rebuild_verify(layer.recipe, layer.root, EXPECTED_MAX, on_damaged, &report, e) < 0)
		add_damaged(&report, "recipe", e->msg);
	return send_report(&report, e);
}

/* ---- archive ------------------------------------------------------------------------ */

static int send_done(struct hw_err *e)
{
	return job_send(HELPER_SOCKET, JOB_DONE, "", 0, -1, SEND_MS, e);
}

static int write_archive(char **args, struct hw_err *e)
{
	struct stored_layer layer;
	int r;

	r = open_layer(args[0], &layer, e);
	if (r == 0)
		r = rebuild_archive(layer.recipe, layer.root, HELPER_KEPT, e);
	return r < 0 ? r : send_done(e);
}

/* ---- blob --------------------------------------------------------------------------- */

/* Reads the blob, and writes it to @out unless @out is -1. A digest mismatch (-EBADMSG) is detected
 * only after all bytes were written. */
static int copy_blob(char **args, int out, int64_t *ret_bytes, struct hw_err *e)
{
	AUTO(sha256_free) struct sha256 *hash = sha256_new();
	autofree char *path = str_printf("%s/blob", args[0]), *chunk = mem_new(CHUNK);
	autoclose int fd = -1;
	uint8_t sum[DIGEST_SIZE];
	char digest[DIGEST_TEXT];
	ssize_t n;
	int r;

	r = enter_layer(args[0], e);
	if (r < 0)
		return r;
	fd = open("/blob", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return err_set(e, -errno, "open %s", path);
	while ((n = read(fd, chunk, CHUNK)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_set(e, -errno, "read %s", path);
		sha256_add(hash, chunk, (size_t)n);
		if (out >= 0 && file_write_fd(out, chunk, (size_t)n, e) < 0)
			return e->code;
		*ret_bytes += n;
	}
	sha256_end(hash, sum);
	digest_format(sum, digest);
	if (!str_equal(digest, args[1]))
		return err_text(e, -EBADMSG, "%s: digest mismatch: got %s, want %s", path, digest,
				args[1]);
	return 0;
}

static int write_blob(char **args, struct hw_err *e)
{
	int64_t bytes = 0;
	int r;

	r = copy_blob(args, HELPER_KEPT, &bytes, e);
	return r < 0 ? r : send_done(e);
}

static int verify_blob(char **args, struct hw_err *e)
{
	AUTO(verify_report_done) struct verify_report report = { .files = 1 };
	int r;

	r = copy_blob(args, -1, &report.bytes, e);
	if (r == -EBADMSG || r == -ENOENT || r == -EIO)
		add_damaged(&report, "stored blob", e->msg);
	else if (r < 0)
		return r;
	return send_report(&report, e);
}

static const struct {
	const char *name;
	int n_args;
	int (*run)(char **args, struct hw_err *e);
} commands[] = {
	{ "verify", 1, verify_layer },
	{ "verify-blob", 2, verify_blob },
	{ "archive", 1, write_archive },
	{ "blob", 2, write_blob },
};

static int run_command(int argc, char **argv, struct hw_err *e)
{
	int r;

	r = helper_init(MEMORY, e);
	if (r < 0)
		return r;
	for (size_t i = 0; argc > 2 && i < ARRAY_SIZE(commands); i++)
		if (str_equal(argv[1], commands[i].name) && argc - 2 == commands[i].n_args)
			return commands[i].run(argv + 2, e);
	return err_text(e, -EINVAL, "unknown command or wrong number of arguments");
}

int main(int argc, char **argv)
{
	struct hw_err e, ignored;
	struct stat in;

	if (fstat(STDIN_FILENO, &in) < 0 || !S_ISSOCK(in.st_mode)) {
		fputs("hawser-layer: standard input is not a socket; hawser-cri starts this "
		      "program, it is not for direct use\n",
		      stderr);
		return EXIT_FAILURE;
	}
	file_open_missing_stdio(O_PATH);
	/* _exit(): a leak detector, which runs at exit, needs more than the confinement allows */
	if (run_command(argc, argv, &e) == 0)
		_exit(EXIT_SUCCESS);
	job_send_failed(HELPER_SOCKET, &e, SEND_MS, &ignored);
	_exit(EXIT_FAILURE);
}
