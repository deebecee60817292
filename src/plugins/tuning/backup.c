/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/tuning/backup.c - saves and restores the values from before tuning
 *
 * What:  the former values of the attributes that were changed are in the attachment
 *        record, and in the backup file DATADIR/<container>_<interface>.json, in
 *        upstream's format.
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
#include "plugins/pod/check-pair.h"

#define BACKUP_MAX 65536

const struct hw_field tuning_backup_fields[] = {
	{ "mac", HW_STRING, HW_AT(struct tuning_backup, mac) },
	{ "promisc", HW_BOOL, HW_AT(struct tuning_backup, promisc),
	  .has = HW_HAS(struct tuning_backup, has_promisc) },
	{ "mtu", HW_INT, HW_AT(struct tuning_backup, mtu) },
	{ "allmulti", HW_BOOL, HW_AT(struct tuning_backup, allmulti),
	  .has = HW_HAS(struct tuning_backup, has_allmulti) },
	{ "txQLen", HW_INT, HW_AT(struct tuning_backup, txqlen),
	  .has = HW_HAS(struct tuning_backup, has_txqlen) },
	{ 0 },
};

static const char *data_dir_of(const struct hw_call *call)
{
	const struct tuning_conf *conf = call->conf;

	return str_empty(conf->data_dir) ? POD_TUNING_DIR : conf->data_dir;
}

static char *format_backup_path(const struct hw_call *call)
{
	return str_printf("%s/%s_%s.json", data_dir_of(call), call->container_id, call->ifname);
}

int tuning_backup_read(const struct hw_call *call, struct tuning_backup *ret, struct hw_err *e)
{
	AUTO(buf_done) struct buf text = { 0 };
	autofree char *path = format_backup_path(call);
	struct hw_err malformed;
	int r;

	*ret = (struct tuning_backup){ 0 };
	r = file_read_if_exists(AT_FDCWD, path, BACKUP_MAX, &text, e);
	if (r <= 0)
		return r;
	if (hw_field_decode(tuning_backup_fields, str_or(text.data, ""), text.len, ret,
			    &malformed) < 0)
		*ret = (struct tuning_backup){ 0 };
	return 1;
}

int tuning_backup_write(const struct hw_call *call, const struct tuning_backup *b, struct hw_err *e)
{
	autofree char *path = format_backup_path(call);
	autofree char *json = hw_field_encode(tuning_backup_fields, b, HW_JSON_PRETTY);
	AUTO(buf_done) struct buf text = { 0 };
	int r;

	/* Reduce the indentation to one space, as in upstream. */
	for (const char *c = json; *c; c++) {
		buf_putc(&text, *c);
		if (*c == '\n' && str_starts(c + 1, "    "))
			c += 3;
	}
	r = file_mkdirs(AT_FDCWD, data_dir_of(call), 0700, e);
	if (r < 0)
		return err_ctx(e, "failed to create backup directory");
	return file_replace(AT_FDCWD, path, text.data, text.len, 0600, 0, e);
}

int tuning_backup_remove(const struct hw_call *call, struct hw_err *e)
{
	autofree char *path = format_backup_path(call);

	return file_remove(AT_FDCWD, path, e);
}

void tuning_backup_fill(struct tuning_backup *b, const struct tuning *t, const struct link *link)
{
	char mac[HW_MAC_TEXT];

	*b = (struct tuning_backup){
		.mac = t->mac.len ? str_copy(hw_mac_format(&link->mac, mac)) : NULL,
		.mtu = t->mtu ? (int)link->mtu : 0,
		.has_promisc = t->promisc,
		.promisc = link->flags & IFF_PROMISC,
		.has_allmulti = t->has_allmulti,
		.allmulti = link->flags & IFF_ALLMULTI,
		.has_txqlen = t->has_txqlen,
		.txqlen = (int)link->txqlen,
	};
}

void tuning_backup_done(struct tuning_backup *b)
{
	hw_field_clear(tuning_backup_fields, b);
}

/* ---- restoring ------------------------------------------------------------------------------- */

/* Return: 0 for errors that would occur again in every later DEL: the object no longer exists, or
 * the kernel refuses the value. After any other error the DEL fails, and the next DEL tries again.
 */
static int ignore_permanent(int r)
{
	static const int permanent[] = {
		ENOENT, ENODEV, EINVAL, ERANGE, EOPNOTSUPP, EACCES, EROFS
	};

	for (size_t i = 0; i < ARRAY_SIZE(permanent); i++)
		if (r == -permanent[i])
			return 0;
	return r < 0 ? r : 0;
}

/* Each attribute is a separate request: if the kernel refuses one, the remaining ones are still
 * restored. */
static int restore_link(int netns, const char *ifname, const struct tuning_backup *b,
			struct hw_err *e)
{
	AUTO(rtnl_close) struct rtnl *nl = NULL;
	struct link link;
	struct hw_mac mac;
	struct hw_err ignored;
	int r;

	r = rtnl_open(netns, &nl, e);
	if (r >= 0)
		r = link_get(nl, ifname, &link, e);
	if (r < 0)
		return ignore_permanent(r);
	if (b->mtu > 0)
		link_set_mtu(nl, &link, (uint32_t)b->mtu);
	if (b->mac && hw_mac_parse(b->mac, &mac, &ignored) >= 0)
		link_set_mac(nl, &link, &mac);
	if (b->has_promisc)
		link_set_promisc(nl, &link, b->promisc);
	if (b->has_allmulti)
		link_set_allmulti(nl, &link, b->allmulti);
	if (b->has_txqlen && b->txqlen >= 0)
		link_set_txqlen(nl, &link, (uint32_t)b->txqlen);
	return ignore_permanent(rtnl_commit(nl, e));
}

int tuning_restore(const char *netns_path, const char *ifname, const struct hw_map *sysctl,
		   const struct tuning_backup *b, struct hw_err *e)
{
	autoclose int netns = -1;
	struct hw_err failed;
	int r;

	r = netns_open(netns_path, &netns, e);
	if (r < 0)
		return ignore_permanent(r);
	for (size_t i = sysctl->n; i-- > 0;) {
		int written;

		written = sysctl_write(netns, sysctl->keys[i], sysctl->values[i], &failed);
		if (ignore_permanent(written) < 0 && r >= 0) {
			*e = failed;
			r = failed.code;
		}
	}
	sysctl_release();
	if (restore_link(netns, ifname, b, &failed) < 0 && r >= 0) {
		*e = failed;
		r = failed.code;
	}
	return r;
}
