/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/containers.h - the containers of pods: create, start, stop, remove, list, exec
 *
 * What:  a container is a process with the root file system of an image, in the namespaces of its pod.
 *        conmon watches it, so it continues while this process does not run.
 *
 *	ROOT/pods.db                 the database (container-state.c)
 *	ROOT/containers/ID/upper work	what the container writes to its root file system
 *	STATE/containers/ID          the bundle: config.json; rootfs and images/N (mounts); the files of the monitor
 *	                             (oci/run/monitor.h)
 *	STATE/exits/ID               the exit code
 *	STATE/crun                   state of the OCI runtime
 *
 * How:   as for pods: the row is written before the first object is created, and its state says what is
 *        being done. The names of all objects follow from the ID.
 *
 *	state     the container                         after a restart
 *	making    is being created                      is removed
 *	created   waits for its start                   stays; a start that was interrupted is repeated
 *	running                                         stays; if it has ended meanwhile, its exit code is read
 *	exited                                          stays
 *	removing  is being removed                      is removed
 *	lost      found without a row                   stays until it is removed with force
 *
 * Rules: as in pods.h. Exits are noticed by a thread (exits.c), which changes the status at any time, also
 *        while an operation owns the container.
 *        Errors: -EINVAL (invalid request), -ENODATA (no such pod, container or image), -ENOTUNIQ (name is
 *        taken), -EPERM (wrong state), -ECANCELED (cancelled by a stop), -ETIMEDOUT, -EIO (the runtime's
 *        error) and others.
 */
#ifndef POD_CONTAINERS_H
#define POD_CONTAINERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "image/digest.h"
#include "oci/run/exec.h"
#include "pod/limits.h"
#include "pod/object.h"
#include "pod/pods.h"
#include "pod/spec/container-spec.h"

/* ---- operations --------------------------------------------------------------------- */

/* Creates a container, which waits for its start. If the pod has a container with the same name and
 * attempt, an equal spec gets that container, or waits for it. @spec: sealed; borrowed */
int containers_create(struct pods *p, const char *pod, const struct container_spec *spec,
		      int64_t deadline, char ret_id[OBJECT_ID], struct hw_err *e);
int containers_start(struct pods *p, const char *id, int64_t deadline, struct hw_err *e);
/* Sends the stop signal and, if the container still runs after @grace_s seconds, kills all its processes.
 * Returns when it has ended. Several calls may run at once: the one with the shortest grace counts.
 * Return: 0 also if the container does not exist, or does not run */
int containers_stop(struct pods *p, const char *id, int64_t grace_s, int64_t deadline,
		    struct hw_err *e);
/* Kills the container if necessary. Return: 0 also if it does not exist */
int containers_remove(struct pods *p, const char *id, unsigned flags, int64_t deadline,
		      struct hw_err *e);
/* Changes limits of a container that was created or runs: all of them, or none. Those that are not set in
 * @update stay as they are. */
int containers_update(struct pods *p, const char *id, const struct oci_resources *update,
		      int64_t deadline, struct hw_err *e);
/* Starts a new log file, after the old one was renamed. */
int containers_reopen_log(struct pods *p, const char *id, int64_t deadline, struct hw_err *e);
/* Runs a command: see exec_sync(). */
int containers_exec(struct pods *p, const char *id, const struct hw_strings *args, int cancel_fd,
		    int64_t deadline, struct exec_result *ret, struct hw_err *e);

/* ---- views for readers -------------------------------------------------------------- */

enum container_state {
	CONTAINER_MAKING = 1, /* the numbers are stored */
	CONTAINER_CREATED,
	CONTAINER_RUNNING,
	CONTAINER_EXITED,
	CONTAINER_REMOVING,
	CONTAINER_LOST,
};

const char *container_state_name(enum container_state state);

/* Why a container has ended, for programs. Kubelet shows them. */
#define CONTAINER_COMPLETED   "Completed"
#define CONTAINER_ERROR	      "Error"
#define CONTAINER_OOM_KILLED  "OOMKilled"
#define CONTAINER_START_ERROR "StartError"
#define CONTAINER_REASONS                                                                          \
	CONTAINER_COMPLETED, CONTAINER_ERROR, CONTAINER_OOM_KILLED, CONTAINER_START_ERROR

struct container_status {
	enum container_state state;
	int64_t started_at, finished_at; /* ns since 1970; 0: not yet */
	int exit_code;			 /* 128 + N if it was killed by signal N */
	bool oom;			 /* the kernel killed a process of it for lack of memory */
	const char *reason;		 /* why it has ended: a word for programs, a constant; "" */
	char *message;			 /* why it has ended: a sentence for users; "" */
};

/* Immutable. */
struct container_view {
	struct object_view o; /* .id */
	char pod[OBJECT_ID];  /* ID of the pod; "": unknown, because the container is lost */
	struct container_status status;
	int64_t created_at;		   /* ns since 1970 */
	const struct container_spec *spec; /* NULL: lost */
	const struct limits *limits;	   /* NULL: lost */
	char *image_id, *image_ref;	   /* ID; name with digest, or the ID */
	struct hw_strings mount_refs;	   /* as image_ref: the images of mounts, in their order */
	char *log;			   /* path of the log; "": none */
	int pid;			   /* first process; 0: none */
	int stop_signal;
	uint32_t uid, gid;
	struct hw_list groups; /* uint32_t: supplemental groups */
};

/* Immutable. */
struct containers_view {
	struct shared shared;
	size_t n;
	const struct container_view *containers[]; /* sorted by ID */
};

/* May be called from any thread; never blocks. Return: a new reference, to be dropped with
 * shared_unref() */
const struct containers_view *containers_view(struct pods *p);
/* Finds a container by its ID or an unambiguous prefix of it. Return: NULL if it does not exist */
const struct container_view *containers_view_find(const struct containers_view *view,
						  const char *id);

#endif
