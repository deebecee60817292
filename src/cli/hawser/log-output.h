/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/hawser/log-output.h - print the log of a container, also while it grows
 *
 * What:  reads the log file that the runtime writes (cli/cri-log.h). What the container wrote
 *        to standard output and standard error is printed to the same stream here, as it
 *        was written: not cleaned, with its long lines in one piece.
 * How:   a rotated log is read to its end before the new file, which has the same path.
 *        inotify reports changes; without it they are found at the end of each pause.
 *
 *	AUTO(log_done) struct log_output log = LOG_OUTPUT;
 *
 *	r = log_open(&log, path, e);
 *	while (r >= 0 && !over) {
 *		r = log_print_new(&log, e);
 *		log_pause(&log, -1, 100);
 *	}
 *	if (r >= 0)
 *		r = log_end(&log, e);
 */
#ifndef CLI_HAWSER_LOG_OUTPUT_H
#define CLI_HAWSER_LOG_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

struct log_output {
	/* set by the caller */
	int tail;	 /* print only so many lines of the old ones; -1: all */
	bool timestamps; /* print the time before each line */

	char *path;
	int fd;		  /* -1: the file does not exist yet */
	int changes;	  /* inotify, or -1 */
	off_t offset;	  /* of the next byte to read */
	struct buf in;	  /* an incomplete line */
	size_t skip;	  /* this many lines are not printed */
	size_t lines;	  /* lines that have begun, of both streams */
	size_t malformed; /* entries that are no lines */
	/* of standard output and standard error */
	bool in_line[2]; /* the last entry was a part of a line */
	size_t line[2];	 /* number of the line that began last, from 0 */
	struct buf out;
	bool out_is_stderr;
};

#define LOG_OUTPUT                                                                                 \
	{                                                                                          \
		.tail = -1, .fd = -1, .changes = -1                                                \
	}

/* Open the log. Return: 1; 0 if the file does not exist yet: it is opened later */
int log_open(struct log_output *log, const char *path, struct hw_err *e);
/* Print what has been added. Return: 1 if there was something, else 0 */
int log_print_new(struct log_output *log, struct hw_err *e);
/* Wait until the log changes or @fd is readable, at most for @ms. */
void log_pause(struct log_output *log, int fd, int ms);
/* Return: an error if lines were malformed */
int log_end(const struct log_output *log, struct hw_err *e);
void log_done(struct log_output *log);

AUTO_VALUE_DEFINE(log_done, struct log_output);

#endif
