/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/main.c - hawser-fetch: fetches one image and unpacks it, for the daemon
 *
 * What:  the daemon starts it for each pull and load; it is not for direct use. Standard input is a
 *        socket for the job and the results (image/protocol/job.h). The image comes from a
 *        registry, or from an archive whose file descriptor comes with the job.
 * Rules: ends when the socket is closed (base/os/helper.h). Exit status 0: success, or the socket
 *        was closed; 1: failed, the reason was sent on the socket; 2: no job was received.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json/value.h"
#include "base/os/child.h"
#include "base/os/file.h"
#include "base/os/helper.h"
#include "base/str.h"
#include "fetch/fetcher.h"
#include "fetch/supervisor.h"

/* The limit of the fetcher, with the largest number of layers. Each process lowers it further. */
#define MEMORY FETCHER_MEMORY(JOB_PARALLEL_MAX)

int main(int argc, char **argv)
{
	struct stat in;
	struct hw_err e;

	if (argc == 2 && str_equal(argv[1], "--version")) {
		puts("hawser-fetch " HAWSER_VERSION);
		return 0;
	}
	if (fstat(STDIN_FILENO, &in) < 0 || !S_ISSOCK(in.st_mode)) {
		fputs("hawser-fetch: standard input is not a socket; hawser-cri starts this "
		      "program, it is not for direct use\n",
		      stderr);
		return 2;
	}
	value_seed();
	value_wipe_freed(); /* the job contains credentials */
	file_open_missing_stdio(O_PATH);
	sigaction(SIGPIPE, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
	if (helper_init(MEMORY, &e) < 0) {
		fprintf(stderr, "hawser-fetch: %s\n", e.msg);
		return 2;
	}
	child_raise_files(RLIM_INFINITY); /* the supervisor holds a directory open for each layer */
	return supervisor_run(HELPER_SOCKET);
}
