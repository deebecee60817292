/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/runtime/exec.c - find a plugin, run it once, interpret its reply
 *
 * What:  the default implementation of struct hw_exec, and the interpretation
 *        of a plugin's exit status and output (libcni's pkg/invoke).
 * How:   base/os/proc.c runs the program. If the plugin fails, the error is the
 *        error object that it printed, or one of libcni's texts if it printed
 *        none.
 * Rules: a plugin's output is bounded, and quoted before it becomes part of a
 *        message.
 */
#include "cni/runtime/exec.h"

#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/json/value.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/os/file.h"
#include "base/os/proc.h"
#include "base/str.h"
#include "base/time.h"
#include "cni/error.h"
#include "cni/runtime/cni.h"

#define BUSY_FIRST_MS 10   /* first wait after ETXTBSY; doubled after each attempt */
#define BUSY_TOTAL_MS 5000 /* as long as libcni retries */
#define QUOTE_MAX     1000 /* maximum number of output bytes in a message */

/* ---- find ----------------------------------------------------------------- */

int hw_exec_find(void *ctx, const char *plugin, const char *const *dirs, char **ret_path,
		 struct hw_err *e)
{
	AUTO(buf_done) struct buf searched = { 0 };
	struct stat st;

	(void)ctx;
	if (str_empty(plugin))
		return err_text(e, -EINVAL, "no plugin name provided");
	if (strchr(plugin, '/'))
		return err_text(e, -EINVAL, "invalid plugin name: %s", plugin);
	if (!dirs || !dirs[0])
		return err_text(e, -EINVAL, "no paths provided");
	for (const char *const *dir = dirs; *dir; dir++) {
		autofree char *path = NULL;

		buf_printf(&searched, "%s%s", dir > dirs ? " " : "", *dir);
		/* an empty name, as in "a::b", must not mean the current directory */
		if (!**dir)
			continue;
		path = str_printf("%s/%s", *dir, plugin);
		if (stat(path, &st) == 0 && S_ISREG(st.st_mode)) {
			*ret_path = take_ptr(path);
			return 0;
		}
	}
	return err_text(e, -ENOENT, "failed to find plugin \"%s\" in path [%s]", plugin,
			str_or(searched.data, ""));
}

int exec_find(const struct hw_exec *exec, const char *plugin, const char *const *dirs,
	      char **ret_path, struct hw_err *e)
{
	if (exec && exec->find)
		return exec->find(exec->ctx, plugin, dirs, ret_path, e);
	return hw_exec_find(NULL, plugin, dirs, ret_path, e);
}

/* ---- the default run() ------------------------------------------------------ */

/* A plugin that is being installed cannot be executed (ETXTBSY) until its writer closes it: retry. */
static int run_with_busy_retry(const struct proc *p, struct proc_result *ret, struct hw_err *e)
{
	int64_t retry_until = time_earlier(p->deadline, time_deadline(BUSY_TOTAL_MS));
	struct pollfd cancel = { .fd = p->cancel_fd, .events = POLLIN };

	for (int ms = BUSY_FIRST_MS;; ms *= 2) {
		int left, r;

		r = proc_run(p, ret, e);
		left = time_left_ms(retry_until);
		if (r != -ETXTBSY || left == 0)
			return r;
		if (poll(&cancel, 1, ms < left ? ms : left) > 0)
			return err_text(e, -ECANCELED, "cancelled");
		if (time_has_passed(p->deadline)) /* ETXTBSY is more useful than ETIMEDOUT */
			return r;
	}
}

int exec_run_error(int r, int64_t started, struct hw_err *e)
{
	double seconds = (double)(time_now() - started) / 1e9;

	switch (r) {
	case -ETIMEDOUT:
		return err_text(e, r,
				"netplugin failed with no error message: timed out after %.1f s",
				seconds);
	case -ECANCELED:
		return err_text(e, r,
				"netplugin failed with no error message: cancelled after %.1f s",
				seconds);
	case -EFBIG:
		return err_text(e, r, "netplugin failed: output exceeds %d MiB, killed",
				PROC_OUTPUT_MAX >> 20);
	default:
		return err_ctx(e, "netplugin failed with no error message");
	}
}

int exec_run(const struct hw_run *run, bool same_group, struct hw_ran *ret_ran, struct hw_err *e)
{
	AUTO(proc_result_done) struct proc_result result = { 0 };
	struct proc p = { 0 };
	struct hw_run copy;
	int64_t started = time_now();
	int r;

	r = cni_copy_struct(&copy, sizeof(copy), run, "struct hw_run", e);
	if (r < 0)
		return r;
	if (ret_ran->size < sizeof(*ret_ran))
		return err_text(e, -EINVAL, "struct hw_ran.size is not set");
	p.path = copy.plugin;
	p.env = copy.env;
	p.input = copy.input;
	p.input_len = copy.input_len;
	p.stderr_through = copy.stderr_through;
	p.stay = same_group;
	p.cancel_fd = copy.cancel_fd > 0 ? copy.cancel_fd : -1;
	p.deadline = copy.deadline_ns ? copy.deadline_ns : TIME_NEVER;
	r = run_with_busy_retry(&p, &result, e);
	if (r < 0)
		return exec_run_error(r, started, e);
	ret_ran->status = result.status;
	ret_ran->output_len = result.output.len;
	ret_ran->output = buf_take(&result.output);
	ret_ran->errors = NULL;
	ret_ran->errors_len = 0;
	if (!copy.stderr_through) {
		ret_ran->errors_len = result.errors.len;
		ret_ran->errors = buf_take(&result.errors);
	}
	return 0;
}

int hw_exec_run(void *ctx, const struct hw_run *run, struct hw_ran *ret_ran, struct hw_err *e)
{
	(void)ctx;
	return exec_run(run, false, ret_ran, e);
}

/* ---- environment -------------------------------------------------------------- */

static const struct {
	const char *name;
	size_t offset;
} variables[] = {
	{ "CNI_COMMAND", offsetof(struct exec_env, command) },
	{ "CNI_CONTAINERID", offsetof(struct exec_env, container_id) },
	{ "CNI_NETNS", offsetof(struct exec_env, netns) },
	{ "CNI_ARGS", offsetof(struct exec_env, args) },
	{ "CNI_IFNAME", offsetof(struct exec_env, ifname) },
	{ "CNI_PATH", offsetof(struct exec_env, path) },
	{ "CNI_NETNS_OVERRIDE", offsetof(struct exec_env, netns_override) },
};

/* @all: a map from name to "NAME=VALUE", which owns the entries. If a variable is set twice in our
 * environment, the last value is used.
 *
 * Return: our environment with the CNI variables set, in the format of execve() */
static const char **build_environment(const struct exec_env *env, struct map *all)
{
	const char **list, *name;
	size_t n = 0;
	void *found;

	for (char **entry = environ; entry && *entry; entry++) {
		autofree char *key = str_ncopy(*entry, strcspn(*entry, "="));

		map_set(all, key, str_copy(*entry));
	}
	for (size_t i = 0; i < ARRAY_SIZE(variables); i++) {
		const char *const *value = (const void *)((const char *)env + variables[i].offset);

		if (*value)
			map_set(all, variables[i].name,
				str_printf("%s=%s", variables[i].name, *value));
	}
	list = mem_resize(NULL, map_count(all) + 1, sizeof(*list));
	for (size_t i = 0; map_next(all, &i, &name, &found);)
		list[n++] = found;
	list[n] = NULL;
	return list;
}

/* ---- the reply ------------------------------------------------------------------ */

/* Formats like Go's %q, truncated to QUOTE_MAX bytes. */
static char *quote(const char *s, size_t len)
{
	static const char named[] = "\aa\bb\ff\nn\rr\tt\vv\"\"\\\\";
	AUTO(buf_done) struct buf b = { 0 };

	buf_putc(&b, '"');
	for (size_t i = 0; i < len && i < QUOTE_MAX; i++) {
		const char *name = s[i] ? strchr(named, s[i]) : NULL;

		if (name && (name - named) % 2 == 0)
			buf_printf(&b, "\\%c", name[1]);
		else if (iscntrl((unsigned char)s[i]))
			buf_printf(&b, "\\x%02x", (unsigned char)s[i]);
		else
			buf_putc(&b, s[i]);
	}
	buf_puts(&b, len > QUOTE_MAX ? "\"..." : "\"");
	return buf_take(&b);
}

/* Sets the error of a failed plugin: the error object that it printed, or libcni's text. */
static int error_from_reply(const struct hw_ran *ran, struct hw_err *e)
{
	autofree char *quoted = NULL;
	struct hw_err not_json;
	char why[64];

	proc_status_format(ran->status, why, sizeof(why));
	if (ran->output_len && error_parse(ran->output, ran->output_len, e, &not_json) >= 0)
		return e->code;
	if (ran->output_len) {
		quoted = quote(ran->output, ran->output_len);
		return err_cni(e, HW_CNI_UNKNOWN,
			       "netplugin failed but error parsing its diagnostic message %s: %s",
			       quoted, why);
	}
	if (ran->errors_len) {
		quoted = quote(ran->errors, ran->errors_len);
		return err_cni(e, HW_CNI_UNKNOWN, "netplugin failed: %s: %s", quoted, why);
	}
	return err_cni(e, HW_CNI_UNKNOWN, "netplugin failed with no error message: %s", why);
}

/* Return: true if the output is an error object and not a result. An ADD that prints an error
 * object has failed, even with exit status 0. */
static bool is_error_object(const char *output, size_t len)
{
	static const char *const result_keys[] = { "interfaces", "ips",	   "ip4",
						   "ip6",	 "routes", "dns" };
	AUTO(value_free) struct value *v = NULL;
	struct hw_err not_json;

	if (value_parse(output, len, &v, &not_json) < 0 || value_kind(v) != VALUE_OBJECT)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(result_keys); i++)
		if (value_find(v, result_keys[i]))
			return false;
	return value_int(value_find(v, "code")) && value_string(value_find(v, "msg"));
}

/* Standard error may be a pipe without a reader; its SIGPIPE must not kill the calling program. */
static void copy_to_stderr(const char *text, size_t len)
{
	sigset_t only_pipe, before, pending;
	struct hw_err e;

	sigemptyset(&only_pipe);
	sigaddset(&only_pipe, SIGPIPE);
	sigpending(&pending);
	pthread_sigmask(SIG_BLOCK, &only_pipe, &before);
	if (file_write_fd(STDERR_FILENO, text, len, &e) == -EPIPE &&
	    !sigismember(&pending, SIGPIPE))
		sigtimedwait(&only_pipe, NULL, &(struct timespec){ 0 });
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

int exec_call(const struct exec_call *call, char **ret_output, size_t *ret_len, struct hw_err *e)
{
	AUTO(map_free) struct map *all = map_new(free);
	autofree const char **env = build_environment(&call->env, all);
	struct hw_ran ran = { .size = sizeof(ran) };
	struct hw_run run = {
		.size = sizeof(run),
		.plugin = call->plugin,
		.env = env,
		.input = call->input,
		.input_len = call->input_len,
		.cancel_fd = call->cancel_fd,
		.deadline_ns = call->deadline == TIME_NEVER ? 0 : call->deadline,
		.stderr_through = call->stderr_mode == HW_STDERR_THROUGH,
	};
	bool custom = call->exec && call->exec->run;
	int r;

	r = custom ? call->exec->run(call->exec->ctx, &run, &ran, e)
		   : exec_run(&run, call->same_group, &ran, e);
	if (r >= 0 && (ran.status || (str_equal(call->env.command, "ADD") &&
				      is_error_object(ran.output, ran.output_len))))
		r = error_from_reply(&ran, e);
	else if (r >= 0 && call->stderr_mode == HW_STDERR_AFTER && ran.errors_len)
		copy_to_stderr(ran.errors, ran.errors_len);
	free(ran.errors);
	if (r < 0) {
		free(ran.output);
		return r;
	}
	*ret_output = ran.output ? ran.output : str_copy("");
	*ret_len = ran.output_len;
	return 0;
}

int exec_result(const char *output, size_t len, const char *version, struct hw_result **ret_result,
		struct hw_err *e)
{
	if (len == 0)
		return err_text(e, -EINVAL,
				"failed to unmarshal raw result: unexpected end of JSON input");
	return hw_result_parse(output, len, version, ret_result, e);
}
