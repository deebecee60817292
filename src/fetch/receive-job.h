/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/receive-job.h - wait for a job
 */
#ifndef FETCH_RECEIVE_JOB_H
#define FETCH_RECEIVE_JOB_H

#include "image/protocol/job.h"

/* However long it takes. @ret_message: as it came, with secrets (receive_job_forget()), and with the
 * archive's descriptor if there is one. Return: 0, or negative errno: -EPIPE nobody has one */
int receive_job(int socket, struct job_message *ret_message, struct job *ret_job, struct hw_err *e);
void receive_job_forget(struct job_message *m);

#endif
