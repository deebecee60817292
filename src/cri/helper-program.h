/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/helper-program.h - programs of ours that the daemon starts, by name
 */
#ifndef CRI_HELPER_PROGRAM_H
#define CRI_HELPER_PROGRAM_H

/* A path, to be freed; whether there is something is seen when it is started. */
char *helper_find(const char *name);

#endif
