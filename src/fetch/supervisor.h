/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/supervisor.h - the supervisor: hawser-fetch's first process
 *
 * What:  starts the fetcher, and an unpacker for each layer that the daemon wants, a few at a time,
 *        with a pipe from the fetcher to the unpacker. Completes the layers in order and reports to
 *        the daemon.
 * Rules: of untrusted input it parses only the short messages of fetcher and unpackers; documents
 *        of the registry pass to the daemon unparsed.
 *        The fetcher is started before the job arrives, so that both have loaded their libraries by
 *        then.
 *        When the supervisor exits, the fetcher and the unpackers exit, too.
 *        A layer is complete when it was fetched with the right digest and unpacked with the right
 *        diff ID.
 */
#ifndef FETCH_SUPERVISOR_H
#define FETCH_SUPERVISOR_H

/* Wait for a job on the socket @daemon and do it. Return: exit status of the process */
int supervisor_run(int daemon);

#endif
