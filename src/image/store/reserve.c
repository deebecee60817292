/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/store/reserve.c - room to give room back, on a full disk
 *
 * Why:   to remove an image, or even to look what there is, the database has to
 *        write a little. On a full disk that fails, and the disk stays full.
 * How:   a file that is good for nothing but its size. It is given up when there is
 *        no space left, and made again as soon as there is.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/mem.h"
#include "image/store/state.h"

#define RESERVE_NAME  "reserve"
#define RESERVE_BYTES (2 << 20) /* the log grows to 1 MiB before it is written from the start */

void store_reserve(struct store *s)
{
	autoclose int fd =
		openat(s->dir, RESERVE_NAME, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	/* best effort: what there is of it helps as well */
	if (fd >= 0)
		(void)!fallocate(fd, 0, 0, RESERVE_BYTES);
}

bool store_unreserve(struct store *s)
{
	return unlinkat(s->dir, RESERVE_NAME, 0) == 0;
}
