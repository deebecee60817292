/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/confine/confine.h - a process that can do nothing but unpack, or read an archive
 *
 * What:  the process sees the layer's root as its own, keeps the capabilities
 *        that making files needs, and the system calls that unpacking makes: no
 *        socket, no mount, no new process, no other program. A mistake in what
 *        reads the archive is then worth little to whoever made it.
 * Rules: for good, and for the process: it has one thread, and whatever reads
 *        files of the host (OpenSSL's configuration) has done so before.
 *        A descriptor of another folder that is open then is a way out: there is
 *        none but the root's.
 */
#ifndef FETCH_CONFINE_CONFINE_H
#define FETCH_CONFINE_CONFINE_H

#include "base/err.h"

int confine(int root, struct hw_err *e);

/* For a process that has no capabilities any more: what it has open is all that it can use. It may
 * have threads, later ones. */
int confine_reader(struct hw_err *e);

#endif
