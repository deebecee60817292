/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/supervisor.h - the supervisor: hawser-fetch's first process
 *
 * What:  starts the fetcher, and an unpacker for each layer that the daemon wants, a few at a time,
 *        with a pipe from the fetcher to the unpacker. Completes the layers in order and reports to
 *        the daemon.
 * Rules: the supervisor parses only one kind of untrusted input: the short messages of the fetcher
 *        and the unpackers. Documents of the registry are passed to the daemon unparsed.
 *        The fetcher is started before the job arrives, so that both processes have loaded their
 *        libraries by then.
 *        When the supervisor exits, the fetcher and the unpackers exit, too.
 *        A layer is complete when it was fetched with the expected digest and unpacked with the
 *        expected diff ID.
 */
#ifndef FETCH_SUPERVISOR_H
#define FETCH_SUPERVISOR_H

/* Wait for a job on the socket @daemon and do it. Return: exit status of the process */
int supervisor_run(int daemon);

#endif
