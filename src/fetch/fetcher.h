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

/* Return: the exit status of the process */
int fetcher_run(int socket);

#endif
