/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/rtnl/tun.c - make a persistent tun or tap
 *
 * How:   /dev/net/tun, opened inside the namespace; the link stays when the
 *        descriptor is closed. Frames have no header of their own (IFF_NO_PI),
 *        as those that ip(8) makes.
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

/* IFF_TUN_EXCL: a tap that is there already would be taken over in silence. */
static int tun_create(int fd, const char *name, const struct kind_tun *data, struct hw_err *e)
{
	struct ifreq request = { .ifr_flags = IFF_NO_PI | IFF_TUN_EXCL };

	request.ifr_flags |= data->tap ? IFF_TAP : IFF_TUN;
	if (data->multi_queue)
		request.ifr_flags |= IFF_MULTI_QUEUE;
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	if (ioctl(fd, TUNSETIFF, &request) < 0)
		return err_set(e, errno == EBUSY ? -EEXIST : -errno, "make tun link %s", name);
	return 0;
}

static int tun_keep(int fd, const char *name, const struct kind_tun *data, struct hw_err *e)
{
	if (data->owner >= 0 && ioctl(fd, TUNSETOWNER, (unsigned long)data->owner) < 0)
		return err_set(e, -errno, "set owner of link %s", name);
	if (data->group >= 0 && ioctl(fd, TUNSETGROUP, (unsigned long)data->group) < 0)
		return err_set(e, -errno, "set group of link %s", name);
	if (ioctl(fd, TUNSETPERSIST, 1UL) < 0)
		return err_set(e, -errno, "keep link %s", name);
	return 0;
}

/** tun_make() - a link that a program can attach to later; gone again when this fails */
int tun_make(int netns_fd, const char *name, const struct kind_tun *data, struct hw_err *e)
{
	AUTO(netns_leave) struct netns_home home = NETNS_HOME;
	autoclose int fd = -1;
	int r = 0;

	if (strlen(name) >= IFNAMSIZ)
		return err_set(e, -ENAMETOOLONG, "make tun link %s", name);
	if (netns_fd >= 0)
		r = netns_enter(netns_fd, &home, e);
	if (r < 0)
		return r;
	fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return err_set(e, -errno, "open /dev/net/tun");
	r = tun_create(fd, name, data, e);
	if (r >= 0)
		r = tun_keep(fd, name, data, e);
	return r;
}
