/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/tuning/backup.c - the attributes that an interface had before tuning
 *
 * DATADIR/<container>_<interface>.json, in upstream's form: an object with the
 * former values of just those attributes that were changed.
 */
#include "plugins/tuning/tuning.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/os/file.h"
#include "base/str.h"
#include "net/netns.h"
#include "net/rtnl/link.h"
#include "net/rtnl/rtnl.h"
#include "net/sysctl.h"
#include "plugins/pod/check.h"

#define TUNING_SAVED_MAX 65536

static const struct hw_field saved_fields[] = {
	{ "mac", HW_STRING, HW_AT(struct saved, mac) },
	{ "promisc", HW_BOOL, HW_AT(struct saved, promisc),
	  .has = HW_HAS(struct saved, has_promisc) },
	{ "mtu", HW_INT, HW_AT(struct saved, mtu) },
	{ "allmulti", HW_BOOL, HW_AT(struct saved, allmulti),
	  .has = HW_HAS(struct saved, has_allmulti) },
	{ "txQLen", HW_INT, HW_AT(struct saved, txqlen), .has = HW_HAS(struct saved, has_txqlen) },
	{ 0 },
};

static char *saved_dir(const struct hw_call *call)
{
	const struct tuning_conf *conf = call->conf;

	return str_copy(str_empty(conf->data_dir) ? POD_TUNING_DIR : conf->data_dir);
}

static char *saved_path(const struct hw_call *call)
{
	autofree char *dir = saved_dir(call);

	return str_printf("%s/%s_%s.json", dir, call->container_id, call->ifname);
}

/**
 * saved_read() - what an earlier ADD saved
 *
 * Return: 1, 0 when there is no file
 */
int saved_read(const struct hw_call *call, struct saved *ret, struct hw_err *e)
{
	AUTO(buf_done) struct buf text = { 0 };
	autofree char *path = saved_path(call);
	struct hw_err torn;

	*ret = (struct saved){ 0 };
	int r = file_read(AT_FDCWD, path, TUNING_SAVED_MAX, &text, e);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	if (hw_field_decode(saved_fields, str_or(text.data, ""), text.len, ret, &torn) < 0)
		*ret = (struct saved){ 0 };
	return 1;
}

/* Indented by one space, as upstream does it. */
static char *saved_format(const struct saved *s)
{
	AUTO(buf_done) struct buf b = { 0 };
	autofree char *json = hw_field_encode(saved_fields, s, HW_JSON_PRETTY);

	for (const char *c = json; *c; c++) {
		buf_putc(&b, *c);
		if (*c == '\n' && str_starts(c + 1, "    "))
			c += 3;
	}
	return buf_take(&b);
}

/**
 * saved_write() - save it, in upstream's place
 */
int saved_write(const struct hw_call *call, const struct saved *s, struct hw_err *e)
{
	autofree char *dir = saved_dir(call), *path = saved_path(call), *json = saved_format(s);

	int r = file_mkdirs(AT_FDCWD, dir, 0700, e);
	if (r < 0)
		return err_ctx(e, "failed to create backup directory");
	return file_replace(AT_FDCWD, path, json, strlen(json), 0600, 0, e);
}

/**
 * saved_remove() - forget it
 */
int saved_remove(const struct hw_call *call, struct hw_err *e)
{
	autofree char *path = saved_path(call);

	return file_remove(AT_FDCWD, path, e) < 0 ? e->code : 0;
}

/**
 * saved_fill() - what there is now of what will be changed
 */
void saved_fill(struct saved *s, const struct tuning *t, const struct link *link)
{
	char mac[HW_MAC_TEXT];

	if (t->mac.len && !s->mac)
		s->mac = str_copy(hw_mac_format(&link->mac, mac));
	if (t->mtu && !s->mtu)
		s->mtu = (int)link->mtu;
	if (t->promisc && !s->has_promisc)
		s->promisc = link->flags & IFF_PROMISC;
	if (t->has_allmulti && !s->has_allmulti)
		s->allmulti = link->flags & IFF_ALLMULTI;
	if (t->has_txqlen && !s->has_txqlen)
		s->txqlen = (int)link->txqlen;
	s->has_promisc |= t->promisc;
	s->has_allmulti |= t->has_allmulti;
	s->has_txqlen |= t->has_txqlen;
}

/**
 * saved_done() - free what it holds
 */
void saved_done(struct saved *s)
{
	hw_field_clear(saved_fields, s);
}

/* ---- restore -------------------------------------------------------------------------------- */

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
