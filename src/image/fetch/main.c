/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/fetch/main.c - hawser-fetch: fetch one image and unpack it
 *
 * What:  the program that the daemon starts for each pull; it is not for people.
 *        Standard input is a socket, on which the job comes and the answers go
 *        (image/job.h). The image comes from a registry, or from an archive whose
 *        descriptor comes with the job.
 * Rules: it ends when the socket is closed. Exit status 0: the image is there;
 *        1: it is not, and the socket was told why; 2: there was no job.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "image/fetch/conductor.h"
#include "image/fetch/http.h"

/* A folder for each layer may be open at once. */
static void raise_limit(void)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) == 0) {
		l.rlim_cur = l.rlim_max;
		setrlimit(RLIMIT_NOFILE, &l);
	}
}

/* Who has no job yet uses the time: libcurl's libraries have much to prepare. What goes wrong with
 * that does so again, and is told, when they are needed. */
static void get_ready(void)
{
	struct pollfd poller = { .fd = STDIN_FILENO, .events = POLLIN };
	struct hw_err ignored;

	if (poll(&poller, 1, 0) == 0)
		http_global_init(&ignored);
}

static int receive_job(struct job *job, int *ret_archive, struct hw_err *e)
{
	AUTO(job_message_done) struct job_message m = { .fd = -1 };
	int r = job_receive(STDIN_FILENO, 0, &m, e);

	if (r == 0)
		return err_text(e, -EPIPE, "nobody has a job");
	if (r > 0 && m.type != JOB_JOB)
		return err_text(e, -EBADMSG, "a message of type %d is no job", m.type);
	if (r > 0)
		r = job_decode(&m, job_fields, job, e);
	if (m.data.data)
		explicit_bzero(m.data.data, m.data.len);
	if (r == 0 && (job->image > 0) != (m.fd >= 0))
		r = err_text(e, -EINVAL,
			     "an image of an archive, and none, or the other way round");
	if (r < 0)
		return err_ctx(e, "job");
	*ret_archive = take_fd(m.fd);
	return 0;
}

int main(int argc, char **argv)
{
	AUTO(job_done) struct job job = { 0 };
	autoclose int archive = -1;
	struct hw_err e, ignored;

	if (argc == 2 && str_equal(argv[1], "--version")) {
		puts("hawser-fetch " HAWSER_VERSION);
		return 0;
	}
	file_fill_standard(O_PATH);
	sigaction(SIGPIPE, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
	raise_limit();
	get_ready();
	if (receive_job(&job, &archive, &e) < 0) {
		fprintf(stderr, "hawser-fetch: %s; it is for hawser-cri to start\n", e.msg);
		return 2;
	}
	if (conductor_run(STDIN_FILENO, &job, archive, &e) == 0)
		return job_send(STDIN_FILENO, JOB_DONE, "", 0, -1, job.idle_ms, &e) < 0;
	job_send_failed(STDIN_FILENO, &e, job.idle_ms, &ignored);
	return 1;
}
