/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/pod.h - internals of pods, for the files of this folder only
 *
 * The locks:
 *
 *	write_lock     protects the database handle. It is held for a commit and for the change of the
 *	               index that belongs to it, so that views appear in the order of the commits.
 *	finisher.lock  protects the list of finish.c. It is never held together with write_lock.
 *	lock           of the tables: see object.h. It may be acquired while one of the others is held,
 *	               and never the reverse.
 *
 * events.c, exits.c, pause-watch.c, sampler.c, stats.c and stats-read.c have locks of their own, which are the
 * last to be acquired.
 *
 * An operation on a pod owns the pod from object_begin() to object_end(). None of these locks is held while
 * it creates or deletes objects, runs plugins or waits.
 */
#ifndef POD_POD_H
#define POD_POD_H

#include <pthread.h>

#include "base/list.h"
#include "db/db.h"
#include "oci/cgroup-parent.h"
#include "pod/limits.h"
#include "pod/object.h"
#include "pod/pods.h"

struct pod {
	struct object o;
	struct pods *pods;
	const struct pod_spec *spec; /* NULL: lost */
	int64_t created_at;
	bool rebooted;	  /* the objects of the pod ended with an earlier boot */
	unsigned creates; /* of containers that run in it; protected by o.table->lock */

	/* for the operation that owns the pod */
	enum pod_state state;
	bool announced; /* its creation was an event, also of an earlier process */
	const struct pod_network *network;	   /* NULL: lost */
	const struct limits *resources, *overhead; /* NULL: lost */
	int pid;				   /* of hawser-pause; 0: none */
	struct cgroup_parent cgroup;		   /* .path NULL: lost */
	char *message;				   /* see struct pod_view */
};

/* The threads that finish what an operation or an earlier process could not (finish.c). */
struct finisher {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct list objects; /* struct object, each with a reference */
	pthread_t *threads;
	size_t n_threads;
	unsigned n_plugins; /* threads that run plugins */
	bool stopping;
	int cancel_fd; /* eventfd: ends the plugins that the threads run */
};

struct pods {
	struct pods_options options;
	char *root, *state, *netns_dir, *conf_dir;
	struct hw_map sysctls;
	char *no_userns; /* see pods_no_userns() */
	char boot[40];

	pthread_mutex_t write_lock;
	struct db *db;
	bool rows_lost; /* at this start or an earlier one, and something without a row is left */

	struct object_table pods;	/* struct pod; a pod that is lost has no name */
	struct object_table containers; /* struct container */
	char *runtime_root;		/* state of the OCI runtime */
	struct exits *exits;
	struct pause_watch *pause_watch;
	struct events *events;
	struct pod_stats *stats;

	struct finisher finisher;
};

/* ---- pods.c ------------------------------------------------------------------------- */
/* @spec: NULL: lost */
struct pod *pod_new(struct pods *p, const char *id, const struct pod_spec *spec);
/* Publishes the state of a pod as its members say. The caller owns the pod. */
void pod_publish(struct pod *pod);
/* As object_get_unique(). */
int pod_get(struct pods *p, const char *id, struct pod **ret, struct hw_err *e);

/* Paths of a pod's objects, freed by the caller. */
#define POD_NETNS_PREFIX "hawser-" /* and the ID: name in the directory of network namespaces */
char *pod_dir(const struct pods *p, const char *id);
char *pod_path(const struct pods *p, const char *id, const char *name);
char *pod_netns_path(const struct pods *p, const char *id);

/* ---- state.c: the database ---------------------------------------------------------- */
int state_open(struct pods *p, struct hw_err *e);
/* Adds the rows to the index. */
int state_load(struct pods *p, struct hw_err *e);
/* Inserts the row of a pod and publishes it. */
int state_insert(struct pod *pod, struct hw_err *e);
/* Sets pod->state, updates the row with everything that may have changed, and publishes the pod. On
 * failure the state is unchanged. */
int state_change(struct pod *pod, enum pod_state state, struct hw_err *e);
/* Stores new limits and publishes them. On failure they are unchanged. */
int state_set_limits(struct pod *pod, const struct limits *resources, const struct limits *overhead,
		     struct hw_err *e);
/* Deletes the row of a pod, and the pod from the index. */
int state_delete(struct pod *pod, struct hw_err *e);

/* ---- update.c ----------------------------------------------------------------------- */
/* Whether these limits could be set. @field: name of the message in errors. Return: 0 or -EINVAL */
int pod_check_limits(const struct pods *p, const struct oci_resources *resources, const char *field,
		     struct hw_err *e);

/* ---- event.c ------------------------------------------------------------------------ */
/* Adds the events of a change that was committed; the caller holds write_lock. */
void event_pod_changed(struct pod *pod, enum pod_state before);
void event_pod_deleted(struct pod *pod);

/* ---- stop.c ------------------------------------------------------------------------- */
enum { POD_BACKGROUND = 1 << 8 }; /* no client waits: finisher_done() ends the plugins */
/* In the background, a container that cannot be killed must not keep a thread from other objects. */
#define POD_BACKGROUND_KILL_MS 5000
/* The caller owns the pod. Both continue what an earlier attempt has left. @flags: PODS_FORCE,
 * POD_BACKGROUND; @deadline: of the plugins */
int pod_stop(struct pod *pod, unsigned flags, int64_t deadline, struct hw_err *e);
int pod_remove(struct pod *pod, unsigned flags, int64_t deadline, struct hw_err *e);

/* ---- finish.c ----------------------------------------------------------------------- */
/* finisher_done() is called also if this fails. */
int finisher_init(struct finisher *f, struct hw_err *e);
/* Ends the plugins that the threads run, and stops the threads. The pods stay as they are: the next process
 * finishes them. */
void finisher_done(struct finisher *f);
/* Stop or remove a pod or container in the background, as its state says, until that has succeeded. Does
 * nothing if it is already in the list. */
void finisher_add(struct object *o, int delay_ms);
/* Like finisher_add(), with a delay that grows each time. */
void finisher_add_failed(struct object *o);

/* ---- lost.c ------------------------------------------------------------------------- */
/* Notes in ROOT that rows were lost, until nothing is lost any more. */
int lost_note(struct pods *p, struct hw_err *e);
/* Adds pods and containers whose files exist, but not their rows, to the tables. */
int lost_find(struct pods *p, struct hw_err *e);
/* To be called when a pod or container has left its table, with write_lock held. */
void lost_removed(struct pods *p);
/* Logs that the database was lost, if that left lost objects. */
void lost_report(struct pods *p);

/* ---- pause-watch.c ------------------------------------------------------------------ */
int pause_watch_open(struct pods *p, struct hw_err *e);
void pause_watch_close(struct pods *p);
/* Stops a pod when its hawser-pause ends; does nothing for a pod without one. The caller owns the pod. */
int pause_watch_add(struct pod *pod, struct hw_err *e);

/* ---- stats.c ------------------------------------------------------------------------ */
int stats_open(struct pods *p, struct hw_err *e);
void stats_close(struct pods *p);

/* ---- recover.c ---------------------------------------------------------------------- */
/* Holds the layers of all containers, watches those that live, and reads how the others have ended. */
int recover_containers(struct pods *p, struct hw_err *e);
/* Stops a pod that should be ready, but has lost an object. The caller owns the pod. Return: 0, also if the
 * pod is complete or cannot be checked; a negative errno if its state cannot be stored */
int recover_pod(struct pod *pod, struct hw_err *e);

#endif
