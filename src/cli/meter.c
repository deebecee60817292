/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/meter.c - how much of an archive has passed, on a terminal
 */
#include "cli/meter.h"

#include <stdio.h>
#include <unistd.h>

#include "base/time.h"
#include "cli/progress.h"
#include "cli/terminal.h"

#define REDRAW_NS  (100 * 1000000)
#define CLEAR_LINE "\r\033[K"

/**
 * meter_add() - some more bytes have passed
 */
void meter_add(struct meter *m, uint64_t bytes)
{
	autofree char *line = NULL;

	m->done += bytes;
	if (!m->what || (m->drawn_at && time_now() - m->drawn_at < REDRAW_NS) ||
	    !terminal_can_redraw(STDERR_FILENO))
		return;
	line = progress_bytes(m->what, m->done, m->total, terminal_width(STDERR_FILENO) - 1);
	fprintf(stderr, CLEAR_LINE "%s", line);
	m->drawn_at = time_now();
}

/**
 * meter_end() - take the line away
 */
void meter_end(struct meter *m)
{
	if (m->drawn_at)
		fputs(CLEAR_LINE, stderr);
	m->drawn_at = 0;
}
