/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/terminal.c - what is at the other end of a descriptor
 *
 * Rules: a terminal whose echo was turned off gets it back, also after Ctrl-C:
 *        signals that would end us end the question first.
 */
#include "cli/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/os/file.h"
#include "base/str.h"

#define WIDTH_USUAL  80
#define HEIGHT_USUAL 24
#define PATIENCE     300 /* s */

static struct winsize window(int fd)
{
	struct winsize w = { 0 };

	if (!isatty(fd))
		return w;
	if (ioctl(fd, TIOCGWINSZ, &w) < 0 || !w.ws_col)
		w.ws_col = WIDTH_USUAL;
	if (!w.ws_row)
		w.ws_row = HEIGHT_USUAL;
	return w;
}

/**
 * terminal_width() - columns of the terminal, 0 if it is none
 */
size_t terminal_width(int fd)
{
	return window(fd).ws_col;
}

/**
 * terminal_height() - rows of the terminal, 0 if it is none
 */
size_t terminal_height(int fd)
{
	return window(fd).ws_row;
}

/**
 * terminal_is_live() - can what was written be drawn over?
 */
bool terminal_is_live(int fd)
{
	const char *term = getenv("TERM");

	return isatty(fd) && !str_empty(term) && !str_equal(term, "dumb") &&
	       str_empty(getenv("NO_COLOR"));
}

/* Signals are let in here only, so that none comes unseen between two calls. */
static int wait_for_line(int tty, const sigset_t *before, struct hw_err *e)
{
	static const struct timespec patience = { .tv_sec = PATIENCE };
	struct pollfd p = { .fd = tty, .events = POLLIN };
	int r = ppoll(&p, 1, &patience, before);

	if (r == 0)
		return err_text(e, -ETIMEDOUT, "nothing was typed for %d s", PATIENCE);
	return r < 0 ? err_set(e, -errno, "wait for the terminal") : 0;
}

/* One line, without its end. */
static int read_line(int tty, char *line, size_t size, struct hw_err *e)
{
	ssize_t n = read(tty, line, size - 1);

	if (n < 0)
		return err_set(e, -errno, "read from the terminal");
	line[n] = '\0';
	if (!strchr(line, '\n'))
		return err_text(e, n ? -EFBIG : -ENODATA,
				n ? "that is too long" : "nothing was typed");
	line[strcspn(line, "\n")] = '\0';
	return 0;
}

static int ask(int tty, const char *question, const sigset_t *before_signals, char *line,
	       size_t size, struct hw_err *e)
{
	struct termios before, silent;
	int r;

	if (tcgetattr(tty, &before) < 0)
		return err_set(e, -errno, "look at the terminal's settings");
	silent = before;
	silent.c_lflag &= ~(tcflag_t)ECHO;
	silent.c_lflag |= ECHONL;
	if (tcsetattr(tty, TCSAFLUSH, &silent) < 0)
		return err_set(e, -errno, "turn the terminal's echo off");
	r = file_write_fd(tty, question, strlen(question), e);
	if (r == 0)
		r = wait_for_line(tty, before_signals, e);
	if (r == 0)
		r = read_line(tty, line, size, e);
	tcsetattr(tty, TCSAFLUSH, &before);
	return r;
}

static void note(int signal_number)
{
	(void)signal_number; /* ppoll() has ended: that is all */
}

/* Ctrl-C and the like end the question, with the terminal as it was. */
static int ask_undisturbed(int tty, const char *question, char *line, size_t size, struct hw_err *e)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	const struct sigaction action = { .sa_handler = note };
	struct sigaction before[ARRAY_SIZE(signals)];
	sigset_t blocked, mask;
	int r;

	sigemptyset(&blocked);
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		sigaddset(&blocked, signals[i]);
	sigprocmask(SIG_BLOCK, &blocked, &mask);
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		sigaction(signals[i], &action, &before[i]);
	r = ask(tty, question, &mask, line, size, e);
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		sigaction(signals[i], &before[i], NULL);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	return r;
}

/**
 * terminal_ask_secret() - a question whose answer is not shown
 * @question:   shown as it is
 * @ret_secret: the answer
 * @e:          the error; -ENXIO: there is no terminal
 */
int terminal_ask_secret(const char *question, char **ret_secret, struct hw_err *e)
{
	autoclose int tty = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
	char line[1024];
	int r;

	if (tty < 0)
		return err_set(e, -errno, "open the terminal to ask for it");
	r = ask_undisturbed(tty, question, line, sizeof(line), e);
	if (r == 0)
		*ret_secret = str_copy(line);
	explicit_bzero(line, sizeof(line));
	return r;
}
