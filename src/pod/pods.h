/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/pods.h - the pods of this node: create, stop, remove, list
 *
 * What:  a pod is a set of namespaces, files, a cgroup and attachments to networks, which its
 *        containers share. Pods are kept in a database, so that a new process continues where a
 *        killed one has stopped.
 *
 *	ROOT/pods.db                the database (state.c)
 *	ROOT/pods.lost              exists while something is lost because the database was (lost.c)
 *	NETNS_DIR/hawser-ID         the pod's network namespace
 *	STATE/pods/ID/user ipc uts pid   its other namespaces
 *	STATE/pods/ID/shm           /dev/shm of its containers
 *	STATE/pods/ID/resolv.conf hosts hostname
 *	STATE/pods/ID/pause         process ID of hawser-pause, if the pod has a PID namespace
 *
 * How:   the calling thread does the work of an operation and blocks. The row of a pod is written
 *        before anything is created, with a state that says what is being done. The names of all
 *        objects follow from the ID, so stop and remove can undo any incomplete create.
 *
 *	state     the objects of the pod               after a restart
 *	making    some of them may exist               the pod is removed
 *	ready     all exist                            stays; is stopped if one is gone
 *	stopping  some of them may exist               is stopped
 *	stopped   files only                           stays
 *	removing  some files may exist                 is removed
 *	lost      found without a row                  stays until it is removed with force
 *
 * Rules: operations on one pod exclude each other; operations on several pods run in parallel.
 *        Readers use an immutable view and never wait.
 *        A failed create is undone by the code of stop and remove. If stop or remove fails, it is
 *        tried again in the background.
 *        Functions without another description return 0 or a negative errno: -EINVAL (invalid
 *        request), -ENODATA (no such pod), -ENOTUNIQ (name is taken), -ENETDOWN (network not
 *        ready), -ECANCELED (cancelled by a stop), -ETIMEDOUT (@deadline).
 */
#ifndef POD_PODS_H
#define POD_PODS_H

#include <stdbool.h>
#include <stdint.h>

#include <hawser/cni.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/shared.h"
#include "oci/cgroup-parent.h"
#include "oci/cgroup.h"
#include "oci/handler.h"
#include "oci/pause.h"
#include "pod/network/network.h"
#include "pod/object.h"
#include "pod/spec/spec.h"

#define POD_ID OBJECT_ID

struct pods;
struct network_watch;
struct events;
struct filters;
struct pod_cidr;
struct spec_host;
struct store;

struct pods_options {
	const char *root, *state, *netns_dir;
	const char *conf_dir;		 /* of networks */
	const struct pause_host *pause;	 /* borrowed */
	const struct hw_cni *cni;	 /* borrowed */
	struct network_watch *network;	 /* borrowed */
	struct pod_cidr *pod_cidr;	 /* borrowed */
	const struct cgroup_fs *cgroups; /* borrowed */
	enum cgroup_driver cgroup_driver;
	const struct oci_handlers *handlers; /* borrowed */
	const struct hw_map *sysctls;	     /* default sysctls of pods with a network namespace */
	int network_timeout_ms;		     /* for ADD */
	/* for containers */
	struct store *store;		       /* borrowed */
	const struct spec_host *host;	       /* borrowed */
	const struct hw_strings *capabilities; /* of a container by default; borrowed */
	const char *conmon;		       /* path; NULL: not found */
	struct filters *filters;	       /* compiled seccomp profiles; borrowed */
};

/* Opens the database and publishes the pods that it contains. Changes nothing else, but tries whether pods can have
 * user namespaces.
 * @options: copied, except for what it points to */
int pods_open(const struct pods_options *options, struct pods **ret_pods, struct hw_err *e);
/* Starts to finish, in the background, what an earlier process has left. What fails is tried again there. */
void pods_recover(struct pods *p);
/* Whether pods or containers are lost. Until they are removed, what seems to be left over may be theirs. */
bool pods_have_lost(struct pods *p);
/* Deletes directories of containers that do not exist any more. May take long. Not while something is lost. */
int pods_sweep(struct pods *p, struct hw_err *e);
/* No operation may be running. NULL is allowed. The pods stay as they are. */
void pods_close(struct pods *p);

/* ---- operations --------------------------------------------------------------------- */

/* Creates a pod. If a pod with the same name, namespace, UID and attempt exists, an equal spec gets
 * that pod, or waits for it. Continues after the deadline of another caller.
 * @spec: sealed; borrowed */
int pods_create(struct pods *p, const struct pod_spec *spec, int64_t deadline, char ret_id[POD_ID],
		struct hw_err *e);
/* Ends a running create, detaches the pod from its networks and removes its namespaces. Return: 0 also
 * if it does not exist or is already stopped */
int pods_stop(struct pods *p, const char *id, int64_t deadline, struct hw_err *e);
enum { PODS_FORCE = 1 << 0 }; /* ignore errors of plugins, and remove lost pods */
/* Stops the pod if necessary. Return: 0 also if it does not exist */
int pods_remove(struct pods *p, const char *id, unsigned flags, int64_t deadline, struct hw_err *e);

/* Stores new limits of a pod that is ready; its cgroup belongs to the client, who changes it. What is not set in
 * @resources and @overhead stays. Return: 0; -EINVAL with the name of the field; -ENODATA; -EPERM: not ready */
int pods_update(struct pods *p, const char *id, const struct oci_resources *resources,
		const struct oci_resources *overhead, int64_t deadline, struct hw_err *e);

/* Events of all pods and containers: see events.h. */
struct events *pods_events(struct pods *p);

/* ---- views for readers -------------------------------------------------------------- */

enum pod_state {
	POD_MAKING = 1, /* the numbers are stored */
	POD_READY,
	POD_STOPPING,
	POD_STOPPED,
	POD_REMOVING,
	POD_LOST,
};

const char *pod_state_name(enum pod_state state);

/* Immutable. */
struct pod_view {
	struct object_view o; /* .id */
	enum pod_state state;
	int64_t created_at;			   /* ns since 1970 */
	const struct pod_spec *spec;		   /* NULL: lost */
	const struct pod_network *network;	   /* NULL: lost */
	const struct limits *resources, *overhead; /* NULL: lost */
	int pid;				   /* of hawser-pause; 0: none */
	char *cgroup;  /* that contains those of the pod's containers: see oci/cgroup-parent.h */
	char *message; /* why the last stop or remove failed; "": it has not */
};

/* Immutable. */
struct pods_view {
	struct shared shared;
	size_t n;
	const struct pod_view *pods[]; /* sorted by ID */
};

/* May be called from any thread; never blocks. Return: a new reference, to be dropped with
 * shared_unref() */
const struct pods_view *pods_view(struct pods *p);
/* Finds a pod by its ID or an unambiguous prefix of it. The pod belongs to the view. Return: NULL if
 * it does not exist */
const struct pod_view *pods_view_find(const struct pods_view *view, const char *id);

/* The namespaces that the containers of a pod share. */
enum pod_namespace { POD_NETWORK, POD_IPC, POD_UTS, POD_PID, POD_USER };
/* Return: the path of a pod's namespace, to be freed by the caller; NULL: the pod uses that of the
 * host, or its namespaces do not exist (any more) */
char *pods_namespace(const struct pods *p, const struct pod_view *pod, enum pod_namespace kind);

/* Why this host cannot run pods with user namespaces. Return: NULL: it can */
const char *pods_no_userns(const struct pods *p);

#endif
