/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/os/signal-name.h - names of signals
 */
#ifndef BASE_OS_SIGNAL_NAME_H
#define BASE_OS_SIGNAL_NAME_H

/* Parses a name with or without "SIG", in any case, or a number: "SIGTERM", "term", "15", "SIGRTMIN+3",
 * "RTMAX-2". Return: the number of the signal on this machine; -1 if the text is unknown */
int signal_parse(const char *text);

#endif
