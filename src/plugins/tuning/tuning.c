/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/tuning/tuning.c - plugin tuning: sysctls of a pod, and attributes of its interface
 *
 * What:  ADD changes sysctls and attributes, and passes the previous result on, with
 *        the new MAC address in it. CHECK verifies that the values have not changed
 *        since. DEL restores the former values if the namespace still exists.
 * How:   the former values are saved in the attachment record. The attributes are also
 *        saved in the same file and format as in upstream,
 *        DATADIR/<container>_<interface>.json, so that upstream's DEL can undo our
 *        ADD, and our DEL can undo upstream's ADD.
 * Rules: DEL succeeds if the interface or the namespace no longer exists. It fails
 *        only if a later DEL may succeed.
 *        The name of the file does not contain the network. If another network has a
 *        record of the interface, the file belongs to that network, and is neither
 *        written nor removed; except by a DEL without a record whose prevResult names the
 *        interface, if the configurations of both networks are the same: then the network
 *        was renamed. ADD writes the file last, so that a failed ADD does not change the
 *        file of an earlier ADD by upstream's plugin.
 */
#include <errno.h>

#include <hawser/plugin.h>

#include "base/err.h"
#include "base/json/field.h"
#include "base/mem.h"
#include "base/str.h"
#include "cni/lock.h"
#include "cni/plugin/attach.h"
#include "cni/plugin/record.h"
#include "net/netns.h"
#include "net/rtnl/link.h"
#include "net/rtnl/rtnl.h"
#include "net/sysctl.h"
#include "plugins/tuning/tuning.h"

/* hw_call.created: our part of the attachment record */
struct tuning_record {
	struct hw_map sysctl; /* former values by path */
	struct tuning_backup link;
	bool has_link;	 /* false if no attribute was changed, and in records of 0.1.0 */
	bool file_begun; /* not stored: this ADD has written the file, or tried to */
};

static const struct hw_field tuning_record_fields[] = {
	{ "sysctl", HW_MAP, HW_AT(struct tuning_record, sysctl) },
	{ "link", HW_OBJECT, HW_AT(struct tuning_record, link), .sub = tuning_backup_fields,
	  .has = HW_HAS(struct tuning_record, has_link) },
	{ 0 },
};

/* Does the backup file belong to an attachment in another network? */
static bool is_file_of_other_network(const struct hw_call *call)
{
	autofree char *state_dir = state_dir_default();

	return record_in_other_network(state_dir, "tuning", call->network, call->container_id,
				       call->ifname);
}

static bool has_key(const struct hw_map *map, const char *key)
{
	for (size_t i = 0; i < map->n; i++)
		if (str_equal(map->keys[i], key))
			return true;
	return false;
}

static void add_value(struct hw_map *map, const char *key, const char *value)
{
	map->keys = mem_resize(map->keys, map->n + 1, sizeof(*map->keys));
	map->values = mem_resize(map->values, map->n + 1, sizeof(*map->values));
	map->keys[map->n] = str_copy(key);
	map->values[map->n++] = str_copy(value);
}

/* ---- ADD ----------------------------------------------------------------------------------- */

/* The pod's namespace, and the interface in it */
struct tuning_target {
	int netns;
	struct rtnl *nl;
	struct link link;
};

static void target_done(struct tuning_target *target)
{
	mem_close_fd(&target->netns);
	rtnl_close(target->nl);
	sysctl_release();
}
AUTO_VALUE_DEFINE(target_done, struct tuning_target);

static int open_link(struct tuning_target *target, const char *ifname, struct hw_err *e)
{
	int r;

	r = rtnl_open(target->netns, &target->nl, e);
	return r < 0 ? r : link_get(target->nl, ifname, &target->link, e);
}

/* Saves the former values in the record, before anything is changed. */
static int record_values(struct hw_call *call, const struct tuning_target *target,
			 const struct tuning *t, struct hw_err *e)
{
	struct tuning_record *record = call->created;

	for (size_t i = 0; i < t->n_sysctls; i++) {
		autofree char *value = NULL;
		int r;

		r = sysctl_read(target->netns, t->sysctls[i].path, &value, e);
		if (r < 0 && r != -EACCES) /* -EACCES: the sysctl is write-only */
			return r;
		if (value && !has_key(&record->sysctl, t->sysctls[i].path))
			add_value(&record->sysctl, t->sysctls[i].path, value);
	}
	record->has_link = tuning_has_attributes(t);
	if (record->has_link)
		tuning_backup_fill(&record->link, t, &target->link);
	return hw_record_save(call, e);
}

static int change_link(struct hw_call *call, struct tuning_target *target, const struct tuning *t,
		       struct hw_err *e)
{
	struct tuning_record *record = call->created;
	char mac[HW_MAC_TEXT];
	int r;

	if (t->mac.len)
		link_set_mac(target->nl, &target->link, &t->mac);
	if (t->promisc)
		link_set_promisc(target->nl, &target->link, true);
	if (t->mtu)
		link_set_mtu(target->nl, &target->link, (uint32_t)t->mtu);
	if (t->has_allmulti)
		link_set_allmulti(target->nl, &target->link, t->allmulti);
	if (t->has_txqlen)
		link_set_txqlen(target->nl, &target->link, (uint32_t)t->txqlen);
	r = rtnl_commit(target->nl, e);
	if (r < 0)
		return r;
	for (size_t i = 0; t->mac.len && i < call->result->n_ifaces; i++) {
		struct hw_iface *iface = &call->result->ifaces[i];

		if (!str_equal(iface->name, call->ifname))
			continue;
		free(iface->mac);
		iface->mac = str_copy(hw_mac_format(&t->mac, mac));
	}
	if (is_file_of_other_network(call))
		return 0;
	record->file_begun = true;
	return tuning_backup_write(call, &record->link, e);
}

static int apply_changes(struct hw_call *call, struct tuning_target *target, const struct tuning *t,
			 struct hw_err *e)
{
	int r;

	r = record_values(call, target, t, e);
	for (size_t i = 0; r >= 0 && i < t->n_sysctls; i++)
		r = sysctl_write(target->netns, t->sysctls[i].path, t->sysctls[i].value, e);
	if (r < 0 || !tuning_has_attributes(t))
		return r;
	return change_link(call, target, t, e);
}

static int tuning_add(struct hw_call *call, struct hw_err *e)
{
	AUTO(tuning_done) struct tuning t = { 0 };
	AUTO(target_done) struct tuning_target target = { .netns = -1 };
	int r;

	r = tuning_init(&t, call, e);
	if (r < 0)
		return r;
	r = tuning_check_allowed(&t, e);
	if (r < 0)
		return r;
	if (!call->prev)
		return err_text(e, -EINVAL, "Required prevResult missing");
	r = netns_open(call->netns, &target.netns, e);
	if (r < 0)
		return r;
	if (tuning_has_attributes(&t))
		r = open_link(&target, call->ifname, e);
	if (r < 0)
		return r;
	if (t.mac.len && t.mac.len != target.link.mac.len)
		return err_cni(e, HW_CNI_INVALID_CONFIG,
			       "invalid args %s for MAC addr: interface %s has MAC addresses of "
			       "%u bytes",
			       t.mac_text, target.link.name, (unsigned)target.link.mac.len);
	r = apply_changes(call, &target, &t, e);
	return r < 0 ? r : 0;
}

/* ---- DEL ------------------------------------------------------------------------------------ */

static bool is_named_by_result(const struct hw_call *call)
{
	for (size_t i = 0; call->prev && i < call->prev->n_ifaces; i++)
		if (!str_empty(call->prev->ifaces[i].sandbox) &&
		    str_equal(call->prev->ifaces[i].name, call->ifname))
			return true;
	return false;
}

/* The undo of a failed ADD uses and removes only what that ADD has saved: the file may be that of an
 * earlier ADD by upstream's plugin. */
static int tuning_del(struct hw_call *call, struct hw_err *e)
{
	const struct tuning_record *record = call->created;
	AUTO(tuning_backup_done) struct tuning_backup from_file = { 0 };
	bool renamed = !call->recorded && is_named_by_result(call) && attach_is_renamed(call);
	const char *netns = renamed ? attach_requested_netns(call) : call->netns;
	bool use_file = record->file_begun || !str_equal(call->command, "ADD");
	int r = 0;

	use_file = use_file && (renamed || !is_file_of_other_network(call));
	if (use_file && !record->has_link)
		r = tuning_backup_read(call, &from_file, e);
	if (r >= 0 && !str_empty(netns))
		r = tuning_restore(netns, call->ifname, &record->sysctl,
				   record->has_link ? &record->link : &from_file, e);
	return r < 0 || !use_file ? r : tuning_backup_remove(call, e);
}

/* ---- CHECK ----------------------------------------------------------------------------------- */

static int check_link(const struct link *link, const struct tuning *t, struct hw_err *e)
{
	bool promisc = link->flags & IFF_PROMISC, allmulti = link->flags & IFF_ALLMULTI;
	char want[HW_MAC_TEXT], has[HW_MAC_TEXT];

	hw_mac_format(&t->mac, want);
	if (t->mac.len && !str_equal(want, hw_mac_format(&link->mac, has)))
		return err_text(
			e, -EINVAL,
			"Error: Tuning configured Ethernet of %s is %s, current value is %s",
			link->name, want, has);
	if (t->promisc && !promisc)
		return err_text(
			e, -EINVAL,
			"Error: Tuning link %s configured promisc is true, current value is 0",
			link->name);
	if (t->mtu && (uint32_t)t->mtu != link->mtu)
		return err_text(e, -EINVAL,
				"Error: Tuning configured MTU of %s is %d, current value is %u",
				link->name, t->mtu, link->mtu);
	if (t->has_allmulti && t->allmulti != allmulti)
		return err_text(e, -EINVAL,
				"Error: Tuning configured all-multicast mode of %s is %s, current "
				"value is %s",
				link->name, t->allmulti ? "true" : "false",
				allmulti ? "true" : "false");
	if (t->has_txqlen && (uint32_t)t->txqlen != link->txqlen)
		return err_text(e, -EINVAL,
				"Error: Tuning configured Transmit Queue Length of %s is %d, "
				"current value is %u",
				link->name, t->txqlen, link->txqlen);
	return 0;
}

static int tuning_check(struct hw_call *call, struct hw_err *e)
{
	AUTO(tuning_done) struct tuning t = { 0 };
	AUTO(target_done) struct tuning_target target = { .netns = -1 };
	int r;

	r = tuning_init(&t, call, e);
	if (r < 0)
		return r;
	if (!call->prev)
		return err_text(e, -EINVAL, "Required prevResult missing");
	r = netns_open(call->netns, &target.netns, e);
	if (r < 0)
		return r;
	for (size_t i = 0; i < t.n_sysctls; i++) {
		const struct tuning_sysctl *s = &t.sysctls[i];
		autofree char *value = NULL;

		r = sysctl_read(target.netns, s->path, &value, e);
		if (r < 0)
			return r;
		if (!sysctl_equal(value, s->value))
			return err_text(e, -EINVAL,
					"Error: Tuning configured value of %s is %s, current value "
					"is %s",
					s->path, s->value, value);
	}
	if (!tuning_has_attributes(&t))
		return 0;
	r = open_link(&target, call->ifname, e);
	if (r == -ENODEV)
		return err_text(e, r, "Cannot find container link %s", call->ifname);
	return r < 0 ? r : check_link(&target.link, &t, e);
}

static int tuning_status(struct hw_call *call, struct hw_err *e)
{
	AUTO(tuning_done) struct tuning t = { 0 };
	int r;

	r = tuning_init(&t, call, e);
	return r < 0 ? r : tuning_check_allowed(&t, e);
}

const struct hw_plugin tuning_plugin = {
	.size = sizeof(struct hw_plugin),
	.name = "tuning",
	.summary = "sets sysctls of a pod and attributes of its interface",
	.add = tuning_add,
	.del = tuning_del,
	.check = tuning_check,
	.status = tuning_status,
	.fields = tuning_fields,
	.conf_size = sizeof(struct tuning_conf),
	.record = true,
	.created_fields = tuning_record_fields,
	.created_size = sizeof(struct tuning_record),
};
