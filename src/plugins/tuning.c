/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/tuning.c - sysctls of a pod, and attributes of its interface
 *
 * What:  ADD changes them and passes the result on, with the new hardware
 *        address in it; CHECK looks whether somebody changed them back; DEL
 *        restores what was there before, while the namespace lives.
 * How:   the former attributes are kept in upstream's file and form,
 *        DATADIR/<container>_<interface>.json, so that either plugin's DEL undoes
 *        the other's ADD. The former values of sysctls, which upstream does not
 *        restore, are in the attachment record.
 *        A second ADD on top of the first keeps the values from before both.
 * Rules: DEL succeeds whatever it finds: the interface may be gone, and the
 *        namespace mostly follows. It fails where another one may do better.
 */
#include <errno.h>

#include <hawser/plugin.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "net/link.h"
#include "net/netns.h"
#include "net/rtnl.h"
#include "net/sysctl.h"
#include "plugins/plugins.h"
#include "plugins/tuning-conf.h"
#include "plugins/tuning-saved.h"

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

/* The former values, written down before the first is changed. */
static int record_sysctls(struct hw_call *call, const struct pod *pod, const struct tuning *t,
			  struct hw_err *e)
{
	const struct tuning_made *earlier = call->earlier;
	struct tuning_made *made = call->made;

	for (size_t i = 0; earlier && i < earlier->sysctl.n; i++)
		map_add(&made->sysctl, earlier->sysctl.keys[i], earlier->sysctl.values[i]);
	for (size_t i = 0; i < t->n_sysctls; i++) {
		autofree char *value = NULL;

		if (map_get(&made->sysctl, t->sysctls[i].path))
			continue;
		int r = sysctl_read(pod->netns, t->sysctls[i].path, &value, e);
		if (r < 0 && r != -EACCES) /* some can be written only */
			return r;
		if (value)
			map_add(&made->sysctl, t->sysctls[i].path, value);
	}
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

	int r = pod_open_link(pod, call->ifname, e);
	if (r < 0)
		return r;
	if (call->earlier)
		r = saved_read(call, &s, e);
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
	if (r >= 0)
		r = record_sysctls(call, &pod, &t, e);
	if (r >= 0)
		r = write_sysctls(&pod, &t, e);
	if (r >= 0 && tuning_has_attributes(&t))
		r = change_link(call, &pod, &t, e);
	return r < 0 ? r : 0;
}

/* ---- DEL ------------------------------------------------------------------------------------ */

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

static int restore_sysctls(const struct pod *pod, const struct hw_map *former, struct hw_err *e)
{
	struct hw_err why;
	int r = 0;

	for (size_t i = former->n; i-- > 0;)
		if (unless_final(sysctl_write(pod->netns, former->keys[i], former->values[i],
					      &why)) < 0 &&
		    r >= 0) {
			*e = why;
			r = why.code;
		}
	return r;
}

/* Each on its own: one that the kernel refuses does not keep the others from being restored. */
static int restore_link(struct pod *pod, const char *ifname, const struct saved *s,
			struct hw_err *e)
{
	struct hw_mac mac;
	struct hw_err none;

	int r = pod_open_link(pod, ifname, e);
	if (r < 0)
		return unless_final(r);
	if (s->mtu > 0)
		link_set_mtu(pod->nl, &pod->link, (uint32_t)s->mtu);
	if (s->mac && hw_mac_parse(s->mac, &mac, &none) >= 0)
		link_set_mac(pod->nl, &pod->link, &mac);
	if (s->has_promisc)
		link_set_promisc(pod->nl, &pod->link, s->promisc);
	if (s->has_allmulti)
		link_set_allmulti(pod->nl, &pod->link, s->allmulti);
	if (s->has_txqlen && s->txqlen >= 0)
		link_set_txqlen(pod->nl, &pod->link, (uint32_t)s->txqlen);
	return unless_final(rtnl_commit(pod->nl, e));
}

/* The one does not wait for the other. */
static int restore(const struct hw_call *call, const struct saved *s, struct hw_err *e)
{
	const struct tuning_made *made = call->made;
	AUTO(pod_done) struct pod pod = { .netns = -1 };
	struct hw_err why;

	int r = netns_open(call->netns, &pod.netns, e);
	if (r < 0)
		return unless_final(r);
	r = restore_sysctls(&pod, &made->sysctl, e);
	if (restore_link(&pod, call->ifname, s, &why) < 0 && r >= 0) {
		*e = why;
		r = why.code;
	}
	return r;
}

static int tuning_del(struct hw_call *call, struct hw_err *e)
{
	AUTO(saved_done) struct saved s = { 0 };

	int r = saved_read(call, &s, e);
	if (r >= 0 && !str_empty(call->netns))
		r = restore(call, &s, e);
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
