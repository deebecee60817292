/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/service/executables.h - paths of the programs that the daemon starts
 *
 * What:  our own helper programs (hawser-fetch, hawser-layer, hawser-pause), and the external
 *        programs that run containers (crun, conmon).
 */
#ifndef CRI_SERVICE_EXECUTABLES_H
#define CRI_SERVICE_EXECUTABLES_H

/* The path of one of our helper programs: in the directory of hawser-cri if it exists there (build
 * tree), otherwise in ../libexec/hawser (installed). The file may be missing: then starting it
 * fails. Return: allocated, never NULL */
char *executable_helper(const char *name);

/* Searches $PATH for the external programs at every call, because upgrades replace them. Return:
 * NULL if all of them exist, otherwise a message that names the first missing one and $PATH, to be
 * freed by the caller */
char *executables_missing(void);

#endif
