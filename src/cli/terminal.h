/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/terminal.h - size and capabilities of the terminal, and password prompt
 */
#ifndef CLI_TERMINAL_H
#define CLI_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

size_t terminal_width(int fd);	/* columns; 0 if not a terminal */
size_t terminal_height(int fd); /* rows; 0 if not a terminal */
/* True if text can be redrawn in place: @fd is a terminal, NO_COLOR is not set, and TERM is set and
 * not "dumb". */
bool terminal_can_redraw(int fd);
/* Print a prompt on the terminal and read a line of at most 1023 bytes without echo; the caller frees
 * it. Return: 0; -ENXIO: no terminal; -EINTR: interrupted by a signal; -ETIMEDOUT */
int terminal_read_secret(const char *prompt, char **ret_secret, struct hw_err *e);

#endif
