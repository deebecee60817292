/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/state.c - ROOT/pods.db: the rows of pods
 *
 * How:   a row has everything that is needed to stop and remove a pod. Commits survive the end of the
 *        process at any instant; a power cut, which also ends the pods, may lose the last ones.
 *        A damaged database is renamed and kept; lost.c finds the pods that were in it.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/os/file.h"
#include "base/str.h"
#include "pod/pod.h"

#define DATABASE "pods.db"
#define BUSY_MS	 5000

static const char *const migrations[] = {
	"CREATE TABLE pods ("
	" id TEXT PRIMARY KEY,"
	" state INTEGER NOT NULL," /* enum pod_state: what is being done */
	" created_at INTEGER NOT NULL,"
	" boot TEXT NOT NULL," /* boot ID of the kernel that has the pod's objects */
	" spec TEXT NOT NULL,"
	" cgroup TEXT NOT NULL," /* path of the cgroup that contains those of containers */
	" cgroup_driver INTEGER NOT NULL," /* enum cgroup_driver */
	" network TEXT NOT NULL,"	   /* pod_network_fields */
	" pid INTEGER NOT NULL"
	") WITHOUT ROWID;",

	"CREATE TABLE containers ("
	" id TEXT PRIMARY KEY,"
	" pod TEXT NOT NULL,"
	" state INTEGER NOT NULL," /* enum container_state */
	" created_at INTEGER NOT NULL,"
	" started_at INTEGER NOT NULL,"
	" finished_at INTEGER NOT NULL,"
	" exit_code INTEGER NOT NULL,"
	" oom INTEGER NOT NULL,"
	" reason TEXT NOT NULL,"
	" message TEXT NOT NULL,"
	" spec TEXT NOT NULL,"
	" image_id TEXT NOT NULL,"
	" image_ref TEXT NOT NULL,"
	" layers TEXT NOT NULL," /* chain IDs: a JSON list */
	" log TEXT NOT NULL,"
	" stop_signal INTEGER NOT NULL,"
	" uid INTEGER NOT NULL,"
	" gid INTEGER NOT NULL,"
	" groups TEXT NOT NULL," /* a JSON list */
	" limits TEXT NOT NULL"	 /* oci_resources_fields: as they are now */
	") WITHOUT ROWID;",

	/* oci_resources_fields: as they are now; NULL: as in the spec */
	"ALTER TABLE pods ADD COLUMN resources TEXT; ALTER TABLE pods ADD COLUMN overhead TEXT;",

	/* the images of mounts: a JSON list */
	"ALTER TABLE containers ADD COLUMN mount_refs TEXT NOT NULL DEFAULT '[]';",
};

static const struct db_options options = {
	.migrations = migrations,
	.n_migrations = ARRAY_SIZE(migrations),
	.busy_ms = BUSY_MS,
	.check = true,
	.reserve = true, /* containers that have filled the disk must be removed */
};

/* ---- opening ------------------------------------------------------------------------ */

/* Renames a damaged database, with its log, to the first free name pods.db.damaged.N. */
static int move_database(const char *path, struct hw_err *e)
{
	static const char *const suffixes[] = { "-wal", "-shm", "" };

	for (int n = 1; n < 1000; n++) {
		autofree char *to = str_printf("%s.damaged.%d", path, n);

		if (access(to, F_OK) == 0)
			continue;
		for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
			autofree char *from = str_printf("%s%s", path, suffixes[i]);
			autofree char *target = str_printf("%s%s", to, suffixes[i]);

			if (rename(from, target) < 0 && errno != ENOENT)
				return err_set(e, -errno, "rename %s to %s", from, target);
		}
		log_event(LOG_ERROR, "the database of pods is damaged", "kept as", to, NULL);
		return 0;
	}
	return err_text(e, -EEXIST, "%s.damaged.1 to .999 exist: delete some of them", path);
}

int state_open(struct pods *p, struct hw_err *e)
{
	autofree char *path = str_printf("%s/" DATABASE, p->root);
	struct stat st;
	int r = 0;

	p->rows_lost = stat(path, &st) < 0 || st.st_size == 0;
	if (!p->rows_lost)
		r = db_open(path, &options, &p->db, e);
	if (r == -EUCLEAN) {
		p->rows_lost = true;
		r = move_database(path, e);
	}
	/* noted before there is a new database: this process may be killed at any time */
	if (r == 0 && p->rows_lost)
		r = lost_note(p, e);
	if (r == 0 && !p->db)
		r = db_open(path, &options, &p->db, e);
	return r < 0 ? err_ctx(e, "database of pods") : 0;
}

/* ---- rows --------------------------------------------------------------------------- */

/* After a reboot nothing of a pod is left but what plugins keep on disk, such as leases. */
static void adjust_state(struct pod *pod, enum pod_state stored)
{
	pod->state = stored;
	if (stored == POD_MAKING)
		pod->state = POD_REMOVING;
	else if (stored == POD_READY && pod->rebooted)
		pod->state = POD_STOPPING;
}

enum {
	COLUMN_ID,
	COLUMN_STATE,
	COLUMN_CREATED_AT,
	COLUMN_BOOT,
	COLUMN_SPEC,
	COLUMN_NETWORK,
	COLUMN_PID,
	COLUMN_CGROUP,
	COLUMN_CGROUP_DRIVER,
	COLUMN_RESOURCES,
	COLUMN_OVERHEAD,
};

/* Return: 0; -EBADMSG if no daemon has stored such a number */
static int read_number(struct db_query *q, int column, const char *name, int64_t low, int64_t high,
		       int *ret, struct hw_err *e)
{
	int64_t value = db_int(q, column);

	if (value < low || value > high)
		return err_text(e, -EBADMSG, "%s: invalid number %" PRId64, name, value);
	*ret = (int)value;
	return 0;
}

/* A parent that the client did not give has the name that it would get today. */
static int read_cgroup(struct db_query *q, const char *id, struct cgroup_parent *ret,
		       struct hw_err *e)
{
	AUTO(cgroup_parent_done) struct cgroup_parent own = { 0 };
	const char *path = db_text(q, COLUMN_CGROUP);
	int driver = 0, r;

	r = read_number(q, COLUMN_CGROUP_DRIVER, "cgroup_driver", CGROUP_CGROUPFS, CGROUP_SYSTEMD,
			&driver, e);
	if (r < 0)
		return r;
	if (!str_equal(path, "/") && !cgroup_path_is_valid(path))
		return err_text(e, -EBADMSG, "cgroup: invalid path");
	r = cgroup_parent_init(&own, (enum cgroup_driver)driver, "", id, e);
	if (r < 0)
		return r;
	*ret = (struct cgroup_parent){ .driver = (enum cgroup_driver)driver,
				       .path = str_copy(path),
				       .own = str_equal(path, own.path) };
	return 0;
}

/* Replaces the limits of the spec, if there was an update. */
static int read_limits(struct db_query *q, int column, const struct limits **limits,
		       struct hw_err *e)
{
	const struct limits *updated;
	int r;

	if (str_empty(db_text(q, column)))
		return 0;
	r = limits_decode(db_text(q, column), &updated, e);
	if (r < 0)
		return r;
	shared_unref(*limits);
	*limits = updated;
	return 0;
}

/* Return: 0 with a pod; or a negative errno */
static int read_row(struct pods *p, struct db_query *q, struct pod **ret_pod, struct hw_err *e)
{
	AUTO(shared_unref) struct pod_spec *spec = NULL;
	AUTO(shared_unref) struct pod *pod = NULL;
	int state = 0, r;

	r = pod_spec_decode(db_text(q, COLUMN_SPEC), &spec, e);
	if (r < 0)
		return r;
	pod = pod_new(p, db_text(q, COLUMN_ID), spec);
	pod->created_at = db_int(q, COLUMN_CREATED_AT);
	pod->rebooted = !str_equal(db_text(q, COLUMN_BOOT), p->boot);
	r = network_decode(db_text(q, COLUMN_NETWORK), &pod->network, e);
	if (r == 0)
		r = read_number(q, COLUMN_STATE, "state", POD_MAKING, POD_REMOVING, &state, e);
	if (r == 0)
		r = read_number(q, COLUMN_PID, "pid", 0, INT32_MAX, &pod->pid, e);
	if (r == 0)
		r = read_cgroup(q, pod->o.id, &pod->cgroup, e);
	if (r == 0)
		r = read_limits(q, COLUMN_RESOURCES, &pod->resources, e);
	if (r == 0)
		r = read_limits(q, COLUMN_OVERHEAD, &pod->overhead, e);
	if (r < 0)
		return r;
	adjust_state(pod, (enum pod_state)state);
	pod->announced = state != POD_MAKING;
	*ret_pod = take_ptr(pod);
	return 0;
}

/* A pod whose row cannot be read is lost: it stays until it is removed with force. */
static void load_row(struct pods *p, struct db_query *q)
{
	AUTO(shared_unref) struct pod *pod = NULL;
	struct hw_err e, ignored;

	if (!object_is_id(db_text(q, COLUMN_ID))) {
		log_event(LOG_ERROR, "row of a pod with an invalid ID is ignored", "id",
			  db_text(q, COLUMN_ID), NULL);
		return;
	}
	if (read_row(p, q, &pod, &e) < 0) {
		log_event(LOG_ERROR,
			  "row of a pod cannot be read; the pod is kept: end its processes and "
			  "remove it with \"hawser rm --force\"",
			  "pod", db_text(q, COLUMN_ID), "error", e.msg, NULL);
		pod = pod_new(p, db_text(q, COLUMN_ID), NULL);
		pod->state = POD_LOST;
		(void)read_cgroup(q, pod->o.id, &pod->cgroup, &ignored);
	}
	object_add(&pod->o);
	pod_publish(pod);
}

int state_load(struct pods *p, struct hw_err *e)
{
	AUTO(db_query_done) struct db_query q = { 0 };
	int r;

	r = db_query(p->db,
		     "SELECT id, state, created_at, boot, spec, network, pid, cgroup,"
		     " cgroup_driver, resources, overhead FROM pods",
		     DB_NO_VALUES, &q, e);
	while (r >= 0 && (r = db_step(&q, e)) > 0)
		load_row(p, &q);
	return r < 0 ? err_ctx(e, "database of pods") : 0;
}

int state_insert(struct pod *pod, struct hw_err *e)
{
	struct pods *p = pod->pods;
	int r;

	pthread_mutex_lock(&p->write_lock);
	r = db_run(p->db,
		   "INSERT INTO pods (id, state, created_at, boot, spec, cgroup, cgroup_driver,"
		   " network, pid) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0)",
		   DB_VALUES(DB_TEXT(pod->o.id), DB_INT(pod->state), DB_INT(pod->created_at),
			     DB_TEXT(p->boot), DB_TEXT(pod->spec->text), DB_TEXT(pod->cgroup.path),
			     DB_INT(pod->cgroup.driver), DB_TEXT(pod->network->text)),
		   e);
	if (r == 0)
		pod_publish(pod);
	pthread_mutex_unlock(&p->write_lock);
	return r < 0 ? err_ctx(e, "store pod") : 0;
}

int state_change(struct pod *pod, enum pod_state state, struct hw_err *e)
{
	enum pod_state before = pod->state;
	struct pods *p = pod->pods;
	int r;

	pthread_mutex_lock(&p->write_lock);
	r = db_run(p->db, "UPDATE pods SET state = ?, network = ?, pid = ? WHERE id = ?",
		   DB_VALUES(DB_INT(state), DB_TEXT(pod->network->text), DB_INT(pod->pid),
			     DB_TEXT(pod->o.id)),
		   e);
	if (r == 0) {
		pod->state = state;
		pod_publish(pod);
		event_pod_changed(pod, before);
	}
	pthread_mutex_unlock(&p->write_lock);
	return r < 0 ? err_ctx(e, "store state \"%s\" of pod %s", pod_state_name(state), pod->o.id)
		     : 0;
}

int state_set_limits(struct pod *pod, const struct limits *resources, const struct limits *overhead,
		     struct hw_err *e)
{
	struct pods *p = pod->pods;
	int r;

	pthread_mutex_lock(&p->write_lock);
	r = db_run(p->db, "UPDATE pods SET resources = ?, overhead = ? WHERE id = ?",
		   DB_VALUES(DB_TEXT(resources->text), DB_TEXT(overhead->text), DB_TEXT(pod->o.id)),
		   e);
	if (r == 0) {
		shared_unref(pod->resources);
		shared_unref(pod->overhead);
		pod->resources = shared_ref(resources);
		pod->overhead = shared_ref(overhead);
		pod_publish(pod);
	}
	pthread_mutex_unlock(&p->write_lock);
	return r < 0 ? err_ctx(e, "store the limits of pod %s", pod->o.id) : 0;
}

int state_delete(struct pod *pod, struct hw_err *e)
{
	struct pods *p = pod->pods;
	int r;

	pthread_mutex_lock(&p->write_lock);
	r = db_run(p->db, "DELETE FROM pods WHERE id = ?", DB_VALUES(DB_TEXT(pod->o.id)), e);
	if (r == 0) {
		object_remove(&pod->o);
		event_pod_deleted(pod);
		lost_removed(p);
	}
	pthread_mutex_unlock(&p->write_lock);
	return r < 0 ? err_ctx(e, "delete pod %s from the database", pod->o.id) : 0;
}
