/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/terminal.c - size and capabilities of the terminal, and password prompt
 *
 * Rules: echo is always restored, even after Ctrl-C: during the prompt, signals that
 *        would terminate the process only interrupt the prompt.
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

#define DEFAULT_WIDTH  80
#define DEFAULT_HEIGHT 24
#define PROMPT_SECONDS 300

static struct winsize window_size(int fd)
{
	struct winsize w = { 0 };

	if (!isatty(fd))
		return w;
	if (ioctl(fd, TIOCGWINSZ, &w) < 0 || !w.ws_col)
		w.ws_col = DEFAULT_WIDTH;
	if (!w.ws_row)
		w.ws_row = DEFAULT_HEIGHT;
	return w;
}

size_t terminal_width(int fd)
{
	return window_size(fd).ws_col;
}

size_t terminal_height(int fd)
{
	return window_size(fd).ws_row;
}

bool terminal_can_redraw(int fd)
{
	const char *term = getenv("TERM");

	return isatty(fd) && !str_empty(term) && !str_equal(term, "dumb") &&
	       str_empty(getenv("NO_COLOR"));
}

/* Signals are blocked except during ppoll(), so that a signal before ppoll() is not missed. */
static int read_line(int tty, const sigset_t *before_signals, char *line, size_t size,
		     struct hw_err *e)
{
	static const struct timespec timeout = { .tv_sec = PROMPT_SECONDS };
	struct pollfd p = { .fd = tty, .events = POLLIN };
	ssize_t n;
	int r;

	r = ppoll(&p, 1, &timeout, before_signals);
	if (r < 0)
		return err_set(e, -errno, "wait for the terminal");
	if (r == 0)
		return err_text(e, -ETIMEDOUT, "no input for %d s", PROMPT_SECONDS);
	n = read(tty, line, size - 1);
	if (n < 0)
		return err_set(e, -errno, "read from the terminal");
	line[n] = '\0';
	if (!strchr(line, '\n'))
		return err_text(e, n ? -EFBIG : -ENODATA, n ? "input too long" : "no input");
	line[strcspn(line, "\n")] = '\0';
	return 0;
}

static int read_without_echo(int tty, const char *prompt, const sigset_t *before_signals,
			     char *line, size_t size, struct hw_err *e)
{
	struct termios before, silent;
	int r;

	if (tcgetattr(tty, &before) < 0)
		return err_set(e, -errno, "get the attributes of the terminal");
	silent = before;
	silent.c_lflag &= ~(tcflag_t)ECHO;
	silent.c_lflag |= ECHONL;
	if (tcsetattr(tty, TCSAFLUSH, &silent) < 0)
		return err_set(e, -errno, "disable echo on the terminal");
	r = file_write_fd(tty, prompt, strlen(prompt), e);
	if (r == 0)
		r = read_line(tty, before_signals, line, size, e);
	tcsetattr(tty, TCSAFLUSH, &before);
	return r;
}

static void interrupt_ppoll(int signal_number)
{
	(void)signal_number;
}

int terminal_read_secret(const char *prompt, char **ret_secret, struct hw_err *e)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	const struct sigaction action = { .sa_handler = interrupt_ppoll };
	struct sigaction before[ARRAY_SIZE(signals)];
	sigset_t blocked, mask;
	autoclose int tty = -1;
	char line[1024];
	int r;

	tty = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
	if (tty < 0)
		return err_set(e, -errno, "open the terminal");
	sigemptyset(&blocked);
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		sigaddset(&blocked, signals[i]);
	sigprocmask(SIG_BLOCK, &blocked, &mask);
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		sigaction(signals[i], &action, &before[i]);
	r = read_without_echo(tty, prompt, &mask, line, sizeof(line), e);
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		sigaction(signals[i], &before[i], NULL);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	if (r == 0)
		*ret_secret = str_copy(line);
	explicit_bzero(line, sizeof(line));
	return r;
}
