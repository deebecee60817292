/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/runtime-programs.h - are the programs there that containers are run with?
 */
#ifndef CRI_RUNTIME_PROGRAMS_H
#define CRI_RUNTIME_PROGRAMS_H

/* Return: NULL, or which is missing and where it was looked for, to be freed by the caller */
char *programs_missing(void);

#endif
