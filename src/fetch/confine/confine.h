/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/confine/confine.h - sandbox for processes that read untrusted archives
 *
 * What:  confine() is for a process that unpacks a layer: chroot to the layer's root, only the
 *        capabilities that creating files needs, and a seccomp filter with only the system calls
 *        that unpacking makes: no sockets, mounts, new processes or exec. It limits what an
 *        attacker gains from a bug in the code that parses the archive.
 *        confine_reader() is for a process that reads an archive of images: seccomp only.
 * Rules: the confinement cannot be undone, and applies to the whole process. confine() needs a
 *        process with one thread. Code that reads files of the host, such as OpenSSL's
 *        configuration, must do so before the call.
 *        The caller must close all descriptors of directories other than the layer's root: they
 *        would allow an escape from the chroot.
 */
#ifndef FETCH_CONFINE_CONFINE_H
#define FETCH_CONFINE_CONFINE_H

#include "base/err.h"

/* @root: directory of the layer; becomes the root of the process. Return: 0, or negative errno with
 * some of the restrictions already in place */
int confine(int root, struct hw_err *e);

/* Confine a process that has already dropped its capabilities. Afterwards it can use its open
 * descriptors and start threads, but cannot open files. Return: 0, or negative errno */
int confine_reader(struct hw_err *e);

#endif
