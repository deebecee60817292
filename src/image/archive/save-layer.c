/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/archive/save-layer.c - the archive of one layer, read or made again by hawser-layer
 *
 * How:   hawser-layer checks each file and the whole against their digests and says
 *        by its exit status whether they were right. That comes after the bytes: who
 *        gets them learns of it by the call's end.
 */
#include "image/archive/save-layer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/os/child.h"
#include "base/os/file.h"
#include "base/os/proc.h"
#include "base/str.h"
#include "base/time.h"

#define CHUNK	  (256 << 10)
#define ERROR_MAX 4096

#define LAYER_TYPE "application/vnd.oci.image.layer.v1.tar"

/* Return: 1: there is something to read; 0: it has ended, and there is not; -ECANCELED, -ETIMEDOUT */
static int wait_for(int from, const struct child *child, const struct save_how *how,
		    struct hw_err *e)
{
	struct pollfd fds[] = { { .fd = from, .events = POLLIN },
				{ .fd = child_fd(child), .events = POLLIN },
				{ .fd = how->cancel_fd, .events = POLLIN } };
	int n;

	do
		n = poll(fds, ARRAY_SIZE(fds), time_left_ms(how->deadline));
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return err_set(e, -errno, "wait for hawser-layer");
	if (fds[2].revents)
		return err_text(e, -ECANCELED, "cancelled");
	if (n == 0)
		return err_text(e, -ETIMEDOUT, "the time allowed is over");
	return fds[0].revents ? 1 : 0;
}

/* All that comes, which is @size bytes and not one more. */
static int pass_on(int from, const struct child *child, int64_t size, const struct save_how *how,
		   struct hw_err *e)
{
	autofree char *chunk = mem_new(CHUNK);
	int r;

	while ((r = wait_for(from, child, how, e)) == 1) {
		ssize_t n = read(from, chunk, CHUNK);

		if (n < 0)
			return err_set(e, -errno, "read from hawser-layer");
		size -= n;
		if (size < 0)
			break;
		r = how->write(how->ctx, chunk, (size_t)n, e);
		if (r < 0)
			return r;
	}
	if (r >= 0 && size != 0)
		return err_text(e, -EBADMSG, "the archive has another size than it had");
	return r;
}

static int judge(int status, int errors, struct hw_err *e)
{
	AUTO(buf_done) struct buf text = { 0 };
	char name[64];

	if (status == 0)
		return 0;
	lseek(errors, 0, SEEK_SET);
	if (file_read_fd(errors, ERROR_MAX, &text, e) < 0)
		return e->code;
	if (text.len > 0 && text.data[text.len - 1] == '\n')
		text.data[text.len - 1] = '\0';
	return err_text(e, -EBADMSG, "%s: %s", proc_status_format(status, name, sizeof(name)),
			str_or(text.data, ""));
}

/* Start it, read it to its end, and wait for it, whatever happens. The descriptors stay open until
 * then: when a child has them is not known. */
static int run(const char *const *argv, int64_t size, const struct save_how *how, struct hw_err *e)
{
	autoclose int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
	autoclose int errors = memfd_create("errors", MFD_CLOEXEC);
	autoclose int out = -1, from = -1;
	struct child_start start = { .path = argv[0], .argv = argv, .in = in, .err = errors };
	struct hw_err ended;
	struct child *child;
	int pair[2], r, status = 0;

	if (in < 0 || errors < 0 || pipe2(pair, O_CLOEXEC) < 0)
		return err_set(e, -errno, "start hawser-layer");
	from = pair[0];
	start.out = out = pair[1];
	r = child_start(&start, &child, e);
	if (r < 0)
		return r;
	r = pass_on(from, child, size, how, e);
	if (r < 0)
		child_kill(child);
	if (child_wait(child, &status, &ended) < 0) {
		*e = ended;
		return ended.code;
	}
	/* why it failed says more than how much came, unless it was us who ended it */
	if (status != 0 && (r == 0 || (r == -EBADMSG && WIFEXITED(status))))
		return judge(status, errors, e);
	return r;
}

/* ---- what it is ------------------------------------------------------------ */

/* Return: its media type, by its first bytes */
static int look_at_blob(struct store *s, const struct store_layer *layer, const char **ret_type,
			struct hw_err *e)
{
	static const uint8_t gzip[] = { 0x1f, 0x8b }, zstd[] = { 0x28, 0xb5, 0x2f, 0xfd };
	autoclose int dir = store_layer_open(s, layer->chain_id, e);
	autoclose int fd = dir < 0 ? -1 : openat(dir, "blob", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	uint8_t first[sizeof(zstd)] = { 0 };

	if (dir < 0)
		return dir;
	if (fd < 0 || pread(fd, first, sizeof(first), 0) < 0)
		return err_set(e, -errno, "read the blob that was kept");
	*ret_type = LAYER_TYPE;
	if (memcmp(first, gzip, sizeof(gzip)) == 0)
		*ret_type = LAYER_TYPE "+gzip";
	else if (memcmp(first, zstd, sizeof(zstd)) == 0)
		*ret_type = LAYER_TYPE "+zstd";
	return 0;
}

/**
 * save_layer_look() - as what a layer goes into an archive
 *
 * Return: 0; -ENOTSUP: it cannot
 */
int save_layer_look(struct store *s, const struct store_layer *layer, struct save_layer *ret_saved,
		    struct hw_err *e)
{
	struct save_layer saved = { layer, layer->diff_id, layer->archive, LAYER_TYPE };
	int r = 0;

	if (layer->blob_kept) {
		saved.digest = layer->blob;
		saved.size = layer->blob_size;
		r = look_at_blob(s, layer, &saved.media_type, e);
	} else if (!layer->rebuildable) {
		r = err_text(e, -ENOTSUP, "it cannot be made again from its files");
	}
	if (r < 0)
		return err_ctx(e, "layer %s", layer->diff_id);
	*ret_saved = saved;
	return 0;
}

/**
 * save_layer() - the archive that a layer was unpacked from
 */
int save_layer(struct store *s, const struct save_layer *saved, const struct save_how *how,
	       struct hw_err *e)
{
	const struct store_layer *layer = saved->layer;
	autofree char *dir =
		str_printf("%s/layers/%s", store_root(s), layer->chain_id + strlen("sha256:"));
	const char *const archive[] = { how->program, "archive", dir, NULL };
	const char *const blob[] = { how->program, "blob", dir, layer->blob, NULL };

	if (run(layer->blob_kept ? blob : archive, saved->size, how, e) < 0)
		return err_ctx(e, "layer %s", layer->diff_id);
	return 0;
}
