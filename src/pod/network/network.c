/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/network/network.c - attach a pod to its networks, check and detach it
 */
#include "pod/network/network.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

#include "base/ip.h"
#include "base/json/field.h"
#include "base/json/value.h"
#include "base/os/namespace.h"
#include "base/str.h"
#include "base/time.h"
#include "cni/result.h"
#include "cni/runtime/conf.h"

#define AT(member) HW_AT(struct pod_attachment, member)

static const struct hw_field attachment_fields[] = {
	{ "network", HW_STRING, AT(network) },
	{ "ifname", HW_STRING, AT(ifname), .flags = HW_REQUIRED },
	{ "config", HW_JSON, AT(config), .flags = HW_REQUIRED },
	{ "capabilities", HW_JSON, AT(capabilities) },
	{ "result", HW_JSON, AT(result) },
	{ 0 },
};

static const struct hw_field network_fields[] = {
	{ "attachments", HW_LIST, HW_AT(struct pod_network, attachments), .sub = attachment_fields,
	  .size = sizeof(struct pod_attachment) },
	{ 0 },
};

/* ---- networks of a pod -------------------------------------------------------------- */

static void network_free(void *object)
{
	struct pod_network *n = object;

	hw_field_clear(network_fields, n);
	hw_strings_free(&n->ips);
	free(n->text);
	free(n);
}

static struct pod_network *network_new(void)
{
	struct pod_network *n = mem_new(sizeof(*n));

	shared_init(&n->shared, network_free);
	return n;
}

/* An address without an interface belongs to the pod, as in containerd. */
static bool is_of_pod(const struct hw_result *result, const struct hw_ipconf *ip)
{
	const struct hw_iface *iface;

	if (!ip->has_iface || ip->iface < 0 || (size_t)ip->iface >= result->n_ifaces)
		return true;
	iface = &result->ifaces[ip->iface];
	return !str_empty(iface->sandbox) && str_equal(iface->name, NETWORK_IFNAME);
}

static void add_addresses(const struct hw_result *result, bool first, struct hw_strings *ret)
{
	bool found = false;
	char text[HW_IP_TEXT];

	for (size_t i = 0; i < result->n_ips; i++) {
		const struct hw_ip *ip = &result->ips[i].address.ip;
		bool is_first = !found && ip->family == AF_INET;

		if (!is_of_pod(result, &result->ips[i]))
			continue;
		found |= ip->family == AF_INET;
		if (is_first == first)
			strings_add(ret, hw_ip_format(ip, text));
	}
}

static void find_addresses(struct pod_network *n)
{
	const struct pod_attachment *a = n->attachments.v;
	AUTO(hw_result_free) struct hw_result *result = NULL;
	struct hw_err e;

	if (n->attachments.n == 0 || str_empty(a->result) ||
	    hw_result_parse(a->result, strlen(a->result), NULL, &result, &e) < 0)
		return;
	add_addresses(result, true, &n->ips);
	add_addresses(result, false, &n->ips);
}

/* Return: the network, which does not change any more */
static const struct pod_network *seal(struct pod_network *n)
{
	n->text = hw_field_encode(network_fields, n, 0);
	find_addresses(n);
	return n;
}

/* A text that exceeds the limits of JSON could not be read after a restart. */
static int check_text(const struct pod_network *n, struct hw_err *e)
{
	AUTO(shared_unref) struct pod_network *copy = network_new();

	return hw_field_decode(network_fields, n->text, strlen(n->text), copy, e);
}

int network_decode(const char *text, const struct pod_network **ret_network, struct hw_err *e)
{
	AUTO(shared_unref) struct pod_network *n = network_new();
	int r;

	r = hw_field_decode(network_fields, text, strlen(text), n, e);
	if (r == 0)
		*ret_network = seal(take_ptr(n));
	return r;
}

/* ---- plan --------------------------------------------------------------------------- */

/* A network as one list: the plugins of a directory beside its file become part of it. */
static char *format_list(const struct hw_conf *conf)
{
	AUTO(value_free) struct value *list = value_new_object();
	struct value *plugins = value_new_array();

	value_set(list, "cniVersion", value_new_string(hw_conf_version(conf)));
	value_set(list, "name", value_new_string(hw_conf_name(conf)));
	if (hw_conf_check_disabled(conf))
		value_set(list, "disableCheck", value_new_bool(true));
	if (hw_conf_gc_disabled(conf))
		value_set(list, "disableGC", value_new_bool(true));
	value_set(list, "loadOnlyInlinedPlugins", value_new_bool(true));
	for (size_t i = 0; i < hw_conf_count(conf); i++)
		value_append(plugins, value_literal(hw_conf_plugin(conf, i)));
	value_set(list, "plugins", plugins);
	return value_format(list, 0);
}

static int add_attachment(struct pod_network *plan, const struct pod_spec *spec,
			  const struct network_host *host, const struct hw_conf *conf,
			  const char *ifname, struct hw_err *e)
{
	bool first = plan->attachments.n == 0;
	struct pod_attachment *a;
	char *capabilities;
	int r;

	r = network_capabilities(spec, host, first, &capabilities, e);
	if (r < 0)
		return r;
	plan->attachments.v = mem_resize(plan->attachments.v, plan->attachments.n + 1, sizeof(*a));
	a = (struct pod_attachment *)plan->attachments.v + plan->attachments.n++;
	*a = (struct pod_attachment){
		.network = str_copy(hw_conf_name(conf)),
		.ifname = str_copy(ifname),
		.config = format_list(conf),
		.capabilities = capabilities,
	};
	return 0;
}

static int add_extra_network(struct pod_network *plan, const struct pod_spec *spec,
			     const struct network_host *host, const char *conf_dir,
			     const struct network_extra *extra, struct hw_err *e)
{
	AUTO(hw_conf_free) struct hw_conf *conf = NULL;
	int r;

	r = hw_conf_load(conf_dir, extra->name, &conf, e);
	if (r < 0) {
		err_ctx(e, "annotations: " NETWORK_NETWORKS);
		return err_replace(e, -ENOENT, -EINVAL);
	}
	return add_attachment(plan, spec, host, conf, extra->ifname, e);
}

int network_plan(const struct pod_spec *spec, const struct network_view *view, const char *conf_dir,
		 const struct network_host *host, const struct pod_network **ret_plan,
		 struct hw_err *e)
{
	AUTO(network_extras_done) struct network_extras extras = { 0 };
	AUTO(shared_unref) struct pod_network *plan = network_new();
	const char *args[NETWORK_ARGS][2];
	int r;

	if (spec->namespaces.network == POD_MODE_NODE) {
		*ret_plan = seal(take_ptr(plan));
		return 0;
	}
	r = network_args(spec, "", args, e);
	if (r < 0)
		return r;
	r = network_extras(spec, &extras, e);
	if (r < 0)
		return r;
	if (!view->ready)
		return err_text(e, -ENETDOWN, "the network is not ready: %s", view->message);
	r = add_attachment(plan, spec, host, view->network->conf, NETWORK_IFNAME, e);
	for (size_t i = 0; r == 0 && i < extras.n; i++)
		r = add_extra_network(plan, spec, host, conf_dir, &extras.v[i], e);
	if (r < 0)
		return r;
	seal(plan);
	/* each network has a copy of the annotations */
	if (check_text(plan, e) < 0)
		return err_text(e, -EINVAL, "annotations: too large for %zu networks: %s",
				plan->attachments.n, e->msg);
	*ret_plan = take_ptr(plan);
	return 0;
}

int network_load(struct network_watch *watch, const char *conf_dir, const char *name,
		 struct hw_conf **ret_conf, struct hw_err *e)
{
	AUTO(shared_unref) const struct network_view *view = network_watch_view(watch);
	autofree char *text = NULL;
	int r;

	if (view->network && str_equal(hw_conf_name(view->network->conf), name)) {
		text = format_list(view->network->conf);
		return hw_conf_parse(text, strlen(text), ret_conf, e);
	}
	r = hw_conf_load(conf_dir, name, ret_conf, e);
	return r < 0 ? err_replace(e, -ENOENT, -ENODATA) : 0;
}

/* ---- running plugins ---------------------------------------------------------------- */

/* An attachment, ready for a call of libhawser. */
struct run {
	struct hw_conf *conf;
	const char *args[NETWORK_ARGS][2];
	struct hw_attach at;
};

static void run_done(struct run *run)
{
	hw_conf_free(run->conf);
}

AUTO_VALUE_DEFINE(run_done, struct run);

/* The timeout is for all networks of a pod together, so that a client gets the error before it
 * stops waiting. Return: the deadline of one of @n networks that are left, if none may use the time
 * of another */
static int64_t share_time(int64_t deadline, size_t n)
{
	int64_t now = time_now();

	return deadline == TIME_NEVER ? deadline : now + (deadline - now) / (int64_t)n;
}

static int run_init(struct run *run, const struct network_pod *pod, const struct pod_attachment *a,
		    int64_t deadline, struct hw_err *e)
{
	int timeout_ms = time_left_ms(deadline), r;

	if (timeout_ms == 0)
		return err_text(e, -ETIMEDOUT, "not started: the pod's other networks timed out");
	r = hw_conf_parse(a->config, strlen(a->config), &run->conf, e);
	if (r < 0)
		return r;
	r = network_args(pod->spec, pod->id, run->args, e);
	if (r < 0)
		return r;
	run->at = (struct hw_attach){
		.size = sizeof(run->at),
		.container_id = pod->id,
		.netns = pod->netns,
		.ifname = a->ifname,
		.args = run->args,
		.n_args = NETWORK_ARGS,
		.capability_args = a->capabilities,
		.cancel_fd = pod->cancel_fd,
		.timeout_ms = timeout_ms,
		.undo_deadline_ns = pod->undo_deadline,
		.prev_result = a->result,
	};
	return 0;
}

/* An error of a plugin says nothing about the request, even if its CNI code is "invalid
 * configuration". -ECANCELED stays: it was our own doing. */
static int network_error(const struct pod_attachment *a, struct hw_err *e)
{
	int wire = err_wire(e), code = -EIO;

	if (e->code == -ECANCELED)
		code = -ECANCELED;
	else if (wire == HW_CNI_TRY_AGAIN || wire == HW_CNI_NOT_AVAILABLE || wire == HW_CNI_LIMITED)
		code = -ENETDOWN;
	return err_text(e, code, "network \"%s\": %s%s%s", a->network, e->msg,
			e->details[0] ? ": " : "", e->details);
}

static int attach_one(const struct hw_cni *cni, const struct network_pod *pod,
		      struct pod_attachment *a, struct hw_err *e)
{
	AUTO(hw_result_free) struct hw_result *result = NULL;
	AUTO(run_done) struct run run = { 0 };
	int r;

	r = run_init(&run, pod, a, pod->deadline, e);
	if (r == 0)
		r = hw_add(cni, run.conf, &run.at, HW_ADD_UNDO, &result, e);
	if (r == 0)
		r = hw_result_format(result, hw_conf_version(run.conf), 0, &a->result, e);
	return r < 0 ? network_error(a, e) : 0;
}

static struct pod_network *copy_network(const struct pod_network *from)
{
	struct pod_network *n = network_new();
	struct hw_err e;
	int r;

	r = hw_field_decode(network_fields, from->text, strlen(from->text), n, &e);
	assert(r == 0);
	return n;
}

int network_attach(const struct hw_cni *cni, const struct network_pod *pod,
		   const struct pod_network *plan, const struct pod_network **ret_network,
		   struct hw_err *e)
{
	AUTO(shared_unref) struct pod_network *n = copy_network(plan);
	struct pod_attachment *all = n->attachments.v;
	int r = 0;

	for (size_t i = 0; r == 0 && i < n->attachments.n; i++)
		r = attach_one(cni, pod, &all[i], e);
	if (r < 0)
		return r;
	seal(n);
	if (check_text(n, e) < 0)
		return err_text(e, -EIO, "results of the plugins: %s", e->msg);
	*ret_network = take_ptr(n);
	return 0;
}

int network_detach(const struct hw_cni *cni, const struct network_pod *pod,
		   const struct pod_network *plan, struct hw_err *e)
{
	const struct pod_attachment *all = plan->attachments.v;
	struct errors errors = { 0 };

	for (size_t i = plan->attachments.n; i-- > 0;) {
		AUTO(run_done) struct run run = { 0 };
		int r;

		r = run_init(&run, pod, &all[i], share_time(pod->deadline, i + 1), e);
		if (r == 0)
			r = hw_del(cni, run.conf, &run.at, e);
		if (r < 0) {
			network_error(&all[i], e);
			errors_add(&errors, e);
		}
	}
	return errors_result(&errors, e);
}

/* The configuration of a single plugin is in the cache as such. */
static int parse_cached(const char *config, struct hw_conf **ret_conf, struct hw_err *e)
{
	if (hw_conf_parse(config, strlen(config), ret_conf, e) == 0)
		return 0;
	return hw_conf_parse_plugin(config, strlen(config), ret_conf, e);
}

int network_detach_entry(const struct hw_cni *cni, const struct hw_cached *c, int cancel_fd,
			 int64_t deadline, struct hw_err *e)
{
	AUTO(hw_conf_free) struct hw_conf *conf = NULL;
	autofree const char *(*args)[2] = mem_new((c->args.n + 1) * sizeof(*args));
	struct hw_attach at = {
		.size = sizeof(at),
		.container_id = c->container_id,
		.netns = c->netns && namespace_exists(c->netns) ? c->netns : "",
		.ifname = c->ifname,
		.args = args,
		.n_args = c->args.n,
		.capability_args = c->capability_args,
		.cancel_fd = cancel_fd,
		.timeout_ms = time_left_ms(deadline),
	};
	int r;

	if (at.timeout_ms == 0)
		return err_text(e, -ETIMEDOUT, "network \"%s\": not started: others timed out",
				c->network);
	for (size_t i = 0; i < c->args.n; i++) {
		args[i][0] = c->args.keys[i];
		args[i][1] = c->args.values[i];
	}
	r = parse_cached(c->config, &conf, e);
	if (r == 0)
		r = hw_del(cni, conf, &at, e);
	return r < 0 ? err_ctx(e, "network \"%s\"", c->network) : 0;
}

int network_detach_cached(const struct hw_cni *cni, const char *id, int cancel_fd, int64_t deadline,
			  struct hw_err *e)
{
	struct hw_cached_list list = { 0 };
	struct errors errors = { 0 };
	int r;

	r = hw_cached_attachments(cni, id, NULL, NULL, &list, e);
	if (r < 0)
		return r;
	for (size_t i = 0; i < list.n; i++)
		if (network_detach_entry(cni, &list.v[i], cancel_fd,
					 share_time(deadline, list.n - i), e) < 0)
			errors_add(&errors, e);
	hw_cached_list_free(&list);
	return errors_result(&errors, e);
}

int network_check(const struct hw_cni *cni, const struct network_pod *pod,
		  const struct pod_network *plan, struct hw_strings *ret_checked, struct hw_err *e)
{
	const struct pod_attachment *all = plan->attachments.v;
	size_t n = plan->attachments.n;
	struct errors errors = { 0 };

	for (size_t i = 0; i < n; i++) {
		AUTO(run_done) struct run run = { 0 };
		int r;

		r = run_init(&run, pod, &all[i], share_time(pod->deadline, n - i), e);
		if (r == 0)
			r = hw_check(cni, run.conf, &run.at, e);
		if (r < 0) {
			network_error(&all[i], e);
			errors_add(&errors, e);
		} else if (!hw_conf_check_disabled(run.conf)) {
			strings_add(ret_checked, all[i].network);
		}
	}
	return errors_result(&errors, e);
}
