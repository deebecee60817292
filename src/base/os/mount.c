/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/os/mount.c - remove mounts
 */
#include "base/os/mount.h"

#include <errno.h>
#include <sys/mount.h>

int mount_detach(const char *path, struct hw_err *e)
{
	while (umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) == 0)
		;
	if (errno != EINVAL && errno != ENOENT)
		return err_set(e, -errno, "unmount %s", path);
	return 0;
}
