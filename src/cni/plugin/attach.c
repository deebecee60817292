/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/plugin/attach.c - a plugin's verbs with undo, attachment records and locks
 *
 * What:  a failed ADD is undone by the plugin's own DEL. A plugin with .record
 *        also gets attachment records, the locks between GC, ADD and DEL, and
 *        a GC that deletes every recorded attachment that is not valid.
 * How:   what a verb does depends on the record that it finds. GC keeps the
 *        attachments in the list of valid ones, if the runtime sent a list.
 *
 *	record             ADD                      DEL            GC, if not in the list
 *	none               write it, unfinished     del()          -
 *	unfinished         del(), then as for none  del(), remove  del(), remove
 *	finished           refuse                   del(), remove  with a list:
 *	                                                           del(), remove
 *	finished, netns    del(), then as for none  del(), remove  as for finished
 *	  no longer exists
 *	of another boot    del(), then as for none  del(), remove  del(), remove
 *
 *        After an ADD that was not refused the record is finished, or removed
 *        (the ADD failed and its undo succeeded), or unfinished (the undo
 *        failed, or the process was killed).
 *        The record is first written when add() calls hw_record_save(), or
 *        before add() if the plugin has no .created_fields.
 * Rules: GC keeps attachments whose ADD started or finished after GC was
 *        called. It reads the clock before it waits for the lock. While it
 *        holds the lock no ADD runs, so an older unfinished record belongs to
 *        an ADD that was killed or whose undo failed.
 *        A recorded netns path is used only if it still leads to the namespace
 *        of the ADD: /proc/PID/ns/net may belong to another process by now.
 *        Namespaces are compared by inode number, which the kernel uses again,
 *        and by cookie, unless the cookie is unknown.
 */
#include "cni/plugin/attach.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/json/value.h"
#include "base/os/boot.h"
#include "base/str.h"
#include "base/time.h"
#include "cni/lock.h"
#include "cni/plugin/netns-id.h"

static int64_t lock_deadline(const struct skel_frame *f)
{
	return time_deadline(f->request->lock_timeout_ms ? f->request->lock_timeout_ms
							 : LOCK_TIMEOUT_MS);
}

/* For ADD and DEL: excludes GC, and other ADDs and DELs of this attachment. */
static int lock_call(const struct skel_frame *f, int *ret_fd, struct hw_err *e)
{
	int64_t deadline = lock_deadline(f);
	int r;

	r = lock_acquire(f->state_dir, f->call.network, f->plugin->name, false, deadline, ret_fd,
			 e);
	if (r < 0)
		return r;
	return lock_attachment(*ret_fd, f->call.container_id, f->call.ifname, deadline, e);
}

/* ---- records -------------------------------------------------------------------- */

/* Formats the plugin's own configuration, without what differs between calls or runtimes. */
static char *format_own_config(const struct value *config, bool with_name)
{
	AUTO(value_free) struct value *own = value_copy(config);

	value_remove(own, "prevResult");
	value_remove(own, "runtimeConfig");
	value_remove(own, "capabilities");
	if (!with_name) {
		value_remove(own, "name");
		value_remove(own, "cniVersion");
	}
	return value_format(own, HW_JSON_SORTED);
}

static const char *config_hash(struct skel_frame *f)
{
	if (*f->config_hash)
		return f->config_hash;
	autofree char *json = format_own_config(f->config, true);
	hash_hex(json, sizeof(f->config_hash) - 1, f->config_hash);
	return f->config_hash;
}

/* Was the record written for this configuration? Version 0.1.0 did not store the hash. */
static bool is_for_config(const struct record *r, struct skel_frame *f)
{
	return str_empty(r->config_hash) || str_equal(r->config_hash, config_hash(f));
}

/* Fills the record of an ADD; does not write it. */
static int init_record(struct skel_frame *f, struct hw_err *e)
{
	autofree char *id = NULL;
	int64_t cookie;
	int r;

	r = netns_id_read(f->call.netns, &id, &cookie, e);
	if (r < 0)
		return r;
	f->record = (struct record){
		.plugin = str_copy(f->plugin->name),
		.network = str_copy(f->call.network),
		.container_id = str_copy(f->call.container_id),
		.ifname = str_copy(f->call.ifname),
		.entry = str_copy(str_or(f->entry, "")),
		.config_hash = str_copy(config_hash(f)),
		.netns = str_copy(f->call.netns),
		.netns_id = take_ptr(id),
		.netns_cookie = cookie,
		.netns_override = f->call.netns_override,
		.args = str_copy(f->call.args),
		.config = str_ncopy(f->call.input, f->call.input_len),
		.boot = str_copy(boot_id()),
		.started = time_boot(),
	};
	return 0;
}

/*
 * Finds the record of this entry of the network's list. The list may contain a plugin type several
 * times: the first entry has the entry name "", the others have a hash of their configuration. If
 * no record has the configuration of this call, it may have been changed since the ADD: then the
 * record of the first entry is returned.
 *
 * Return: 1 with the record, 0 if there is no record, or a negative errno
 */
static int read_record(struct skel_frame *f, struct record *ret, struct hw_err *e)
{
	AUTO(record_done) struct record first = { 0 };
	const struct hw_call *call = &f->call;
	int r;

	r = record_read(f->state_dir, f->plugin->name, call->network, call->container_id,
			call->ifname, "", &first, e);
	if (r < 0)
		return r;
	bool found = r > 0;
	if (!found || !is_for_config(&first, f)) {
		r = record_read(f->state_dir, f->plugin->name, call->network, call->container_id,
				call->ifname, config_hash(f), ret, e);
		if (r != 0 || !found)
			return r;
	}
	*ret = first;
	first = (struct record){ 0 };
	return 1;
}

static int remove_record(const struct skel_frame *f, struct hw_err *e)
{
	return record_remove(f->state_dir, f->plugin->name, f->call.network, f->call.container_id,
			     f->call.ifname, f->entry, e);
}

int attach_remove_record(struct hw_call *call, struct hw_err *e)
{
	struct skel_frame *f = (struct skel_frame *)call;

	f->record_removed = true;
	return remove_record(f, e);
}

struct renamed_search {
	const struct hw_call *call;
	char *config; /* our own, without the name */
	bool found;
};

static int compare_renamed(void *ctx, const struct record *r, struct hw_err *e)
{
	struct renamed_search *search = ctx;
	const struct hw_call *call = search->call;
	AUTO(value_free) struct value *config = NULL;

	if (!str_equal(r->container_id, call->container_id) ||
	    !str_equal(r->ifname, call->ifname) || str_equal(r->network, call->network) ||
	    value_parse(r->config, strlen(r->config), &config, e) < 0)
		return 0;
	autofree char *json = format_own_config(config, false);
	search->found = str_equal(json, search->config);
	return search->found;
}

bool attach_is_renamed(const struct hw_call *call)
{
	const struct skel_frame *f = (const struct skel_frame *)call;
	autofree char *config = format_own_config(f->config, false);
	struct renamed_search search = { .call = call, .config = config };
	struct errors unreadable = { 0 }; /* a record that cannot be read is treated as missing */

	record_each_of_plugin(f->state_dir, f->plugin->name, compare_renamed, &search, &unreadable);
	return search.found;
}

const char *attach_requested_netns(const struct hw_call *call)
{
	return str_or(((const struct skel_frame *)call)->request->netns, "");
}

/* Decodes the objects that the ADD created; *made stays empty if an incompatible version of the
 * plugin wrote the record. */
static void decode_created(const struct hw_plugin *plugin, const struct record *r, void *made)
{
	struct hw_err e;

	if (plugin->created_fields && r->created)
		(void)hw_field_decode(plugin->created_fields, r->created, strlen(r->created), made,
				      &e);
}

/* Also true if the boot ID is unknown: GC must not delete attachments in use. */
static bool is_of_this_boot(const struct record *r)
{
	const char *boot = boot_id();

	return str_empty(boot) || str_empty(r->boot) || str_equal(r->boot, boot);
}

/* Return: 1 if the path leads to the namespace of the ADD; 0 if it leads elsewhere or does not
 * exist; or a negative errno */
static int is_same_netns(const struct record *r, const char *path, struct hw_err *e)
{
	autofree char *now = NULL;
	int64_t cookie;
	int ret;

	ret = netns_id_read(str_or(path, ""), &now, &cookie, e);
	if (ret < 0)
		return ret;
	return !str_empty(now) && str_equal(now, r->netns_id) && is_of_this_boot(r) &&
	       (!cookie || !r->netns_cookie || cookie == r->netns_cookie);
}

bool attach_has_netns(const struct record *r)
{
	struct hw_err ignored;

	return is_same_netns(r, r->netns, &ignored) != 0;
}

/* A plugin with records but nothing to delete needs no del(). */
static int call_del(const struct hw_plugin *plugin, struct hw_call *call, struct hw_err *e)
{
	return plugin->del ? plugin->del(call, e) : 0;
}

/* Calls @run with the arguments of a record, as if the runtime had called DEL. */
static int call_recorded(const struct hw_plugin *plugin, const struct skel_request *like,
			 const struct record *r, int (*run)(struct skel_frame *f, struct hw_err *e),
			 struct hw_err *e)
{
	struct skel_request request = *like;
	int ret;

	ret = is_same_netns(r, r->netns, e);
	if (ret < 0)
		return ret;
	request.netns = ret ? r->netns : "";
	request.command = "DEL";
	request.container_id = r->container_id;
	request.ifname = r->ifname;
	request.netns_override = r->netns_override ? "1" : "";
	request.args = r->args;
	request.input = r->config;
	request.input_len = strlen(r->config);

	AUTO(skel_frame_done) struct skel_frame f;
	skel_frame_init(&f, plugin, &request);
	decode_created(plugin, r, f.call.created);
	f.call.recorded = true;
	f.entry = r->entry;
	ret = skel_frame_parse(&f, e);
	if (ret >= 0)
		ret = skel_frame_decode(&f, e);
	return ret < 0 ? ret : run(&f, e);
}

static int delete_and_remove_record(struct skel_frame *f, struct hw_err *e)
{
	int r;

	r = call_del(f->plugin, &f->call, e);
	return r < 0 || f->record_removed ? r : remove_record(f, e);
}

static int delete_recorded(const struct skel_frame *f, const struct record *r, struct hw_err *e)
{
	if (call_recorded(f->plugin, f->request, r, delete_and_remove_record, e) < 0)
		return err_ctx(e, "delete attachment of container %s interface %s", r->container_id,
			       r->ifname);
	return 0;
}

int hw_record_save(struct hw_call *call, struct hw_err *e)
{
	struct skel_frame *f = (struct skel_frame *)call;

	if (!f->record.plugin)
		return err_text(e, -EINVAL, "plugin %s: cannot save an attachment record during %s",
				f->plugin->name, call->command);
	if (f->plugin->created_fields) {
		free(f->record.created);
		f->record.created = hw_field_encode(f->plugin->created_fields, call->created, 0);
	}
	call->recorded = true;
	return record_write(f->state_dir, &f->record, e);
}

/* ---- ADD -------------------------------------------------------------------------- */

/* *e stays the error of the ADD; an error of the undo is added to its details. */
static int undo_add(struct skel_frame *f, struct hw_err *e)
{
	struct hw_err why;
	int r;

	r = call_del(f->plugin, &f->call, &why);
	if (r >= 0 && f->plugin->record)
		r = remove_record(f, &why);
	return r < 0 ? err_details(e, "%s%sundo also failed: %s", e->details,
				   *e->details ? "; " : "", why.msg)
		     : e->code;
}

static int call_add(struct skel_frame *f, struct hw_err *e)
{
	struct hw_call *call = &f->call;

	call->result = call->prev ? hw_result_copy(call->prev) : hw_result_new();
	return f->plugin->add(call, e);
}

/* Formats the result in the configuration's version, unless the plugin set its own reply. */
static int format_reply(struct skel_frame *f, struct hw_err *e)
{
	struct hw_call *call = &f->call;

	if (call->reply)
		return 0;
	return hw_result_format(call->result, call->version, HW_JSON_PRETTY, &call->reply, e);
}

static int finish_add(struct skel_frame *f, struct hw_err *e)
{
	int r;

	r = format_reply(f, e);
	f->record.finished = time_boot();
	return r < 0 ? r : hw_record_save(&f->call, e);
}

static int add_unrecorded(struct skel_frame *f, struct hw_err *e)
{
	int r;

	r = call_add(f, e);
	if (r >= 0)
		r = format_reply(f, e);
	return r < 0 ? undo_add(f, e) : 0;
}

/*
 * Deletes what an earlier ADD of the same attachment left, unless the attachment may be in use: the
 * specification does not allow an ADD without a DEL in between. If the namespace of a finished ADD
 * no longer exists, the pod has ended without a DEL.
 *
 * A finished ADD with another configuration, earlier in the same chain, was that of another entry
 * of the network's list with the same plugin: this entry then gets a record of its own.
 *
 * Return: 0, or a negative errno; CNI code 1017 if the attachment may be in use
 */
static int delete_earlier_add(struct skel_frame *f, struct hw_err *e)
{
	AUTO(record_done) struct record found = { 0 };
	int r;

	r = read_record(f, &found, e);
	if (r <= 0)
		return r;
	r = found.finished ? is_same_netns(&found, found.netns, e) : 0;
	if (r < 0)
		return r;
	if (r > 0 && f->prev && str_empty(found.entry) && !is_for_config(&found, f)) {
		f->entry = config_hash(f);
		return 0;
	}
	if (r > 0)
		return err_cni(e, HW_CNI_ALREADY_ATTACHED,
			       "plugin %s: container %s interface %s is already attached to "
			       "network %s; call DEL first",
			       found.plugin, found.container_id, found.ifname, found.network);
	return delete_recorded(f, &found, e);
}

static int add_recorded(struct skel_frame *f, struct hw_err *e)
{
	int r;

	r = init_record(f, e);
	if (r >= 0 && !f->plugin->created_fields)
		r = hw_record_save(&f->call, e);
	if (r < 0)
		return r;
	f->call.recorded = true;
	r = call_add(f, e);
	if (r >= 0)
		r = finish_add(f, e);
	return r < 0 ? undo_add(f, e) : 0;
}

int attach_add(struct skel_frame *f, struct hw_err *e)
{
	autoclose int lock = -1;
	int r;

	if (!f->plugin->record)
		return add_unrecorded(f, e);
	r = lock_call(f, &lock, e);
	if (r >= 0)
		r = delete_earlier_add(f, e);
	return r < 0 ? r : add_recorded(f, e);
}

/* ---- DEL, CHECK and STATUS ------------------------------------------------------------ */

static int load_record(struct skel_frame *f, struct hw_err *e)
{
	int r;

	r = read_record(f, &f->record, e);
	if (r > 0) {
		decode_created(f->plugin, &f->record, f->call.created);
		f->entry = f->record.entry;
	}
	f->call.recorded = r > 0;
	return r;
}

int attach_del(struct skel_frame *f, struct hw_err *e)
{
	struct hw_call *call = &f->call;
	autoclose int lock = -1;
	int r;

	if (!f->plugin->record)
		return call_del(f->plugin, call, e);
	r = lock_call(f, &lock, e);
	if (r < 0)
		return r;
	r = load_record(f, e);
	if (r < 0)
		return r;
	/* If there is no record, another program may have created the attachment: pass the
	 * namespace to del(), unless the interface has a record in another network. */
	r = call->recorded ? is_same_netns(&f->record, call->netns, e)
			   : !record_in_other_network(f->state_dir, NULL, call->network,
						      call->container_id, call->ifname);
	if (r < 0)
		return r;
	if (r == 0)
		call->netns = "";
	return delete_and_remove_record(f, e);
}

int attach_check(struct skel_frame *f, struct hw_err *e)
{
	int r;

	r = f->plugin->record ? load_record(f, e) : 0;
	return r < 0 ? r : f->plugin->check(&f->call, e);
}

int attach_status(struct skel_frame *f, struct hw_err *e)
{
	return f->plugin->status(&f->call, e);
}

/* ---- GC ----------------------------------------------------------------------------- */

struct record_gc {
	const struct skel_frame *f;
	int64_t called; /* when GC was called */
};

static bool is_kept(const struct record_gc *gc, const struct record *r)
{
	const struct hw_call *call = &gc->f->call;

	for (size_t i = 0; i < call->n_valid; i++)
		if (str_equal(call->valid[i].container_id, r->container_id) &&
		    str_equal(call->valid[i].ifname, r->ifname))
			return true;
	if (!is_of_this_boot(r))
		return false;
	if (r->finished >= gc->called || r->started >= gc->called)
		return true;
	/* Without a list of valid attachments, those with a finished ADD may be in use. */
	return !call->valid && r->finished;
}

static int gc_record(void *ctx, const struct record *r, struct hw_err *e)
{
	const struct record_gc *gc = ctx;

	if (!str_equal(r->network, gc->f->call.network) || is_kept(gc, r))
		return 0;
	return delete_recorded(gc->f, r, e);
}

int attach_gc(struct skel_frame *f, struct hw_err *e)
{
	autoclose int lock = -1;
	struct record_gc gc = { f, time_boot() };
	struct errors errors = { 0 };

	if (f->plugin->record) {
		int r;

		r = lock_acquire(f->state_dir, f->call.network, f->plugin->name, true,
				 lock_deadline(f), &lock, e);
		if (r < 0)
			return r;
		record_each_of_network(f->state_dir, f->plugin->name, f->call.network, true,
				       gc_record, &gc, &errors);
	}
	if (f->plugin->gc && f->plugin->gc(&f->call, e) < 0)
		errors_add(&errors, e);
	return errors_result(&errors, e);
}

/* ---- repair ------------------------------------------------------------------------- */

/* The attachments to repair. The list contains only their names; each record is read again, under
 * the lock, when the attachment is repaired. */
struct repair_list {
	const char *state_dir;
	const struct hw_plugin *plugin; /* the plugin whose records are being listed */
	struct repair_item {
		const struct hw_plugin *plugin;
		char *network, *container_id, *ifname, *entry;
		int64_t finished;
	} * v;
	size_t n;
};

static void repair_list_done(struct repair_list *list)
{
	for (size_t i = 0; i < list->n; i++) {
		free(list->v[i].network);
		free(list->v[i].container_id);
		free(list->v[i].ifname);
		free(list->v[i].entry);
	}
	free(list->v);
}
AUTO_VALUE_DEFINE(repair_list_done, struct repair_list);

static bool needs_repair(const struct record *r)
{
	return r->finished && is_of_this_boot(r);
}

static int list_record(void *ctx, const struct record *r, struct hw_err *e)
{
	struct repair_list *list = ctx;

	(void)e;
	if (!needs_repair(r))
		return 0;
	list->v = mem_resize(list->v, list->n + 1, sizeof(*list->v));
	list->v[list->n++] = (struct repair_item){
		.plugin = list->plugin,
		.network = str_copy(r->network),
		.container_id = str_copy(r->container_id),
		.ifname = str_copy(r->ifname),
		.entry = str_copy(str_or(r->entry, "")),
		.finished = r->finished,
	};
	return 0;
}

static int compare_finished(const void *a, const void *b)
{
	int64_t first = ((const struct repair_item *)a)->finished;
	int64_t second = ((const struct repair_item *)b)->finished;

	return (first > second) - (first < second);
}

typedef int repair_fn(struct skel_frame *f, struct hw_err *e);

static int repair_attachment(struct skel_frame *f, struct hw_err *e)
{
	int r;

	r = f->plugin->repair(&f->call, e);
	return r < 0 ? r : 1;
}

/* call_recorded() leaves netns empty if the namespace no longer exists. */
static int repair_if_netns_exists(struct skel_frame *f, struct hw_err *e)
{
	return str_empty(f->call.netns) ? 0 : repair_attachment(f, e);
}

/* The lock excludes ADD and DEL. If the record no longer exists, a DEL has removed it since it was
 * listed. */
static int repair_one(const struct repair_list *list, const struct repair_item *item,
		      repair_fn *repair, struct hw_err *e)
{
	struct skel_request request = { .state_dir = list->state_dir };
	AUTO(record_done) struct record now = { 0 };
	autoclose int lock = -1;
	int r;

	r = lock_acquire(list->state_dir, item->network, item->plugin->name, true,
			 time_deadline(LOCK_TIMEOUT_MS), &lock, e);
	if (r >= 0)
		r = record_read(list->state_dir, item->plugin->name, item->network,
				item->container_id, item->ifname, item->entry, &now, e);
	if (r > 0)
		r = needs_repair(&now) ? call_recorded(item->plugin, &request, &now, repair, e) : 0;
	return r < 0 ? err_ctx(e, "repair container %s interface %s of network %s",
			       item->container_id, item->ifname, item->network)
		     : r;
}

/* @errors: NULL: errors are ignored */
static int repair_all(const struct repair_list *list, repair_fn *repair, struct errors *errors)
{
	struct hw_err e;
	int repaired = 0;

	for (size_t i = 0; i < list->n; i++) {
		int r;

		r = repair_one(list, &list->v[i], repair, &e);
		if (r >= 0)
			repaired += r;
		else if (errors)
			errors_add(errors, &e);
	}
	return repaired;
}

/* Repairs the oldest attachment first. The record of a dead pod may still name an address that a
 * newer pod has now: the newer pod is repaired later and takes the address over. A host port of
 * portmap must never go to a dead pod, so a first pass repairs only the pods whose namespace still
 * exists. The second pass finds what a newer pod has taken over from an older one in the first pass,
 * and reports it. */
int attach_repair(const struct hw_plugin *const *plugins, const char *state_dir,
		  struct errors *errors)
{
	AUTO(repair_list_done) struct repair_list list = { .state_dir = state_dir };

	for (size_t i = 0; plugins[i]; i++) {
		list.plugin = plugins[i];
		if (plugins[i]->repair)
			record_each_of_plugin(state_dir, plugins[i]->name, list_record, &list,
					      errors);
	}
	if (list.n)
		qsort(list.v, list.n, sizeof(*list.v), compare_finished);
	repair_all(&list, repair_if_netns_exists, NULL);
	return repair_all(&list, repair_attachment, errors);
}
