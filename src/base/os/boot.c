/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/os/boot.c - which boot of the kernel this is
 */
#include "base/os/boot.h"

#include <fcntl.h>
#include <pthread.h>
#include <string.h>

#include "base/buf.h"
#include "base/os/file.h"

static char id[BOOT_ID];

static void read_id(void)
{
	AUTO(buf_done) struct buf b = { 0 };
	struct hw_err e;
	size_t len;

	if (file_read(AT_FDCWD, "/proc/sys/kernel/random/boot_id", 4096, &b, &e) < 0 || !b.len)
		return;
	len = strcspn(b.data, "\n");
	if (len < sizeof(id))
		memcpy(id, b.data, len);
}

const char *boot_id(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, read_id);
	return id;
}
