/* SPDX-License-Identifier: Apache-2.0 */
/*
 * confine/confine.h - sandbox for processes that read untrusted input
 *
 * What:  limits what an attacker gains from a bug in the code that parses the input: files,
 *        capabilities and system calls, by the role of the process. SECURITY.md has the
 *        table of all processes with their rights.
 *        Only the supervisor can create processes.
 * Rules: the confinement cannot be undone, and applies to the whole process, which must have one
 *        thread. Code that reads files of the host, such as OpenSSL's configuration, must do so
 *        before the call.
 *        The caller must close all descriptors of directories other than @root: they would allow
 *        an escape from the chroot.
 */
#ifndef CONFINE_CONFINE_H
#define CONFINE_CONFINE_H

#include "base/err.h"

enum confine_role {
	/* Conducts a pull: starts unpackers and completes layers. It cannot start programs or open
	 * connections. */
	CONFINE_SUPERVISOR,
	/* Talks to registries. It must have dropped its capabilities. It can use its open
	 * descriptors, start threads, open connections, and read the files that name resolution and
	 * TLS need. */
	CONFINE_CLIENT,
	/* Reads an archive of images. It must have dropped its capabilities. It can use its open
	 * descriptors and start threads, but cannot open files. */
	CONFINE_READER,
	/* Unpacks a layer below the directory @root, which becomes its root. It can create files of
	 * all types, but open no devices. */
	CONFINE_UNPACKER,
	/* Reads a stored layer in the directory @root, which becomes its root. It cannot change
	 * anything there. */
	CONFINE_LAYER,
	/* Compiles a seccomp profile. It can use its open descriptors, and nothing else. */
	CONFINE_COMPILER,
};

/* @root: descriptor of a directory. It is replaced: afterwards the number refers to the new root. -1
 * for roles without one. Return: 0, or negative errno with some of the restrictions already in
 * place */
int confine(enum confine_role role, int root, struct hw_err *e);

#endif
