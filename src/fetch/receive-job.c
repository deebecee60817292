/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/receive-job.c - wait for a job
 */
#include "fetch/receive-job.h"

#include <errno.h>
#include <string.h>

static int decode(const struct job_message *m, struct job *job, struct hw_err *e)
{
	int r;

	if (m->type != JOB_JOB)
		return err_text(e, -EBADMSG, "a message of type %d is no job", m->type);
	r = job_decode(m, job_fields, job, e);
	if (r == 0 && (job->image > 0) != (m->fd >= 0))
		r = err_text(e, -EINVAL,
			     "an image of an archive, and none, or the other way round");
	return r;
}

/** receive_job() - from the daemon, or from who has it from there */
int receive_job(int socket, struct job_message *ret_message, struct job *ret_job, struct hw_err *e)
{
	int r = job_receive(socket, 0, ret_message, e);

	if (r == 0)
		return err_text(e, -EPIPE, "nobody has a job");
	if (r > 0)
		r = decode(ret_message, ret_job, e);
	return r < 0 ? err_ctx(e, "job") : 0;
}

/** receive_job_forget() - the text of it */
void receive_job_forget(struct job_message *m)
{
	if (m->data.data)
		explicit_bzero(m->data.data, m->data.len);
}
