/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/container-state.c - ROOT/pods.db: the rows of containers
 */
#include <errno.h>
#include <string.h>

#include "base/json/field.h"
#include "base/json/value.h"
#include "base/log.h"
#include "base/str.h"
#include "pod/container.h"

/* ---- columns that contain a list, as JSON --------------------------------------------- */

/* Tables with one key: the column contains only its value. */
static const struct hw_field layers_field[] = {
	{ "layers", HW_STRINGS, HW_AT(struct container, layers), .flags = HW_ALWAYS },
	{ 0 },
};

static const struct hw_field mount_refs_field[] = {
	{ "mount_refs", HW_STRINGS, HW_AT(struct container, mount_refs), .flags = HW_ALWAYS },
	{ 0 },
};

static const struct hw_field groups_field[] = {
	{ "groups", HW_UINT32S, HW_AT(struct container, groups), .flags = HW_ALWAYS },
	{ 0 },
};

static char *encode_list(const struct hw_field *table, const struct container *c)
{
	AUTO(value_free) struct value *object = field_encode(table, c);

	return value_format(value_get(object, table->name), 0);
}

static int decode_list(const struct hw_field *table, const char *list, struct container *c,
		       struct hw_err *e)
{
	AUTO(value_free) struct value *object = value_new_object();
	struct value *parsed;
	int r;

	r = value_parse(list, strlen(list), &parsed, e);
	if (r < 0)
		return r;
	value_set(object, table->name, parsed);
	return field_decode(table, object, c, e);
}

/* ---- reading -------------------------------------------------------------------------- */

/* Reasons are constants. */
static const char *find_reason(const char *text)
{
	static const char *const reasons[] = { CONTAINER_REASONS };

	for (size_t i = 0; i < ARRAY_SIZE(reasons); i++)
		if (str_equal(reasons[i], text))
			return reasons[i];
	return "";
}

enum {
	COLUMN_ID,
	COLUMN_POD,
	COLUMN_STATE,
	COLUMN_CREATED,
	COLUMN_STARTED,
	COLUMN_FINISHED,
	COLUMN_EXIT,
	COLUMN_OOM,
	COLUMN_REASON,
	COLUMN_MESSAGE,
	COLUMN_SPEC,
	COLUMN_IMAGE_ID,
	COLUMN_IMAGE_REF,
	COLUMN_LAYERS,
	COLUMN_LOG,
	COLUMN_SIGNAL,
	COLUMN_UID,
	COLUMN_GID,
	COLUMN_GROUPS,
	COLUMN_LIMITS,
	COLUMN_MOUNT_REFS,
};

#define COLUMNS                                                                                    \
	"id, pod, state, created_at, started_at, finished_at, exit_code, oom, reason, message,"    \
	" spec, image_id, image_ref, layers, log, stop_signal, uid, gid, groups, limits,"          \
	" mount_refs"

static int fill(struct container *c, struct db_query *q, struct hw_err *e)
{
	int r;

	c->created_at = db_int(q, COLUMN_CREATED);
	c->status = (struct container_status){
		.state = (enum container_state)db_int(q, COLUMN_STATE),
		.started_at = db_int(q, COLUMN_STARTED),
		.finished_at = db_int(q, COLUMN_FINISHED),
		.exit_code = (int)db_int(q, COLUMN_EXIT),
		.oom = db_int(q, COLUMN_OOM),
		.reason = find_reason(db_text(q, COLUMN_REASON)),
		.message = str_copy(db_text(q, COLUMN_MESSAGE)),
	};
	c->announced = c->status.state != CONTAINER_MAKING;
	if (!c->announced)
		c->status.state = CONTAINER_REMOVING;
	c->image_id = str_copy(db_text(q, COLUMN_IMAGE_ID));
	c->image_ref = str_copy(db_text(q, COLUMN_IMAGE_REF));
	c->log = *db_text(q, COLUMN_LOG) ? str_copy(db_text(q, COLUMN_LOG)) : NULL;
	c->stop_signal = (int)db_int(q, COLUMN_SIGNAL);
	c->uid = (uint32_t)db_int(q, COLUMN_UID);
	c->gid = (uint32_t)db_int(q, COLUMN_GID);
	shared_unref(take_ptr(c->limits));
	r = limits_decode(db_text(q, COLUMN_LIMITS), &c->limits, e);
	if (r == 0)
		r = decode_list(layers_field, db_text(q, COLUMN_LAYERS), c, e);
	if (r == 0)
		r = container_check_layers(c, e);
	if (r == 0)
		r = decode_list(mount_refs_field, db_text(q, COLUMN_MOUNT_REFS), c, e);
	return r < 0 ? r : decode_list(groups_field, db_text(q, COLUMN_GROUPS), c, e);
}

/* Return: 0 with a container; or a negative errno */
static int read_row(struct pods *p, struct db_query *q, struct pod *pod, struct container **ret,
		    struct hw_err *e)
{
	AUTO(shared_unref) struct container_spec *spec = NULL;
	AUTO(shared_unref) struct container *c = NULL;
	int r;

	if (!pod)
		return err_text(e, -ENODATA, "its pod is not in the database");
	r = container_spec_decode(db_text(q, COLUMN_SPEC), &spec, e);
	if (r < 0)
		return r;
	c = container_new(p, db_text(q, COLUMN_ID), pod, spec);
	r = fill(c, q, e);
	if (r == 0)
		*ret = take_ptr(c);
	return r;
}

/* A container whose row cannot be read, or whose pod is lost, is lost, too. */
static void load_row(struct pods *p, struct db_query *q)
{
	AUTO(shared_unref) struct container *c = NULL;
	AUTO(shared_unref) struct pod *found = NULL;
	struct pod *pod = NULL;
	struct hw_err e;

	found = object_get(&p->pods, db_text(q, COLUMN_POD));
	if (found && found->spec)
		pod = found;
	if (read_row(p, q, pod, &c, &e) < 0) {
		c = container_new(p, db_text(q, COLUMN_ID), pod, NULL);
		log_event(LOG_ERROR, "row of a container cannot be used; the container is kept",
			  "container", c->o.id, "error", e.msg, NULL);
		c->status.state = CONTAINER_LOST;
	}
	object_add(&c->o);
	container_publish(c);
}

int container_state_load(struct pods *p, struct hw_err *e)
{
	AUTO(db_query_done) struct db_query q = { 0 };
	int r;

	r = db_query(p->db, "SELECT " COLUMNS " FROM containers", DB_NO_VALUES, &q, e);
	while (r >= 0 && (r = db_step(&q, e)) > 0)
		load_row(p, &q);
	return r < 0 ? err_ctx(e, "database of containers") : 0;
}

/* ---- writing -------------------------------------------------------------------------- */

int container_state_insert(struct container *c, struct hw_err *e)
{
	autofree char *layers = encode_list(layers_field, c);
	autofree char *groups = encode_list(groups_field, c);
	autofree char *mount_refs = encode_list(mount_refs_field, c);
	struct pods *p = c->pods;
	int r;

	pthread_mutex_lock(&p->write_lock);
	r = db_run(p->db,
		   "INSERT INTO containers (" COLUMNS ")"
		   " VALUES (?, ?, ?, ?, 0, 0, 0, 0, '', '', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		   DB_VALUES(DB_TEXT(c->o.id), DB_TEXT(c->pod->o.id), DB_INT(c->status.state),
			     DB_INT(c->created_at), DB_TEXT(c->spec->text), DB_TEXT(c->image_id),
			     DB_TEXT(c->image_ref), DB_TEXT(layers), DB_TEXT(str_or(c->log, "")),
			     DB_INT(c->stop_signal), DB_INT(c->uid), DB_INT(c->gid),
			     DB_TEXT(groups), DB_TEXT(c->limits->text), DB_TEXT(mount_refs)),
		   e);
	if (r == 0)
		container_publish(c);
	pthread_mutex_unlock(&p->write_lock);
	return r < 0 ? err_ctx(e, "store container") : 0;
}

static int update_row(struct container *c, struct hw_err *e)
{
	const struct container_status *s = &c->status;
	autofree char *groups = NULL;

	if (!c->spec) /* lost: it has no row, or one that cannot be read */
		return 0;
	groups = encode_list(groups_field, c);
	return db_run(
		c->pods->db,
		"UPDATE containers SET state = ?, started_at = ?, finished_at = ?,"
		" exit_code = ?, oom = ?, reason = ?, message = ?, spec = ?, uid = ?, gid = ?,"
		" groups = ?, limits = ? WHERE id = ?",
		DB_VALUES(DB_INT(s->state), DB_INT(s->started_at), DB_INT(s->finished_at),
			  DB_INT(s->exit_code), DB_INT(s->oom), DB_TEXT(s->reason),
			  DB_TEXT(str_or(s->message, "")), DB_TEXT(c->spec->text), DB_INT(c->uid),
			  DB_INT(c->gid), DB_TEXT(groups), DB_TEXT(c->limits->text),
			  DB_TEXT(c->o.id)),
		e);
}

int container_state_change(struct container *c,
			   bool (*change)(struct container_status *status, void *ctx), void *ctx,
			   struct hw_err *e)
{
	struct pods *p = c->pods;
	enum container_state before;
	int r = 0;

	pthread_mutex_lock(&p->write_lock);
	before = c->status.state;
	if (change(&c->status, ctx)) {
		r = update_row(c, e);
		container_publish(c);
		event_container_changed(c, before);
	}
	pthread_mutex_unlock(&p->write_lock);
	/* wake operations that wait for this change */
	pthread_mutex_lock(&c->o.table->lock);
	pthread_cond_broadcast(&c->o.changed);
	pthread_mutex_unlock(&c->o.table->lock);
	return r < 0 ? err_ctx(e, "store the state of container %s", c->o.id) : 0;
}

int container_set_limits(struct container *c, const struct limits *limits, struct hw_err *e)
{
	const struct limits *old = c->limits;
	struct pods *p = c->pods;
	int r;

	pthread_mutex_lock(&p->write_lock);
	c->limits = limits;
	r = update_row(c, e);
	if (r == 0) {
		shared_ref(limits);
		shared_unref(old);
		container_publish(c);
	} else {
		c->limits = old;
	}
	pthread_mutex_unlock(&p->write_lock);
	return r < 0 ? err_ctx(e, "store the limits of container %s", c->o.id) : 0;
}

static bool change_state(struct container_status *status, void *ctx)
{
	status->state = *(enum container_state *)ctx;
	return true;
}

int container_set_state(struct container *c, enum container_state state, struct hw_err *e)
{
	return container_state_change(c, change_state, &state, e);
}

enum container_state container_get_state(struct container *c)
{
	enum container_state state;

	pthread_mutex_lock(&c->o.table->lock);
	state = ((const struct container_view *)c->o.view)->status.state;
	pthread_mutex_unlock(&c->o.table->lock);
	return state;
}

const struct limits *container_get_limits(struct container *c)
{
	const struct limits *limits;

	pthread_mutex_lock(&c->o.table->lock);
	limits = shared_ref(((const struct container_view *)c->o.view)->limits);
	pthread_mutex_unlock(&c->o.table->lock);
	return limits;
}

bool container_is_starting(struct container *c)
{
	bool starting;

	pthread_mutex_lock(&c->pods->write_lock);
	starting = c->status.state == CONTAINER_CREATED && c->status.started_at;
	pthread_mutex_unlock(&c->pods->write_lock);
	return starting;
}

int container_state_delete(struct container *c, struct hw_err *e)
{
	struct pods *p = c->pods;
	int r;

	pthread_mutex_lock(&p->write_lock);
	r = db_run(p->db, "DELETE FROM containers WHERE id = ?", DB_VALUES(DB_TEXT(c->o.id)), e);
	if (r == 0) {
		object_remove(&c->o);
		event_container_deleted(c);
		lost_removed(p);
	}
	pthread_mutex_unlock(&p->write_lock);
	return r < 0 ? err_ctx(e, "delete container %s from the database", c->o.id) : 0;
}
