/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/hawser/log-output.c - print the log of a container, also while it grows
 */
#include "cli/hawser/log-output.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/os/file.h"
#include "base/str.h"
#include "cli/cri-log.h"

#define BLOCK	 (64 << 10)
#define LINE_MAX (1 << 20) /* runtimes split lines at 16 KiB or less */

typedef int entry_function(struct log_output *log, const struct log_entry *entry, struct hw_err *e);

/* ---- print ----------------------------------------------------------------------- */

static int flush(struct log_output *log, struct hw_err *e)
{
	int r;

	r = file_write_fd(log->out_is_stderr ? STDERR_FILENO : STDOUT_FILENO,
			  str_or(log->out.data, ""), log->out.len, e);
	log->out.len = 0;
	return r < 0 ? err_ctx(e, "print the log") : 0;
}

/* Counts the lines of both streams, in the order in which they begin.
 * Return: the entry begins a line */
static bool count_line(struct log_output *log, const struct log_entry *entry)
{
	bool *in_line = &log->in_line[entry->is_stderr], begins = !*in_line;

	if (begins)
		log->line[entry->is_stderr] = log->lines++;
	*in_line = entry->is_part;
	return begins;
}

static int print_entry(struct log_output *log, const struct log_entry *entry, struct hw_err *e)
{
	bool begins = count_line(log, entry);
	int r;

	if (log->line[entry->is_stderr] < log->skip)
		return 0;
	if (log->out_is_stderr != entry->is_stderr || log->out.len >= BLOCK) {
		r = flush(log, e);
		if (r < 0)
			return r;
	}
	log->out_is_stderr = entry->is_stderr;
	if (log->timestamps && begins) {
		buf_add(&log->out, entry->time, entry->time_len);
		buf_putc(&log->out, ' ');
	}
	buf_add(&log->out, entry->text, entry->len);
	if (!entry->is_part)
		buf_putc(&log->out, '\n');
	return 0;
}

static int count_entry(struct log_output *log, const struct log_entry *entry, struct hw_err *e)
{
	(void)e;
	(void)count_line(log, entry);
	return 0;
}

/* ---- read ------------------------------------------------------------------------ */

static int read_error(const struct log_output *log, struct hw_err *e)
{
	return err_set(e, -errno, "read log %s", log->path);
}

/* Calls take() for the complete lines of .in, and removes them. */
static int take_lines(struct log_output *log, entry_function *take, struct hw_err *e)
{
	const char *at = log->in.data, *newline;
	size_t left = log->in.len;
	int r = 0;

	while (r == 0 && left && (newline = memchr(at, '\n', left))) {
		struct log_entry entry;

		if (log_parse(at, (size_t)(newline - at), &entry))
			r = take(log, &entry, e);
		else
			log->malformed++;
		left -= (size_t)(newline + 1 - at);
		at = newline + 1;
	}
	if (left && at != log->in.data)
		memmove(log->in.data, at, left);
	log->in.len = left;
	if (r == 0 && left > LINE_MAX)
		return err_text(e, -EBADMSG, "log %s: line too long: not in the log format of CRI",
				log->path);
	return r;
}

/* Reads to the end of the file. Return: 1 if anything was read, else 0 */
static int read_entries(struct log_output *log, entry_function *take, struct hw_err *e)
{
	bool any = false;

	for (;;) {
		char *space = buf_reserve(&log->in, BLOCK);
		ssize_t n;
		int r;

		n = pread(log->fd, space, BLOCK, log->offset);
		if (n < 0)
			return read_error(log, e);
		if (n == 0)
			return any;
		buf_commit(&log->in, (size_t)n);
		log->offset += n;
		any = true;
		r = take_lines(log, take, e);
		if (r < 0)
			return r;
	}
}

/* Return: 1; 0 if the file does not exist */
static int open_file(struct log_output *log, struct hw_err *e)
{
	struct stat st;

	log->fd = open(log->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (log->fd < 0 && errno == ENOENT)
		return 0;
	if (log->fd < 0)
		return err_set(e, -errno, "open log %s", log->path);
	if (fstat(log->fd, &st) == 0 && !S_ISREG(st.st_mode))
		return err_text(e, -EINVAL, "log %s: not a regular file", log->path);
	log->offset = 0;
	log->in.len = 0;
	return 1;
}

/* ---- follow ---------------------------------------------------------------------- */

static bool was_rotated(const struct log_output *log)
{
	struct stat ours, current;

	return fstat(log->fd, &ours) == 0 && stat(log->path, &current) == 0 &&
	       (ours.st_ino != current.st_ino || ours.st_dev != current.st_dev);
}

static bool was_truncated(const struct log_output *log)
{
	struct stat st;

	return fstat(log->fd, &st) == 0 && st.st_size < log->offset;
}

int log_print_new(struct log_output *log, struct hw_err *e)
{
	bool any = false, rotated = false;
	int r;

	do {
		r = log->fd < 0 ? open_file(log, e) : 1;
		if (r <= 0)
			return r < 0 ? r : any;
		if (was_truncated(log)) {
			log->offset = 0;
			log->in.len = 0;
		}
		/* The runtime has created the new file after its last write to the old one, which is
		 * read to its end here. */
		rotated = was_rotated(log);
		r = read_entries(log, print_entry, e);
		if (r < 0)
			return r;
		any |= r;
		if (rotated) {
			close(log->fd);
			log->fd = -1;
		}
	} while (rotated);
	r = flush(log, e);
	return r < 0 ? r : any;
}

void log_pause(struct log_output *log, int fd, int ms)
{
	struct pollfd fds[] = { { .fd = log->changes, .events = POLLIN },
				{ .fd = fd, .events = POLLIN } };
	char events[4096];

	if (poll(fds, ARRAY_SIZE(fds), ms) > 0 && fds[0].revents)
		while (read(log->changes, events, sizeof(events)) > 0)
			;
}

/* ---- open, end ------------------------------------------------------------------- */

static void watch_directory(struct log_output *log)
{
	autofree char *dir =
		str_ncopy(log->path, (size_t)(strrchr(log->path, '/') + 1 - log->path));

	log->changes = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (log->changes >= 0 &&
	    inotify_add_watch(log->changes, dir, IN_MODIFY | IN_CREATE | IN_MOVED_TO) < 0) {
		close(log->changes);
		log->changes = -1;
	}
}

/* Counts the lines, so that all but the last .tail can be skipped. */
static int find_tail(struct log_output *log, struct hw_err *e)
{
	int r;

	r = read_entries(log, count_entry, e);
	if (r < 0)
		return r;
	log->skip = log->lines > (size_t)log->tail ? log->lines - (size_t)log->tail : 0;
	log->lines = 0;
	log->in_line[0] = log->in_line[1] = false;
	log->malformed = 0;
	log->offset = 0;
	log->in.len = 0;
	return 1;
}

int log_open(struct log_output *log, const char *path, struct hw_err *e)
{
	int r;

	if (path[0] != '/')
		return err_text(e, -EINVAL, "log \"%s\": want an absolute path", path);
	log->path = str_copy(path);
	watch_directory(log);
	r = open_file(log, e);
	return r == 1 && log->tail >= 0 ? find_tail(log, e) : r;
}

int log_end(const struct log_output *log, struct hw_err *e)
{
	if (!log->malformed)
		return 0;
	return err_text(e, -EBADMSG, "log %s: %zu lines are not in the log format of CRI",
			log->path, log->malformed);
}

void log_done(struct log_output *log)
{
	free(log->path);
	if (log->fd >= 0)
		close(log->fd);
	if (log->changes >= 0)
		close(log->changes);
	buf_done(&log->in);
	buf_done(&log->out);
}
