/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/unpacker.c - the process that unpacks a layer
 */
#include "fetch/unpacker.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/time.h"
#include "fetch/confine/confine.h"

/* Return: bytes read; 0 at the end; -ETIMEDOUT when none come */
static ssize_t read_some(const struct unpacker *p, char *bytes, struct hw_err *e)
{
	int64_t deadline = time_deadline(p->idle_ms);
	struct pollfd poller = { .fd = p->archive, .events = POLLIN };
	ssize_t n;

	for (;;) {
		int ready = poll(&poller, 1, time_left_ms(deadline));

		if (ready == 0 && time_is_over(deadline))
			return err_text(e, -ETIMEDOUT, "no more of the layer has come for %d ms",
					p->idle_ms);
		if (ready < 0 && errno != EINTR)
			return err_set(e, -errno, "wait for the layer");
		if (ready <= 0)
			continue;
		n = read(p->archive, bytes, p->chunk);
		if (n >= 0)
			return n;
		if (errno != EINTR && errno != EAGAIN)
			return err_set(e, -errno, "read the layer");
	}
}

/* A member that cannot be made is the archive's fault, but for these. */
static int blame(int r, struct hw_err *e)
{
	static const int ours[] = { EAGAIN, EDQUOT, EFBIG,  EIO,	EMFILE,
				    ENFILE, ENOMEM, ENOSPC, EOPNOTSUPP, EROFS };

	for (size_t i = 0; i < ARRAY_SIZE(ours); i++)
		if (r == -ours[i])
			return r;
	return e->code = -EBADMSG;
}

static int feed_all(const struct unpacker *p, struct unpack *u, struct hw_err *e)
{
	autofree char *bytes = mem_new(p->chunk);

	for (;;) {
		ssize_t n = read_some(p, bytes, e);
		int r;

		if (n <= 0)
			return (int)n;
		r = unpack_feed(u, bytes, (size_t)n, e);
		if (r < 0)
			return blame(r, e);
	}
}

/**
 * unpacker_run() - unpack a layer, for the rest of this process's life
 *
 * What reads files of the host, unpack_new(), is done before the process is
 * confined.
 *
 * Return: 0; -EBADMSG: the archive is not as it should be, or cannot be made; -EOPNOTSUPP:
 * it has what is not supported; -EFBIG: it is too large; -ETIMEDOUT: its bytes stopped
 * coming; or what is wrong with this machine
 */
int unpacker_run(const struct unpacker *p, struct unpacked *ret_unpacked, struct hw_err *e)
{
	AUTO(unpack_free) struct unpack *u = unpack_new(&p->unpack);
	int r = p->open ? 0 : confine(p->unpack.root, e);

	if (r == 0)
		r = feed_all(p, u, e);
	if (r < 0)
		return r;
	r = unpack_finish(u, p->diff_id, ret_unpacked, e);
	return r < 0 ? blame(r, e) : 0;
}
