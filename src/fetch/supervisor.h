/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/supervisor.h - hawser-fetch's first process: who fetches, who unpacks, when
 *
 * What:  starts the process that fetches, and for each layer that the daemon wants
 *        one that unpacks, a few at a time, with a pipe between them; completes the
 *        layers in their order, and tells the daemon.
 * Rules: reads nothing that strangers wrote but the two kinds of processes' short
 *        messages, and those of the fetching process go on to the daemon unread.
 *        The process that fetches is there before the job is, so that both have
 *        their libraries ready when it comes.
 *        When it ends, all its processes end.
 *        A layer counts when it was fetched with the right digest and unpacked
 *        with the right diff id.
 */
#ifndef FETCH_SUPERVISOR_H
#define FETCH_SUPERVISOR_H

/* Do the job that comes from the daemon. Return: the exit status of the process */
int supervisor_run(int daemon);

#endif
