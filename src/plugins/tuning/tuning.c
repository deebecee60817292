/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/tuning/tuning.c - sysctls of a pod, and attributes of its interface
 *
 * What:  ADD changes them and passes the result on, with the new hardware
 *        address in it; CHECK looks whether somebody changed them back; DEL
 *        restores what was there before, while the namespace lives.
 * How:   the former attributes are kept in upstream's file and form,
 *        DATADIR/<container>_<interface>.json, so that either plugin's DEL undoes
 *        the other's ADD. The former values of sysctls, which upstream does not
 *        restore, are in the attachment record.
 *        A second ADD on top of the first keeps the values from before both; where
 *        it fails it gives back what it found, and the first one's are kept.
 * Rules: DEL succeeds whatever it finds: the interface may be gone, and the
 *        namespace mostly follows. It fails where another one may do better.
 */
#include <errno.h>

#include <hawser/plugin.h>

#include "base/err.h"
#include "base/json/field.h"
#include "base/mem.h"
#include "base/str.h"
#include "net/netns.h"
#include "net/rtnl/link.h"
#include "net/rtnl/rtnl.h"
#include "net/sysctl.h"
#include "plugins/tuning/tuning.h"

/* What the record says: former values of sysctls by their path. */
struct tuning_made {
	struct hw_map sysctl;
};

static const struct hw_field tuning_made_fields[] = {
	{ "sysctl", HW_MAP, HW_AT(struct tuning_made, sysctl) },
	{ 0 },
};

static const char *map_get(const struct hw_map *map, const char *key)
{
	for (size_t i = 0; i < map->n; i++)
		if (str_equal(map->keys[i], key))
			return map->values[i];
	return NULL;
}

static void map_add(struct hw_map *map, const char *key, const char *value)
{
	map->keys = mem_resize(map->keys, map->n + 1, sizeof(*map->keys));
	map->values = mem_resize(map->values, map->n + 1, sizeof(*map->values));
	map->keys[map->n] = str_copy(key);
	map->values[map->n++] = str_copy(value);
}

/* ---- ADD ----------------------------------------------------------------------------------- */

/* A pod's namespace, and in it its interface. */
struct pod {
	int netns;
	struct rtnl *nl;
	struct link link;
};

static void pod_done(struct pod *pod)
{
	mem_close_fd(&pod->netns);
	rtnl_close(pod->nl);
}
AUTO_VALUE_DEFINE(pod_done, struct pod);

static int pod_open_link(struct pod *pod, const char *ifname, struct hw_err *e)
{
	int r = rtnl_open(pod->netns, &pod->nl, e);

	return r < 0 ? r : link_get(pod->nl, ifname, &pod->link, e);
}

/* What there was just before an ADD, for the undo of one on top of another. */
struct former {
	struct hw_map sysctl;
	struct saved link;
	struct saved file; /* of the earlier ADD */
	bool has_file;
};

static void former_done(struct former *f)
{
	field_map_free(&f->sysctl);
	saved_done(&f->link);
	saved_done(&f->file);
}
AUTO_VALUE_DEFINE(former_done, struct former);

static int look_at_former(struct former *f, const struct hw_call *call, const struct pod *pod,
			  const struct tuning *t, struct hw_err *e)
{
	for (size_t i = 0; i < t->n_sysctls; i++) {
		autofree char *value = NULL;

		int r = sysctl_read(pod->netns, t->sysctls[i].path, &value, e);
		if (r < 0 && r != -EACCES) /* some can be written only */
			return r;
		if (value)
			map_add(&f->sysctl, t->sysctls[i].path, value);
	}
	saved_fill(&f->link, t, &pod->link);
	int r = call->earlier ? saved_read(call, &f->file, e) : 0;
	f->has_file = r > 0;
	return r;
}

/* The former values, written down before the first is changed. */
static int record_sysctls(struct hw_call *call, const struct former *f, struct hw_err *e)
{
	const struct tuning_made *earlier = call->earlier;
	struct tuning_made *made = call->made;

	for (size_t i = 0; earlier && i < earlier->sysctl.n; i++)
		map_add(&made->sysctl, earlier->sysctl.keys[i], earlier->sysctl.values[i]);
	for (size_t i = 0; i < f->sysctl.n; i++)
		if (!map_get(&made->sysctl, f->sysctl.keys[i]))
			map_add(&made->sysctl, f->sysctl.keys[i], f->sysctl.values[i]);
	return hw_record_save(call, e);
}

static int write_sysctls(const struct pod *pod, const struct tuning *t, struct hw_err *e)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < t->n_sysctls; i++)
		r = sysctl_write(pod->netns, t->sysctls[i].path, t->sysctls[i].value, e);
	return r;
}

static void report_mac(struct hw_result *result, const char *ifname, const struct hw_mac *mac)
{
	char text[HW_MAC_TEXT];

	for (size_t i = 0; i < result->n_ifaces; i++) {
		if (!str_equal(result->ifaces[i].name, ifname))
			continue;
		free(result->ifaces[i].mac);
		result->ifaces[i].mac = str_copy(hw_mac_format(mac, text));
	}
}

static int change_link(struct hw_call *call, struct pod *pod, const struct tuning *t,
		       struct hw_err *e)
{
	AUTO(saved_done) struct saved s = { 0 };

	int r = call->earlier ? saved_read(call, &s, e) : 0;
	if (r < 0)
		return r;
	saved_fill(&s, t, &pod->link);
	r = saved_write(call, &s, e);
	if (r < 0)
		return r;
	if (t->mac.len)
		link_set_mac(pod->nl, &pod->link, &t->mac);
	if (t->promisc)
		link_set_promisc(pod->nl, &pod->link, true);
	if (t->mtu)
		link_set_mtu(pod->nl, &pod->link, (uint32_t)t->mtu);
	if (t->has_allmulti)
		link_set_allmulti(pod->nl, &pod->link, t->allmulti);
	if (t->has_txqlen)
		link_set_txqlen(pod->nl, &pod->link, (uint32_t)t->txqlen);
	r = rtnl_commit(pod->nl, e);
	if (r >= 0 && t->mac.len)
		report_mac(call->result, call->ifname, &t->mac);
	return r;
}

/* An ADD on top of another: that one's work and its files are as they were. */
static int undo_again(const struct hw_call *call, const struct former *f, struct hw_err *e)
{
	struct hw_err why;

	int r = tuning_restore(call, &f->sysctl, &f->link, &why);
	if (r >= 0)
		r = f->has_file ? saved_write(call, &f->file, &why) : saved_remove(call, &why);
	return r < 0 ? err_details(e, "undo also failed: %s", why.msg) : e->code;
}

static int change(struct hw_call *call, struct pod *pod, const struct tuning *t, struct hw_err *e)
{
	AUTO(former_done) struct former former = { 0 };

	int r = look_at_former(&former, call, pod, t, e);
	if (r < 0)
		return r;
	r = record_sysctls(call, &former, e);
	if (r >= 0)
		r = write_sysctls(pod, t, e);
	if (r >= 0 && tuning_has_attributes(t))
		r = change_link(call, pod, t, e);
	return r < 0 && call->earlier ? undo_again(call, &former, e) : r;
}

static int refuse_mac(const struct link *link, const struct tuning *t, struct hw_err *e)
{
	if (!t->mac.len || t->mac.len == link->mac.len)
		return 0;
	return err_cni(e, HW_CNI_INVALID_CONFIG,
		       "invalid args %s for MAC addr: interface %s has addresses of %u bytes",
		       t->mac_text, link->name, (unsigned)link->mac.len);
}

static int tuning_add(struct hw_call *call, struct hw_err *e)
{
	AUTO(tuning_done) struct tuning t = { 0 };
	AUTO(pod_done) struct pod pod = { .netns = -1 };

	int r = tuning_init(&t, call, e);
	if (r >= 0)
		r = tuning_check_allowed(&t, e);
	if (r >= 0 && !call->prev)
		r = err_text(e, -EINVAL, "Required prevResult missing");
	if (r >= 0)
		r = netns_open(call->netns, &pod.netns, e);
	if (r >= 0 && tuning_has_attributes(&t))
		r = pod_open_link(&pod, call->ifname, e);
	if (r >= 0)
		r = refuse_mac(&pod.link, &t, e);
	if (r >= 0)
		r = change(call, &pod, &t, e);
	return r < 0 ? r : 0;
}

/* ---- DEL ------------------------------------------------------------------------------------ */

static int tuning_del(struct hw_call *call, struct hw_err *e)
{
	const struct tuning_made *made = call->made;
	AUTO(saved_done) struct saved s = { 0 };

	int r = saved_read(call, &s, e);
	if (r >= 0 && !str_empty(call->netns))
		r = tuning_restore(call, &made->sysctl, &s, e);
	return r < 0 ? r : saved_remove(call, e);
}

/* ---- CHECK ----------------------------------------------------------------------------------- */

static int check_sysctls(const struct pod *pod, const struct tuning *t, struct hw_err *e)
{
	for (size_t i = 0; i < t->n_sysctls; i++) {
		const struct tuning_sysctl *s = &t->sysctls[i];
		autofree char *value = NULL;

		int r = sysctl_read(pod->netns, s->path, &value, e);
		if (r < 0)
			return r;
		if (!sysctl_equal(value, s->value))
			return err_text(e, -EINVAL,
					"Error: Tuning configured value of %s is %s, current value "
					"is %s",
					s->path, s->value, value);
	}
	return 0;
}

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
	AUTO(pod_done) struct pod pod = { .netns = -1 };

	int r = tuning_init(&t, call, e);
	if (r >= 0 && !call->prev)
		r = err_text(e, -EINVAL, "Required prevResult missing");
	if (r >= 0)
		r = netns_open(call->netns, &pod.netns, e);
	if (r >= 0)
		r = check_sysctls(&pod, &t, e);
	if (r < 0 || !tuning_has_attributes(&t))
		return r;
	r = pod_open_link(&pod, call->ifname, e);
	if (r == -ENODEV)
		return err_text(e, r, "Cannot find container link %s", call->ifname);
	return r < 0 ? r : check_link(&pod.link, &t, e);
}

static int tuning_status(struct hw_call *call, struct hw_err *e)
{
	AUTO(tuning_done) struct tuning t = { 0 };

	int r = tuning_init(&t, call, e);
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
	.made_fields = tuning_made_fields,
	.made_size = sizeof(struct tuning_made),
};
