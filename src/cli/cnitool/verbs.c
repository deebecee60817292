/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/cnitool/verbs.c - the commands that run a network's plugins
 *
 * What:  add, check and del for one attachment; gc and status for a network.
 * How:   derives the container ID from the namespace's absolute path in the
 *        same way as upstream's cnitool. Each of the two programs therefore
 *        finds attachments that the other one created.
 * Rules: gc deletes every attachment of the network, as in upstream. On a
 *        terminal it lists them and asks first.
 */
#include "cli/cnitool/cnitool.h"

#include <errno.h>
#include <glob.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/json/value.h"
#include "base/mem.h"
#include "base/os/file.h"
#include "base/str.h"
#include "cni/result.h"
#include "cni/runtime/cache.h"
#include "cni/runtime/conf.h"
#include "cni/version.h"

#define ID_DIGITS 20

static struct {
	bool yes;
} given;

static const struct option_entry gc_options[] = {
	{ "yes", 'y', .help = "do not ask for confirmation", .flag = &given.yes },
	{ 0 },
};

struct tool_attachment {
	struct hw_attach at;
	char id[sizeof("cnitool-") + ID_DIGITS];
	struct hw_strings pairs;      /* the pairs of CNI_ARGS; a NUL replaces each '=' */
	const char *(*key_values)[2]; /* pointers into .pairs */
};

static void tool_attachment_done(struct tool_attachment *a)
{
	hw_strings_free(&a->pairs);
	free(a->key_values);
}

AUTO_VALUE_DEFINE(tool_attachment_done, struct tool_attachment);

/* Like Go's filepath.Clean() for an absolute path; does not follow symbolic links. */
static char *clean_path(const char *path)
{
	AUTO(buf_done) struct buf b = { 0 };

	while (*path) {
		size_t n = strcspn(path, "/");

		if (n == 2 && str_starts(path, "..")) {
			while (b.len > 0 && b.data[--b.len] != '/')
				;
		} else if (n > 0 && !(n == 1 && *path == '.')) {
			buf_putc(&b, '/');
			buf_add(&b, path, n);
		}
		path += n;
		path += strspn(path, "/");
	}
	if (b.len == 0)
		buf_putc(&b, '/');
	return str_ncopy(b.data, b.len);
}

static int absolute_path(const char *path, char **ret_path, struct hw_err *e)
{
	autofree char *joined = NULL;
	autofree char *cwd = NULL;

	if (*path != '/') {
		cwd = get_current_dir_name(); /* like Go's os.Getwd(): $PWD if valid */
		if (!cwd)
			return err_set(e, -errno, "get the working directory");
		joined = str_printf("%s/%s", cwd, path);
		path = joined;
	}
	*ret_path = clean_path(path);
	return 0;
}

static int set_args(struct tool_attachment *a, const char *args, struct hw_err *e)
{
	if (str_empty(args))
		return 0;
	strings_split(args, ';', &a->pairs);
	a->key_values = mem_resize(NULL, a->pairs.n, sizeof(*a->key_values));
	for (size_t i = 0; i < a->pairs.n; i++) {
		char *pair = a->pairs.v[i], *value = strchr(pair, '=');

		if (!value || value == pair || !value[1] || strchr(value + 1, '='))
			return err_text(e, -EINVAL, "invalid CNI_ARGS pair \"%s\"", pair);
		*value = '\0';
		a->key_values[i][0] = pair;
		a->key_values[i][1] = value + 1;
	}
	a->at.args = (const char *const(*)[2])a->key_values;
	a->at.n_args = a->pairs.n;
	return 0;
}

/* Checks the arguments for add, check and del; the library checks them only in ADD. */
static int set_capability_args(struct tool_attachment *a, const char *json, struct hw_err *e)
{
	AUTO(value_free) struct value *v = NULL;
	int r;

	if (!json)
		return 0;
	r = value_parse(json, strlen(json), &v, e);
	if (r < 0)
		return err_ctx(e, "CAP_ARGS");
	if (value_kind(v) != VALUE_OBJECT)
		return err_text(e, -EINVAL, "CAP_ARGS: expected an object, got %s",
				value_kind_name(value_kind(v)));
	a->at.capability_args = json;
	return 0;
}

/* @args: NETWORK NETNS */
static int tool_attachment_init(struct tool_attachment *a, struct cli *t, char **args,
				struct hw_err *e)
{
	char digits[ID_DIGITS + 1];
	int r;

	r = tool_load(t, args[0], e);
	if (r < 0)
		return r;
	r = absolute_path(args[1], &t->netns, e);
	if (r < 0)
		return r;
	r = set_args(a, t->args, e);
	if (r < 0)
		return r;
	r = set_capability_args(a, t->capability_args, e);
	if (r < 0)
		return r;
	hash_hex(t->netns, ID_DIGITS, digits);
	snprintf(a->id, sizeof(a->id), "cnitool-%s", digits);
	a->at.size = sizeof(a->at);
	a->at.container_id = a->id;
	a->at.netns = t->netns;
	a->at.ifname = t->ifname;
	a->at.cancel_fd = t->cancel_fd;
	a->at.timeout_ms = t->timeout * 1000;
	return 0;
}

/* Prints the same bytes as upstream, without a final newline. On a terminal, a newline is added. */
static int run_add(struct cli *t, char **args, struct hw_err *e)
{
	AUTO(hw_result_free) struct hw_result *result = NULL;
	AUTO(tool_attachment_done) struct tool_attachment a = { 0 };
	autofree char *json = NULL;
	int r;

	r = tool_attachment_init(&a, t, args, e);
	if (r < 0)
		return r;
	r = hw_add(t->cni, t->conf, &a.at, HW_ADD_UNDO, &result, e);
	if (r < 0)
		return r;
	r = hw_result_format(result, result->version, HW_JSON_PRETTY, &json, e);
	if (r >= 0)
		r = file_write_fd(STDOUT_FILENO, json, strlen(json), e);
	if (r >= 0 && isatty(STDOUT_FILENO))
		r = file_write_fd(STDOUT_FILENO, "\n", 1, e);
	if (r < 0)
		return err_ctx(e, "attached, but the result could not be printed");
	return 0;
}

static int run_check(struct cli *t, char **args, struct hw_err *e)
{
	AUTO(tool_attachment_done) struct tool_attachment a = { 0 };
	int r;

	t->name_plugin = true;
	r = tool_attachment_init(&a, t, args, e);
	if (r < 0)
		return r;
	return hw_check(t->cni, t->conf, &a.at, e);
}

static int run_del(struct cli *t, char **args, struct hw_err *e)
{
	AUTO(tool_attachment_done) struct tool_attachment a = { 0 };
	int r;

	r = tool_attachment_init(&a, t, args, e);
	if (r < 0)
		return r;
	return hw_del(t->cni, t->conf, &a.at, e);
}

const struct command add_command = {
	.name = "add",
	.args = "NETWORK NETNS",
	.min_args = 2,
	.max_args = 2,
	.run = run_add,
	.summary = "attach a network namespace to a network",
	.help = "Runs the network's plugins in order and prints the result as JSON. If a plugin "
		"fails\n"
		"or you press Ctrl-C, the attachment is undone.\n\n"
		"examples:\n"
		"  ip netns add pod && cnitool add demo /run/netns/pod\n"
		"  CAP_ARGS='{\"portMappings\":[{\"hostPort\":8080,\"containerPort\":80,"
		"\"protocol\":\"tcp\"}]}' \\\n"
		"      cnitool add demo /run/netns/pod\n",
};

const struct command check_command = {
	.name = "check",
	.args = "NETWORK NETNS",
	.min_args = 2,
	.max_args = 2,
	.run = run_check,
	.summary = "check an attachment",
	.help = "Succeeds and prints nothing if the attachment is still as add created it; "
		"otherwise\n"
		"prints the difference. The network's version must be 0.4.0 or later.\n\n"
		"examples:\n"
		"  cnitool check demo /run/netns/pod\n",
};

const struct command del_command = {
	.name = "del",
	.args = "NETWORK NETNS",
	.min_args = 2,
	.max_args = 2,
	.run = run_del,
	.summary = "detach a network namespace",
	.help = "Also succeeds if the attachment or the namespace no longer exists.\n\n"
		"examples:\n"
		"  cnitool del demo /run/netns/pod\n",
};

/* The named namespaces, or none if a part of the path has been typed: then files are listed. */
int complete_netns(struct cli *t, const char *word, struct hw_strings *words, struct hw_err *e)
{
	glob_t found;

	(void)t;
	(void)e;
	if (!*word && glob("/run/netns/*", 0, NULL, &found) == 0) {
		for (size_t i = 0; i < found.gl_pathc; i++)
			strings_add(words, found.gl_pathv[i]);
		globfree(&found);
	}
	return 0;
}

/* ---- gc and status ------------------------------------------------------------------ */

/* Reads one character from the terminal; Ctrl-C means no. */
static bool read_yes(const struct cli *t)
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

static int confirm_gc(const struct cli *t, struct hw_err *e)
{
	AUTO(hw_cached_list_free) struct hw_cached_list list = { 0 };
	const char *network = hw_conf_name(t->conf);
	size_t n = 0;
	int r;

	if (given.yes || !isatty(STDIN_FILENO))
		return 0;
	r = hw_cached_attachments(t->cni, NULL, NULL, NULL, &list, e);
	if (r < 0)
		return r;
	for (size_t i = 0; i < list.n; i++) {
		const struct hw_cached *entry = &list.v[i];

		if (!str_equal(entry->network, network))
			continue;
		if (n++ == 0)
			fprintf(stderr, "attachments of network \"%s\":\n", network);
		fprintf(stderr, "  %s %s %s\n", entry->container_id, entry->ifname,
			str_or(entry->netns, ""));
	}
	if (n == 0 && !version_at_least(hw_conf_version(t->conf), "1.1.0"))
		return 0;
	if (n == 0)
		fprintf(stderr,
			"no attachments of network \"%s\" in the cache, but its plugins may have "
			"some\n",
			network);
	fprintf(stderr, "delete %s? [y/N] ", n == 1 ? "it" : "all");
	if (!read_yes(t))
		return err_text(e, -EPERM, "not confirmed, nothing was changed");
	return 0;
}

/* Passes an empty list of valid attachments, so that plugins also delete attachments that are
 * not in the cache; upstream passes no list. */
static int run_gc(struct cli *t, char **args, struct hw_err *e)
{
	static const struct hw_valid none[1];
	int r;

	r = tool_load(t, args[0], e);
	if (r < 0)
		return r;
	r = confirm_gc(t, e);
	if (r < 0)
		return r;
	return hw_gc(t->cni, t->conf, none, 0, e);
}

static int run_status(struct cli *t, char **args, struct hw_err *e)
{
	int r;

	t->name_plugin = true;
	r = tool_load(t, args[0], e);
	if (r < 0)
		return r;
	return hw_status(t->cni, t->conf, e);
}

/* Upstream accepts a namespace for gc and status, and ignores it. */
const struct command gc_command = {
	.name = "gc",
	.args = "NETWORK",
	.min_args = 1,
	.max_args = 2,
	.run = run_gc,
	.summary = "delete EVERY attachment of a network",
	.help = "Detaches every container in the cache of this network, including those that "
		"other\n"
		"programs attached. Then runs the plugins with GC, so that they delete everything "
		"else\n"
		"of this network. On a terminal it first lists the attachments and asks for\n"
		"confirmation; --yes skips the question.\n\n"
		"examples:\n"
		"  cnitool gc demo\n",
	.options = gc_options,
};

const struct command status_command = {
	.name = "status",
	.args = "NETWORK",
	.min_args = 1,
	.max_args = 2,
	.run = run_status,
	.summary = "check that a network is ready",
	.help = "Succeeds if containers can be attached now. Runs each plugin of the network with\n"
		"STATUS if the network's version is 1.1.0 or later.\n\n"
		"examples:\n"
		"  cnitool status demo && echo ready\n",
};
