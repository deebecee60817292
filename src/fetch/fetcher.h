/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/fetcher.h - the process that talks to registries, or reads an archive
 *
 * What:  waits for the job; finds the image, says what it consists of, and then
 *        fetches the layers that it is asked for, each on a thread of its own, into
 *        the pipe that came with the question (image/protocol/job.h).
 * Rules: files of the host are read first; then the process becomes a user of its
 *        own, without capabilities; of files it can write what it is given.
 *        A failure is said before the pipe is closed, so that whoever reads the
 *        pipe's end can know of it.
 */
#ifndef FETCH_FETCHER_H
#define FETCH_FETCHER_H

#include "image/protocol/job.h"

/* Return: the exit status of the process */
int fetcher_run(int socket);

/* Of the supervisor too: wait for a job. */
/* However long it takes. @ret_message: as it came, with secrets (receive_job_forget()), and with the
 * archive's descriptor if there is one. Return: 0, or negative errno: -EPIPE nobody has one */
int receive_job(int socket, struct job_message *ret_message, struct job *ret_job, struct hw_err *e);
void receive_job_forget(struct job_message *m);

#endif
