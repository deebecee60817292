/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/terminal.h - what is at the other end of a descriptor
 */
#ifndef CLI_TERMINAL_H
#define CLI_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

size_t terminal_width(int fd);	/* columns; 0: no terminal */
size_t terminal_height(int fd); /* rows; 0: no terminal */
/* May escape sequences be written? Not if NO_COLOR is set, TERM is "dumb" or absent. */
bool terminal_is_live(int fd);
/* Ask on the terminal, without echo, for a text of at most 1023 bytes; to be freed. */
int terminal_ask_secret(const char *question, char **ret_secret, struct hw_err *e);

#endif
