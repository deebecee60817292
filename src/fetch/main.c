/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/main.c - hawser-fetch: fetch one image and unpack it
 *
 * What:  the program that the daemon starts for each pull; it is not for people.
 *        Standard input is a socket, on which the job comes and the answers go
 *        (image/protocol/job.h). The image comes from a registry, or from an archive whose
 *        descriptor comes with the job.
 * Rules: it ends when the socket is closed. Exit status 0: the image is there;
 *        1: it is not, and the socket was told why; 2: there was no job.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/os/file.h"
#include "base/str.h"
#include "fetch/supervisor.h"

/* A folder for each layer may be open at once. */
static void raise_limit(void)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) == 0) {
		l.rlim_cur = l.rlim_max;
		setrlimit(RLIMIT_NOFILE, &l);
	}
}

int main(int argc, char **argv)
{
	struct stat in;

	if (argc == 2 && str_equal(argv[1], "--version")) {
		puts("hawser-fetch " HAWSER_VERSION);
		return 0;
	}
	if (fstat(STDIN_FILENO, &in) < 0 || !S_ISSOCK(in.st_mode)) {
		fputs("hawser-fetch: standard input is no socket; it is for hawser-cri to start\n",
		      stderr);
		return 2;
	}
	file_fill_standard(O_PATH);
	sigaction(SIGPIPE, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
	raise_limit();
	return supervisor_run(STDIN_FILENO);
}
