/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/cnitool/network.c - gc and status
 *
 * What:  the commands about a network as a whole.
 * Rules: gc ends every attachment of the network, as upstream's does; where a
 *        person is at the terminal it lists them and asks first.
 */
#include "cli/cnitool/cnitool.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "base/str.h"
#include "cni/runtime/cache.h"
#include "cni/runtime/conf.h"
#include "cni/version.h"

static size_t show_attachments(const struct hw_cached_list *list, const char *network)
{
	size_t n = 0;

	for (size_t i = 0; i < list->n; i++) {
		const struct hw_cached *entry = &list->v[i];

		if (!str_equal(entry->network, network))
			continue;
		if (n++ == 0)
			fprintf(stderr, "attachments of network \"%s\":\n", network);
		fprintf(stderr, "  %s %s %s\n", entry->container_id, entry->ifname,
			str_or(entry->netns, ""));
	}
	return n;
}

/* One line from the terminal; Ctrl-C is a no. */
static bool answered_yes(const struct tool *t)
{
	struct pollfd fds[] = { { .fd = STDIN_FILENO, .events = POLLIN },
				{ .fd = t->cancel_fd, .events = POLLIN } };
	char answer = 'n';

	while (poll(fds, 2, -1) < 0 && errno == EINTR)
		;
	if (fds[1].revents || read(STDIN_FILENO, &answer, 1) != 1)
		return false;
	return answer == 'y' || answer == 'Y';
}

static int confirm(const struct tool *t, struct hw_err *e)
{
	AUTO(hw_cached_list_free) struct hw_cached_list list = { 0 };
	size_t n;
	int r;

	if (t->yes || !isatty(STDIN_FILENO))
		return 0;
	r = hw_cached_attachments(t->cni, NULL, NULL, NULL, &list, e);
	if (r < 0)
		return r;
	n = show_attachments(&list, hw_conf_name(t->conf));
	if (n == 0 && !version_at_least(hw_conf_version(t->conf), "1.1.0"))
		return 0;
	if (n == 0)
		fprintf(stderr, "the cache knows none of network \"%s\", its plugins may\n",
			hw_conf_name(t->conf));
	fprintf(stderr, "end %s? [y/N] ", n == 1 ? "it" : "all of them");
	if (!answered_yes(t))
		return err_text(e, -EPERM, "nothing was changed");
	return 0;
}

/**
 * tool_gc() - end every attachment of the network
 *
 * The plugins are told that none is valid, so that they also end what was
 * never cached; upstream's gives them no list, which leaves it to them.
 */
int tool_gc(struct tool *t, char **args, struct hw_err *e)
{
	static const struct hw_valid none[1];
	int r;

	r = tool_load(t, args[0], e);
	if (r >= 0)
		r = confirm(t, e);
	if (r < 0)
		return r;
	return hw_gc(t->cni, t->conf, none, 0, e);
}

/** tool_status() - could an ADD work now? */
int tool_status(struct tool *t, char **args, struct hw_err *e)
{
	int r;

	t->bare = true;
	r = tool_load(t, args[0], e);
	if (r < 0)
		return r;
	return hw_status(t->cni, t->conf, e);
}
