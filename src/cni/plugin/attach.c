/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/plugin/attach.c - what stands around a plugin's verbs
 *
 * What:  a failed ADD is undone by the plugin's own DEL. For a plugin with
 *        .record: the attachment record, the locks between GC and ADD or DEL,
 *        and the GC itself.
 * How:   the life of a record, by what is found when a verb begins:
 *
 *	found             ADD                        DEL            GC, unless valid
 *	none              write it, unfinished       del() anyway   -
 *	unfinished        del() it, then as none     del(), remove  del(), remove
 *	  .. on top       del() it, then as none     del(), remove  del(), remove; not
 *	                                                            without a list
 *	finished          keep it; add() may refuse  del(), remove  del(), remove
 *	of another boot   as unfinished              del(), remove  del(), remove
 *
 *        ADD ends with the record finished, or with its DEL done and the record
 *        gone, or (DEL failed, process killed) with it unfinished.
 *        On top of a finished one it ends with either of the two; killed there the
 *        record is unfinished, but says that there was an earlier one: the pod lives.
 *        It is first written when the plugin says what it is about to make, and
 *        before add() where the plugin never says.
 * Rules: GC keeps what began or finished after it was called: it reads the
 *        clock before it waits for the lock, and since nobody else is inside
 *        once it has the lock, an older unfinished record is a dead ADD's.
 *        A netns path is believed only while it leads to the namespace that it
 *        led to at ADD: /proc/PID/ns/net may be somebody else's by now.
 */
#include "cni/plugin/attach.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/str.h"
#include "base/time.h"
#include "cni/lock.h"

static int take_lock(const struct skel_frame *f, bool exclusive, int *ret_fd, struct hw_err *e)
{
	int ms = f->request->lock_timeout_ms ? f->request->lock_timeout_ms : LOCK_TIMEOUT_MS;

	return lock_acquire(f->state_dir, f->call.network, f->plugin->name, exclusive,
			 time_deadline(ms), ret_fd, e);
}

/* ---- records -------------------------------------------------------------------- */

/* "DEVICE:INODE", or "" when the path leads nowhere */
static int netns_id(const char *path, char **ret_id, struct hw_err *e)
{
	struct stat st;

	if (stat(path, &st) == 0)
		*ret_id = str_printf("%llu:%llu", (unsigned long long)st.st_dev,
				     (unsigned long long)st.st_ino);
	else if (errno == ENOENT || errno == ENOTDIR)
		*ret_id = str_copy("");
	else
		return err_set(e, -errno, "look at namespace %s", path);
	return 0;
}

/* Begins the record of an ADD. */
static int begin_record(struct skel_frame *f, struct hw_err *e)
{
	autofree char *id = NULL;

	int r = netns_id(f->call.netns, &id, e);
	if (r < 0)
		return r;
	f->record = (struct record){
		.plugin = str_copy(f->plugin->name),
		.network = str_copy(f->call.network),
		.container_id = str_copy(f->call.container_id),
		.ifname = str_copy(f->call.ifname),
		.netns = str_copy(f->call.netns),
		.netns_id = take_ptr(id),
		.netns_override = f->call.netns_override,
		.args = str_copy(f->call.args),
		.config = str_ncopy(f->call.input, f->call.input_len),
		.boot = str_copy(record_boot_id()),
		.started = time_boot(),
	};
	return 0;
}

static int read_record(const struct skel_frame *f, struct record *ret, struct hw_err *e)
{
	return record_read(f->state_dir, f->plugin->name, f->call.network, f->call.container_id,
			   f->call.ifname, ret, e);
}

static int remove_record(const struct skel_frame *f, struct hw_err *e)
{
	return record_remove(f->state_dir, f->plugin->name, f->call.network, f->call.container_id,
			     f->call.ifname, e);
}

/* What a record says was made; one that an older table wrote counts as saying nothing. */
static void decode_made(const struct hw_plugin *plugin, const struct record *r, void *made)
{
	struct hw_err e;

	if (plugin->made_fields && r->made)
		(void)hw_field_decode(plugin->made_fields, r->made, strlen(r->made), made, &e);
}

/* Where the kernel does not say which boot it is, nothing is stale: a GC must not end the living. */
static bool is_of_this_boot(const struct record *r)
{
	const char *boot = record_boot_id();

	return str_empty(boot) || str_empty(r->boot) || str_equal(r->boot, boot);
}

/* Does a path lead to the namespace that the ADD worked in? 0: elsewhere, or nowhere; or a negative
 * errno, where that cannot be told now. */
static int is_its_netns(const struct record *r, const char *path, struct hw_err *e)
{
	autofree char *now = NULL;

	int ret = netns_id(str_or(path, ""), &now, e);
	return ret < 0 ? ret : !str_empty(now) && str_equal(now, r->netns_id) && is_of_this_boot(r);
}

/* When the attachment was last complete; 0: never */
static int64_t when_done(const struct record *r)
{
	return r->finished ? r->finished : r->earlier;
}

/* A plugin that keeps records but has nothing to remove needs no DEL. */
static int call_del(const struct hw_plugin *plugin, struct hw_call *call, struct hw_err *e)
{
	return plugin->del ? plugin->del(call, e) : 0;
}

/* Run something on what a record says, as the runtime would have called DEL. */
static int call_recorded(const struct hw_plugin *plugin, const struct skel_request *like,
			 const struct record *r, int (*run)(struct skel_frame *f, struct hw_err *e),
			 struct hw_err *e)
{
	struct skel_request request = *like;

	int ret = is_its_netns(r, r->netns, e);
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
	decode_made(plugin, r, f.call.made);
	f.call.recorded = true;
	ret = skel_frame_parse(&f, e);
	if (ret >= 0)
		ret = skel_frame_decode(&f, e);
	return ret < 0 ? ret : run(&f, e);
}

static int end_and_forget(struct skel_frame *f, struct hw_err *e)
{
	int r = call_del(f->plugin, &f->call, e);

	return r < 0 ? r : remove_record(f, e);
}

static int end_recorded(const struct skel_frame *f, const struct record *r, struct hw_err *e)
{
	if (call_recorded(f->plugin, f->request, r, end_and_forget, e) < 0)
		return err_ctx(e, "end container %s interface %s", r->container_id, r->ifname);
	return 0;
}

/**
 * hw_record_save() - write call->made down, before the kernel is changed
 */
int hw_record_save(struct hw_call *call, struct hw_err *e)
{
	struct skel_frame *f = (struct skel_frame *)call;

	if (!f->record.plugin)
		return err_text(e, -EINVAL, "%s keeps no record during %s", f->plugin->name,
				call->command);
	if (f->plugin->made_fields) {
		free(f->record.made);
		f->record.made = hw_field_encode(f->plugin->made_fields, call->made, 0);
	}
	call->recorded = true;
	return record_write(f->state_dir, &f->record, e);
}

/* ---- ADD -------------------------------------------------------------------------- */

static int add_detail(struct hw_err *e, const char *what, const struct hw_err *why)
{
	return err_details(e, "%s%s%s: %s", e->details, *e->details ? "; " : "", what, why->msg);
}

/* Keeps the first error; what went wrong while undoing goes to its details. */
static int undo(struct skel_frame *f, struct hw_err *e)
{
	struct hw_err again;

	int r = call_del(f->plugin, &f->call, &again);
	if (r >= 0 && f->plugin->record)
		r = remove_record(f, &again);
	return r < 0 ? add_detail(e, "undo also failed", &again) : e->code;
}

static int call_add(struct skel_frame *f, struct hw_err *e)
{
	struct hw_call *call = &f->call;

	call->result = call->prev ? hw_result_copy(call->prev) : hw_result_new();
	return f->plugin->add(call, e);
}

/* In the version that was asked for */
static int answer(struct skel_frame *f, struct hw_err *e)
{
	struct hw_call *call = &f->call;

	if (call->reply)
		return 0;
	return hw_result_format(call->result, call->version, HW_JSON_PRETTY, &call->reply, e);
}

static int answer_and_finish(struct skel_frame *f, struct hw_err *e)
{
	int r = answer(f, e);

	f->record.finished = time_boot();
	f->record.earlier = 0;
	return r < 0 ? r : hw_record_save(&f->call, e);
}

static int add_unrecorded(struct skel_frame *f, struct hw_err *e)
{
	int r = call_add(f, e);

	if (r >= 0)
		r = answer(f, e);
	return r < 0 ? undo(f, e) : 0;
}

/*
 * What a finished ADD of the same attachment left is the plugin's to see, what
 * an unfinished one left is ended.
 *
 * Return: 1 when there is a finished one, which is then in @ret_record
 */
static int look_for_earlier(struct skel_frame *f, struct record *ret_record, struct hw_err *e)
{
	AUTO(record_done) struct record found = { 0 };

	int r = read_record(f, &found, e);
	if (r <= 0)
		return r;
	if (!found.finished || !is_of_this_boot(&found))
		return end_recorded(f, &found, e);
	f->earlier = mem_new(f->plugin->made_size);
	decode_made(f->plugin, &found, f->earlier);
	f->call.earlier = f->earlier;
	*ret_record = found;
	found = (struct record){ 0 };
	return 1;
}

/* On top of a finished attachment nothing is undone: that would end the earlier one. Where add() fails
 * it has put back what the earlier record says, as far as that can be; there is nothing which that
 * record does not name. Where it does not fail all is as the record that it saved itself says. */
static int add_again(struct skel_frame *f, const struct record *earlier, struct hw_err *e)
{
	struct hw_err again;

	int r = begin_record(f, e);
	f->record.earlier = earlier->finished;
	if (r >= 0)
		r = call_add(f, e);
	if (r >= 0)
		return answer_and_finish(f, e);
	if (record_write(f->state_dir, earlier, &again) < 0)
		add_detail(e, "the earlier record is lost", &again);
	return r;
}

static int add_first(struct skel_frame *f, struct hw_err *e)
{
	int r = begin_record(f, e);
	if (r >= 0 && !f->plugin->made_fields)
		r = hw_record_save(&f->call, e);
	if (r < 0)
		return r;
	f->call.recorded = true;
	r = call_add(f, e);
	if (r >= 0)
		r = answer_and_finish(f, e);
	return r < 0 ? undo(f, e) : 0;
}

/**
 * attach_add() - ADD: all of it, or nothing and the first error
 */
int attach_add(struct skel_frame *f, struct hw_err *e)
{
	AUTO(record_done) struct record earlier = { 0 };
	autoclose int lock = -1;

	if (!f->plugin->record)
		return add_unrecorded(f, e);
	int r = take_lock(f, false, &lock, e);
	if (r >= 0)
		r = look_for_earlier(f, &earlier, e);
	if (r < 0)
		return r;
	return r ? add_again(f, &earlier, e) : add_first(f, e);
}

/* ---- the other verbs ---------------------------------------------------------------- */

static int load_record(struct skel_frame *f, struct hw_err *e)
{
	int r = read_record(f, &f->record, e);
	if (r > 0)
		decode_made(f->plugin, &f->record, f->call.made);
	f->call.recorded = r > 0;
	return r;
}

/* May DEL touch what is in the runtime's namespace? Where there is no record another program may
 * have made the attachment, unless the interface is known to be that of another network. */
static int may_enter(const struct skel_frame *f, struct hw_err *e)
{
	const struct hw_call *call = &f->call;

	if (call->recorded)
		return is_its_netns(&f->record, call->netns, e);
	return !record_is_elsewhere(f->state_dir, call->network, call->container_id, call->ifname);
}

/**
 * attach_del() - DEL, with what the record says was made
 */
int attach_del(struct skel_frame *f, struct hw_err *e)
{
	autoclose int lock = -1;

	if (!f->plugin->record)
		return call_del(f->plugin, &f->call, e);
	int r = take_lock(f, false, &lock, e);
	if (r >= 0)
		r = load_record(f, e);
	if (r >= 0)
		r = may_enter(f, e);
	if (r < 0)
		return r;
	if (r == 0)
		f->call.netns = "";
	r = call_del(f->plugin, &f->call, e);
	return r < 0 ? r : remove_record(f, e);
}

/**
 * attach_check() - CHECK, with what the record says was made
 */
int attach_check(struct skel_frame *f, struct hw_err *e)
{
	int r = f->plugin->record ? load_record(f, e) : 0;

	return r < 0 ? r : f->plugin->check(&f->call, e);
}

/**
 * attach_status() - STATUS
 */
int attach_status(struct skel_frame *f, struct hw_err *e)
{
	return f->plugin->status(&f->call, e);
}

/* ---- GC ----------------------------------------------------------------------------- */

struct sweep {
	const struct skel_frame *f;
	int64_t called;
};

static bool is_valid(const struct hw_call *call, const struct record *r)
{
	for (size_t i = 0; i < call->n_valid; i++)
		if (str_equal(call->valid[i].container_id, r->container_id) &&
		    str_equal(call->valid[i].ifname, r->ifname))
			return true;
	return false;
}

static bool is_kept(const struct sweep *sweep, const struct record *r)
{
	const struct hw_call *call = &sweep->f->call;

	if (is_valid(call, r))
		return true;
	if (!is_of_this_boot(r))
		return false;
	if (r->finished >= sweep->called || r->started >= sweep->called)
		return true;
	/* Where the runtime did not say what is valid only dead ADDs are surely nobody's. */
	return !call->valid && when_done(r);
}

static int sweep_record(void *ctx, const struct record *r, struct hw_err *e)
{
	const struct sweep *sweep = ctx;

	if (!str_equal(r->network, sweep->f->call.network) || is_kept(sweep, r))
		return 0;
	return end_recorded(sweep->f, r, e);
}

static void gc_records(struct skel_frame *f, int64_t called, struct errors *errors)
{
	struct sweep sweep = { f, called };

	record_each(f->state_dir, f->plugin->name, f->call.network, true, sweep_record, &sweep,
		    errors);
}

/**
 * attach_gc() - GC: end what is recorded and not valid, then the plugin's own
 *
 * Both parts run whatever the other does; all errors are told, one per line.
 */
int attach_gc(struct skel_frame *f, struct hw_err *e)
{
	autoclose int lock = -1;
	int64_t called = time_boot();
	struct errors errors = { 0 };

	if (f->plugin->record) {
		int r = take_lock(f, true, &lock, e);
		if (r < 0)
			return r;
		gc_records(f, called, &errors);
	}
	if (f->plugin->gc && f->plugin->gc(&f->call, e) < 0)
		errors_add(&errors, e);
	return errors_end(&errors, e);
}

/* ---- repair ------------------------------------------------------------------------- */

/* Which attachments there are, by the time at which they were done; what their records say is read
 * when it is their turn. */
struct repair {
	const char *state_dir;
	const struct hw_plugin *plugin; /* whose records are being read */
	struct repair_one {
		const struct hw_plugin *plugin;
		char *network, *container_id, *ifname;
		int64_t done;
	} * v;
	size_t n;
};

static void repair_done(struct repair *repair)
{
	for (size_t i = 0; i < repair->n; i++) {
		free(repair->v[i].network);
		free(repair->v[i].container_id);
		free(repair->v[i].ifname);
	}
	free(repair->v);
}
AUTO_VALUE_DEFINE(repair_done, struct repair);

static bool is_repaired(const struct record *r)
{
	return when_done(r) && is_of_this_boot(r);
}

static int note_record(void *ctx, const struct record *r, struct hw_err *e)
{
	struct repair *repair = ctx;

	(void)e;
	if (!is_repaired(r))
		return 0;
	repair->v = mem_resize(repair->v, repair->n + 1, sizeof(*repair->v));
	repair->v[repair->n++] = (struct repair_one){
		.plugin = repair->plugin,
		.network = str_copy(r->network),
		.container_id = str_copy(r->container_id),
		.ifname = str_copy(r->ifname),
		.done = when_done(r),
	};
	return 0;
}

static int by_time(const void *a, const void *b)
{
	int64_t first = ((const struct repair_one *)a)->done;
	int64_t second = ((const struct repair_one *)b)->done;

	return (first > second) - (first < second);
}

typedef int repair_fn(struct skel_frame *f, struct hw_err *e);

static int repair_any(struct skel_frame *f, struct hw_err *e)
{
	int r = f->plugin->repair(&f->call, e);

	return r < 0 ? r : 1;
}

static int repair_living(struct skel_frame *f, struct hw_err *e)
{
	return str_empty(f->call.netns) ? 0 : repair_any(f, e);
}

/* With the lock there is no ADD or DEL of it; a record that is gone meanwhile was a DEL's. */
static int repair_one(const struct repair *repair, const struct repair_one *one, repair_fn *run,
		      struct hw_err *e)
{
	struct skel_request request = { .state_dir = repair->state_dir };
	AUTO(record_done) struct record now = { 0 };
	autoclose int lock = -1;

	int r = lock_acquire(repair->state_dir, one->network, one->plugin->name, true,
			  time_deadline(LOCK_TIMEOUT_MS), &lock, e);
	if (r >= 0)
		r = record_read(repair->state_dir, one->plugin->name, one->network,
				one->container_id, one->ifname, &now, e);
	if (r > 0)
		r = is_repaired(&now) ? call_recorded(one->plugin, &request, &now, run, e) : 0;
	return r < 0 ? err_ctx(e, "repair container %s interface %s of network %s",
			       one->container_id, one->ifname, one->network)
		     : r;
}

/* @errors: NULL: they are not told */
static int repair_all(const struct repair *repair, repair_fn *run, struct errors *errors)
{
	struct hw_err e;
	int repaired = 0;

	for (size_t i = 0; i < repair->n; i++) {
		int r = repair_one(repair, &repair->v[i], run, &e);

		if (r >= 0)
			repaired += r;
		else if (errors)
			errors_add(errors, &e);
	}
	return repaired;
}

/**
 * attach_repair() - call repair() for each attachment of these plugins, the newest last
 * @plugins: ended by NULL
 * @errors:  those that there were; none of them ends the work
 *
 * In that order, whichever plugin made them: the record of a dead pod may still claim an address that
 * another has had since. What only one can have, and whoever comes first keeps, it must not get,
 * either: so those whose namespace is still there have a turn before all have theirs.
 *
 * Return: how many were looked after
 */
int attach_repair(const struct hw_plugin *const *plugins, const char *state_dir,
		  struct errors *errors)
{
	AUTO(repair_done) struct repair repair = { .state_dir = state_dir };

	for (size_t i = 0; plugins[i]; i++) {
		repair.plugin = plugins[i];
		if (plugins[i]->repair)
			record_each_of(state_dir, plugins[i]->name, note_record, &repair, errors);
	}
	if (repair.n)
		qsort(repair.v, repair.n, sizeof(*repair.v), by_time);
	repair_all(&repair, repair_living, NULL);
	return repair_all(&repair, repair_any, errors);
}
