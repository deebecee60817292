/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/tuning/restore.c - give a pod its former sysctls and attributes back
 */
#include "plugins/tuning/restore.h"

#include <errno.h>

#include "base/err.h"
#include "base/mem.h"
#include "net/netns.h"
#include "net/rtnl/link.h"
#include "net/rtnl/rtnl.h"
#include "net/sysctl.h"

/* What is gone needs no restoring, and what the kernel refuses it will refuse again; all else may
 * pass, so the DEL fails and the next one goes on. */
static int unless_final(int r)
{
	static const int final[] = { ENOENT, ENODEV, EINVAL, ERANGE, EOPNOTSUPP, EACCES, EROFS };

	for (size_t i = 0; i < ARRAY_SIZE(final); i++)
		if (r == -final[i])
			return 0;
	return r < 0 ? r : 0;
}

static int restore_sysctls(int netns, const struct hw_map *former, struct hw_err *e)
{
	struct hw_err why;
	int r = 0;

	for (size_t i = former->n; i-- > 0;)
		if (unless_final(sysctl_write(netns, former->keys[i], former->values[i], &why)) <
			    0 &&
		    r >= 0) {
			*e = why;
			r = why.code;
		}
	return r;
}

/* Each on its own: one that the kernel refuses does not keep the others from being restored. */
static int restore_link(int netns, const char *ifname, const struct saved *s, struct hw_err *e)
{
	AUTO(rtnl_close) struct rtnl *nl = NULL;
	struct link link;
	struct hw_mac mac;
	struct hw_err none;

	int r = rtnl_open(netns, &nl, e);
	if (r >= 0)
		r = link_get(nl, ifname, &link, e);
	if (r < 0)
		return unless_final(r);
	if (s->mtu > 0)
		link_set_mtu(nl, &link, (uint32_t)s->mtu);
	if (s->mac && hw_mac_parse(s->mac, &mac, &none) >= 0)
		link_set_mac(nl, &link, &mac);
	if (s->has_promisc)
		link_set_promisc(nl, &link, s->promisc);
	if (s->has_allmulti)
		link_set_allmulti(nl, &link, s->allmulti);
	if (s->has_txqlen && s->txqlen >= 0)
		link_set_txqlen(nl, &link, (uint32_t)s->txqlen);
	return unless_final(rtnl_commit(nl, e));
}

/**
 * tuning_restore() - give back what is known; the one does not wait for the other
 */
int tuning_restore(const struct hw_call *call, const struct hw_map *sysctl, const struct saved *s,
		   struct hw_err *e)
{
	autoclose int netns = -1;
	struct hw_err why;

	int r = netns_open(call->netns, &netns, e);
	if (r < 0)
		return unless_final(r);
	r = restore_sysctls(netns, sysctl, e);
	if (restore_link(netns, call->ifname, s, &why) < 0 && r >= 0) {
		*e = why;
		r = why.code;
	}
	return r;
}
