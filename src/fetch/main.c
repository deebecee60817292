/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/main.c - hawser-fetch: fetches one image and unpacks it, for the daemon
 *
 * What:  the daemon starts it for each pull and load; it is not for direct use. Standard input is a
 *        socket for the job and the results (image/protocol/job.h). The image comes from a
 *        registry, or from an archive whose file descriptor comes with the job.
 * Rules: exits when the socket is closed. Exit status 0: success; 1: failed, the reason was sent on
 *        the socket; 2: no job was received.
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

int main(int argc, char **argv)
{
	struct stat in;
	struct rlimit files;

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
	file_open_missing_stdio(O_PATH);
	sigaction(SIGPIPE, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
	/* the supervisor holds a directory open for each layer */
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	return supervisor_run(STDIN_FILENO);
}
