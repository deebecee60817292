/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/rtnl/tun.c - create persistent tun and tap interfaces
 *
 * How:   /dev/net/tun is opened inside the namespace. The link is made persistent, so
 *        it still exists after the descriptor is closed. Frames have no extra header
 *        (IFF_NO_PI), as on links that ip(8) creates.
 */
#include "net/rtnl/tun.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/mem.h"
#include "net/netns.h"

int tun_create(int netns_fd, const char *name, const struct kind_tun *data, struct hw_err *e)
{
	/* Without IFF_TUN_EXCL the call would attach to an existing tap and succeed. */
	struct ifreq request = { .ifr_flags = IFF_NO_PI | IFF_TUN_EXCL };
	AUTO(netns_leave) struct netns_home home = NETNS_HOME;
	autoclose int fd = -1;
	int r = 0;

	if (strlen(name) >= IFNAMSIZ)
		return err_set(e, -ENAMETOOLONG, "create tun interface %s", name);
	if (netns_fd >= 0)
		r = netns_enter(netns_fd, &home, e);
	if (r < 0)
		return r;
	fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return err_set(e, -errno, "open /dev/net/tun");

	request.ifr_flags |= data->tap ? IFF_TAP : IFF_TUN;
	if (data->multi_queue)
		request.ifr_flags |= IFF_MULTI_QUEUE;
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	if (ioctl(fd, TUNSETIFF, &request) < 0)
		return err_set(e, errno == EBUSY ? -EEXIST : -errno, "create tun interface %s",
			       name);
	if (data->owner >= 0 && ioctl(fd, TUNSETOWNER, (unsigned long)data->owner) < 0)
		return err_set(e, -errno, "set owner of interface %s", name);
	if (data->group >= 0 && ioctl(fd, TUNSETGROUP, (unsigned long)data->group) < 0)
		return err_set(e, -errno, "set group of interface %s", name);
	if (ioctl(fd, TUNSETPERSIST, 1UL) < 0)
		return err_set(e, -errno, "make interface %s persistent", name);
	return 0;
}
