/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/container.h - internals of containers, for the files of this folder only
 *
 * The locks are those of pod.h. A pod counts the creates of containers that run in it: a stop of the pod
 * cancels them and waits for their end. A stop of a container does not own it, so other operations on it
 * continue meanwhile.
 */
#ifndef POD_CONTAINER_H
#define POD_CONTAINER_H

#include "image/config.h"
#include "image/store/store.h"
#include "oci/run/monitor.h"
#include "oci/run/runtime.h"
#include "pod/containers.h"
#include "pod/pod.h"

struct container {
	struct object o;
	struct pods *pods;
	struct pod *pod;		   /* NULL: lost, and its pod, too */
	const struct container_spec *spec; /* NULL: lost */
	int64_t created_at;
	char *image_id, *image_ref;
	struct hw_strings
		mount_refs; /* of the images that are mounted, in the order of the mounts */
	/* of these images, while the container is being created: IDs; paths that are mounted */
	struct hw_strings mount_ids, mount_sources;
	struct hw_strings layers; /* chain IDs of the layers of all its images */
	struct store_hold *hold;  /* of these layers; NULL: none */
	char *log;		  /* NULL: output is discarded */
	char pod_id[OBJECT_ID];	  /* of a lost container, from its bundle; "": unknown */
	int stop_signal;
	uint32_t uid, gid;
	struct hw_list groups; /* uint32_t */

	/* protected by pods->write_lock */
	struct container_status status;
	bool announced;		     /* its creation was an event, also of an earlier process */
	const struct limits *limits; /* NULL: lost */

	/* protected by table->lock */
	int64_t kill_at;       /* when a running stop kills the container; 0: no stop runs */
	int64_t monitor_until; /* when conmon is killed, too; 0: processes were not killed yet */
	bool watched;	       /* exits.c waits for the end of conmon */
	struct process *main;  /* NULL: it does not run */
};

/* The first process of a container. It is known by a descriptor, so a signal never reaches another process
 * with the same number. */
struct process {
	struct shared shared;
	int pid, pidfd;
};

/* ---- containers.c ------------------------------------------------------------------- */
struct container *container_new(struct pods *p, const char *id, struct pod *pod,
				const struct container_spec *spec);
/* As object_get_unique(). */
int container_get(struct pods *p, const char *id, struct container **ret, struct hw_err *e);
/* The caller holds write_lock, or no other thread has a reference. */
void container_publish(struct container *c);
char *container_dir(const struct pods *p, const char *id);    /* the bundle */
char *container_rootfs(const struct pods *p, const char *id); /* mount of the root file system */
char *container_cgroup(const struct container *c);
/* The OCI runtime of the container's pod. */
void container_runtime(const struct container *c, struct runtime *ret);
/* Keeps the first process, if it is still a child of the monitor. Return: 0, also if it has ended */
int container_set_process(struct container *c, const struct monitor *m, struct hw_err *e);
void container_drop_process(struct container *c); /* when it has ended */
/* Return: a new reference; NULL: it does not run */
struct process *container_process(struct container *c);

/* ---- container-state.c -------------------------------------------------------------- */
/* Adds the rows to the table. */
int container_state_load(struct pods *p, struct hw_err *e);
/* Inserts the row of a container and publishes it. */
int container_state_insert(struct container *c, struct hw_err *e);
/* Changes the status with @change, which returns false if there is nothing to change; updates the row and
 * publishes the container. If the row cannot be written, the status changes nevertheless, because it is a
 * fact, and the error is returned. */
int container_state_change(struct container *c,
			   bool (*change)(struct container_status *status, void *ctx), void *ctx,
			   struct hw_err *e);
/* Stores new limits and publishes them. On failure the limits are unchanged. */
int container_set_limits(struct container *c, const struct limits *limits, struct hw_err *e);
/* Changes the state. */
int container_set_state(struct container *c, enum container_state state, struct hw_err *e);
enum container_state container_get_state(struct container *c); /* of a published container */
/* The limits of a published container that has some. Return: a reference */
const struct limits *container_get_limits(struct container *c);
bool container_is_starting(struct container *c); /* a start runs, or was interrupted */
/* Deletes the row of a container, and the container from the table. */
int container_state_delete(struct container *c, struct hw_err *e);

/* ---- event.c ------------------------------------------------------------------------ */
/* As event_pod_changed(). */
void event_container_changed(struct container *c, enum container_state before);
void event_container_deleted(struct container *c);

/* ---- container-image.c -------------------------------------------------------------- */
/* Finds the image of a container, and those that it mounts, and holds their layers. *ret_config is freed by
 * the caller. Return: 0; -ENODATA: no such image */
int container_find_image(struct container *c, struct image_config **ret_config, struct hw_err *e);
/* Return: 0 if c->layers has chain IDs; -EBADMSG */
int container_check_layers(const struct container *c, struct hw_err *e);
/* Holds the layers again, after a restart. */
int container_hold_layers(struct container *c, struct hw_err *e);
/* If it is not known which layers the container uses. */
int container_hold_all_layers(struct container *c, struct hw_err *e);
/* When nothing of the container exists any more. Removes layers that only it has used. */
void container_release_layers(struct container *c);
/* Mounts the root file system, and the images of mounts. */
int container_mount(struct container *c, struct hw_err *e);
/* Unmounts everything and deletes what the container has written. Idempotent. */
int container_unmount(struct pods *p, const char *id, struct hw_err *e);

/* ---- container-exec.c --------------------------------------------------------------- */
/* If an earlier process was killed while it changed the limits: they are as stored again. */
int container_recover_limits(struct container *c, struct hw_err *e);

/* ---- recover.c ---------------------------------------------------------------------- */
/* Watches the monitor of a container that was created; if it has ended, reads the exit code. Return: 0; or a
 * negative errno if neither is possible now: then the status has not changed */
int container_adopt(struct container *c, struct hw_err *e);

/* ---- lost.c ------------------------------------------------------------------------- */
/* Finds out from the bundle of a lost container what it needs. */
int lost_recover(struct container *c, struct hw_err *e);

/* ---- container-config.c ------------------------------------------------------------- */
#define CONTAINER_LAYERS "io.hawser.layers" /* annotation: chain IDs, separated by commas */
/* Writes config.json to the bundle. Also sets the user of the container. @ret_target: set to a descriptor if the
 * container shares the PID namespace of another one; to be closed when the container is created */
int container_write_config(struct container *c, const struct image_config *image, int *ret_target,
			   struct hw_err *e);
/* Reads config.json. */
int container_read_config(const struct container *c, struct oci_spec *ret_spec, struct hw_err *e);

/* ---- container-seccomp.c ------------------------------------------------------------ */
/* For struct spec_security. Both are empty if the container has no profile. */
struct container_seccomp {
	struct buf filter;
	char *profile; /* JSON; NULL: none */
};
/* @capabilities: the bounding set of the container. Return: 0; -EINVAL: the profile is missing or invalid;
 * -EOPNOTSUPP: @handler cannot apply one; or another negative errno */
int container_find_seccomp(const struct container *c, const struct oci_handler *handler,
			   const struct hw_strings *capabilities, struct container_seccomp *ret,
			   struct hw_err *e);
void container_seccomp_done(struct container_seccomp *s);
AUTO_VALUE_DEFINE(container_seccomp_done, struct container_seccomp);

/* ---- container-create.c ------------------------------------------------------------- */
/* Starts a container that was created, or finds that it runs. The caller owns it; its row has the time of
 * the start. On failure it is killed, and has ended with that error. */
int container_start(struct container *c, struct hw_err *e);

/* ---- container-stop.c --------------------------------------------------------------- */
/* Waits until the end of a container is noticed. Return: 0, also if it never had a process; or -ETIMEDOUT */
int container_wait_for_exit(struct container *c, int64_t deadline, struct hw_err *e);
/* Kills all processes of a container that was created, and waits for its end. */
int container_kill(struct container *c, int64_t deadline, struct hw_err *e);
/* The caller owns the container. Continues what an earlier attempt has left. @flags: PODS_FORCE,
 * POD_BACKGROUND */
int container_remove(struct container *c, unsigned flags, struct hw_err *e);
/* For a pod that is being stopped: ends creates, kills all containers. */
int containers_kill_all(struct pod *pod, int64_t deadline, struct hw_err *e);
/* For a pod that is being removed. */
int containers_remove_all(struct pod *pod, unsigned flags, struct hw_err *e);

/* ---- exits.c ------------------------------------------------------------------------ */
int exits_open(struct pods *p, struct hw_err *e);
void exits_close(struct pods *p);
/* Watches the monitor of a container until it ends. Takes the descriptor of @m. */
int exits_watch(struct container *c, struct monitor *m, struct hw_err *e);
bool exits_is_watched(struct container *c);
/* Reads how a container without a monitor has ended, and changes its status. Return: 0; or a negative errno if
 * that cannot be read now: then the status has not changed */
int exits_collect(struct container *c, struct hw_err *e);

#endif
