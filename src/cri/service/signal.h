/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/service/signal.h - signals of CRI, which have numbers of their own, and of this machine
 */
#ifndef CRI_SERVICE_SIGNAL_H
#define CRI_SERVICE_SIGNAL_H

/* Return: the number on this machine; 0 for the runtime's default; -1 if it is unknown */
int signal_from_cri(int value);
/* Return: the value of CRI; 0 if CRI does not know it */
int signal_to_cri(int number);

#endif
