/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/unpacker.c - the unpacker: the process that unpacks one layer
 */
#include "fetch/unpacker.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/time.h"
#include "confine/confine.h"

/* Return: bytes read; 0: EOF; -ETIMEDOUT; or negative errno */
static ssize_t read_some(const struct unpacker *p, char *bytes, struct hw_err *e)
{
	int64_t deadline = time_deadline(p->idle_ms);
	struct pollfd poller = { .fd = p->archive, .events = POLLIN };
	ssize_t n;

	for (;;) {
		int ready = poll(&poller, 1, time_left_ms(deadline));

		if (ready == 0 && time_has_passed(deadline))
			return err_text(e, -ETIMEDOUT, "layer data stalled for %d ms", p->idle_ms);
		if (ready < 0 && errno != EINTR)
			return err_set(e, -errno, "wait for layer data");
		if (ready <= 0)
			continue;
		n = read(p->archive, bytes, p->chunk);
		if (n >= 0)
			return n;
		if (errno != EINTR && errno != EAGAIN)
			return err_set(e, -errno, "read layer data");
	}
}

/* Keeps errors caused by this machine, by our limits or by unsupported members (-EOPNOTSUPP). All
 * others are caused by the archive and become -EBADMSG. */
static int classify_error(int r, struct hw_err *e)
{
	static const int local[] = { EAGAIN, EDQUOT, EFBIG,  EIO,	 EMFILE,
				     ENFILE, ENOMEM, ENOSPC, EOPNOTSUPP, EROFS };

	for (size_t i = 0; i < ARRAY_SIZE(local); i++)
		if (r == -local[i])
			return r;
	return e->code = -EBADMSG;
}

int unpacker_run(const struct unpacker *p, struct unpacked *ret_unpacked, struct hw_err *e)
{
	AUTO(unpack_free) struct unpack *u = unpack_new(&p->unpack); /* must be before confine() */
	autofree char *bytes = NULL;
	ssize_t n;
	int r = 0;

	if (!p->open)
		r = confine(CONFINE_UNPACKER, p->unpack.root, e);
	if (r < 0)
		return err_replace(e, -EINVAL, -EIO); /* the request is not wrong */
	bytes = mem_new(p->chunk);
	while ((n = read_some(p, bytes, e)) > 0) {
		r = unpack_feed(u, bytes, (size_t)n, e);
		if (r < 0)
			return classify_error(r, e);
	}
	if (n < 0)
		return (int)n;
	r = unpack_finish(u, p->diff_id, ret_unpacked, e);
	return r < 0 ? classify_error(r, e) : 0;
}
