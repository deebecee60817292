/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/fetcher.h - the fetcher: the process that talks to registries, or reads an archive
 *
 * What:  waits for the job, resolves the image and sends its documents; then fetches the requested
 *        layers, each in its own thread, into the pipe that came with the request
 *        (image/protocol/job.h).
 * Rules: the fetcher reads the host's files first, then switches to an unprivileged user without
 *        capabilities, and is confined (confine.h). It writes only to file descriptors that it has
 *        received.
 *        An error is sent before the pipe is closed, so that it arrives before the unpacker's error
 *        about a truncated archive.
 */
#ifndef FETCH_FETCHER_H
#define FETCH_FETCHER_H

#include "image/protocol/job.h"

/* Memory limit in bytes, for a number of layers at a time: the window of zstd has up to 128 MiB. */
#define FETCHER_MEMORY(layers) (((size_t)128 + (size_t)192 * (size_t)(layers)) << 20)

/* For helper_fork(): serve one job until the socket is closed. Threads may still run after the
 * return, and use memory that is never freed. Return: exit status of the process */
int fetcher_run(void *unused);

/* Wait for a job without a timeout; also used by the supervisor. *ret_message: the message as
 * received. It contains secrets, see erase_job_message(), and the archive's file descriptor if
 * there is one. Return: 0; -EPIPE: the socket was closed; or negative errno */
int receive_job(int socket, struct job_message *ret_message, struct fetch_job *ret_job,
		struct hw_err *e);
/* Overwrite the content of a message that contains secrets. */
void erase_job_message(struct job_message *m);

#endif
