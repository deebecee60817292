/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/pod.h - internals of pods, for the files of this folder only
 *
 * Two locks, acquired in this order:
 *
 *	write_lock  protects the database handle. It is held for a commit and for the change of the
 *	            index that belongs to it, so that views appear in the order of the commits.
 *	lock        protects the index and the members of a pod that are marked so. It is held for a
 *	            few instructions.
 *
 * An operation on a pod owns the pod from pod_begin() to pod_end(). Neither lock is held while it
 * creates or deletes objects, runs plugins or waits.
 */
#ifndef POD_POD_H
#define POD_POD_H

#include <pthread.h>

#include "base/list.h"
#include "base/map.h"
#include "db/db.h"
#include "oci/cgroup-parent.h"
#include "pod/pods.h"

struct pod {
	struct shared shared; /* the index has a reference, and so has every operation */
	struct pods *pods;
	char id[POD_ID];
	const struct pod_spec *spec; /* NULL: lost */
	int64_t created_at;
	bool rebooted; /* the objects of the pod ended with an earlier boot */

	/* protected by pods->lock */
	bool busy;		     /* an operation owns the pod */
	bool gone;		     /* not in the index any more */
	pthread_cond_t changed;	     /* busy has become false */
	int cancel_fd;		     /* eventfd that ends a running create; -1: none */
	const struct pod_view *view; /* what readers see; NULL: not published yet */
	struct hw_err *error; /* of a failed create, for callers that wait for it; NULL: none */

	/* for the operation that owns the pod */
	enum pod_state state;
	const struct pod_network *network; /* NULL: lost */
	int pid;			   /* of hawser-pause; 0: none */
	struct cgroup_parent cgroup;	   /* .path NULL: lost */
	char *message;			   /* see struct pod_view */

	/* for finish.c, protected by finisher.lock */
	struct list finish_link;
	int64_t finish_at;
	int finish_delay_ms;
};

/* The threads that finish what an operation or an earlier process could not (finish.c). */
struct finisher {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct list pods; /* struct pod, each with a reference */
	pthread_t *threads;
	size_t n_threads;
	bool stopping;
};

struct pods {
	struct pods_options options;
	char *root, *state, *netns_dir, *conf_dir;
	struct hw_map sysctls;
	char boot[40];

	pthread_mutex_t write_lock;
	struct db *db;

	pthread_mutex_t lock;
	struct map *by_id;   /* struct pod */
	struct map *by_name; /* struct pod, by pod_name(); without pods that are lost */
	struct slot view;    /* struct pods_view */

	struct finisher finisher;
};

/* ---- pods.c: the index -------------------------------------------------------------- */
struct pod *pod_new(struct pods *p, const char *id, const struct pod_spec *spec);
/* The name that must be unique. Freed by the caller. */
char *pod_name(const struct pod_spec *spec);
/* Publishes the state of a pod as its members say. The caller owns the pod. */
void pod_publish(struct pod *pod);
/* Adds a pod to the index. The caller holds the lock. */
void pods_insert(struct pods *p, struct pod *pod);
/* Removes a pod from the index and from the view. */
void pods_delete(struct pods *p, struct pod *pod);
/* Return: a new reference to the pod with this ID or unambiguous prefix; NULL if it does not exist */
struct pod *pods_get(struct pods *p, const char *id);

/* Waits until no other operation owns the pod. Return: 0; 1: the pod is gone, and is not owned;
 * -ETIMEDOUT */
int pod_begin(struct pod *pod, int64_t deadline, struct hw_err *e);
void pod_end(struct pod *pod);

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
/* Deletes the row of a pod, and the pod from the index. */
int state_delete(struct pod *pod, struct hw_err *e);

/* ---- stop.c ------------------------------------------------------------------------- */
/* The caller owns the pod. Both continue what an earlier attempt has left. @flags: PODS_FORCE */
int pod_stop(struct pod *pod, unsigned flags, struct hw_err *e);
int pod_remove(struct pod *pod, unsigned flags, struct hw_err *e);

/* ---- finish.c ----------------------------------------------------------------------- */
void finisher_init(struct finisher *f);
/* Stops the threads when the operation that each one runs has ended. */
void finisher_done(struct finisher *f);
/* Stop or remove a pod in the background, as its state says, until that has succeeded. Does nothing
 * if it is already in the list. */
void finisher_add(struct pod *pod, int delay_ms);
/* Like finisher_add(), with a delay that grows with each call. The caller owns the pod. */
void finisher_add_failed(struct pod *pod);

/* ---- recover.c ---------------------------------------------------------------------- */
/* Adds pods whose files exist, but not their rows, to the index. */
int recover_lost(struct pods *p, struct hw_err *e);

#endif
