/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/runtime/run.c - ADD, DEL and CHECK of a network for a container
 *
 * What:  libcni's AddNetworkList, DelNetworkList and CheckNetworkList, and
 *        AddNetwork etc. for a single plugin.
 * How:   ADD runs the plugins in order, each with the result of the previous
 *        one, and caches the last result for CHECK and DEL. CHECK runs them in
 *        the same order, DEL in reverse. All stop at the first error.
 * Rules: ADD finds all plugins and validates the names before it runs the
 *        first plugin. ADD and DEL share the network's lock and exclude each
 *        other for the same attachment; GC holds the network's lock exclusively.
 *        A failed ADD is undone only on request, and never if the cache has an
 *        entry of an earlier ADD: the undo would delete that attachment. If a plugin
 *        refuses the ADD because it has the attachment already, only the plugins
 *        before it are undone.
 */
#include "cni/runtime/run.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/str.h"
#include "base/time.h"
#include "cni/lock.h"
#include "cni/name.h"
#include "cni/result.h"
#include "cni/runtime/cache.h"
#include "cni/runtime/cni.h"
#include "cni/runtime/exec.h"
#include "cni/version.h"

#define UNDO_TIMEOUT_MS 60000 /* for an undo; the deadline of the call may have passed */
#define LOCK_SLICE_MS	100   /* interval between two checks whether the call was cancelled */

/* ---- one call ---------------------------------------------------------------- */

int run_init(struct run *run, const struct hw_cni *cni, const struct hw_conf *conf,
	     const struct hw_attach *at, struct hw_err *e)
{
	const struct hw_attach none = { .size = sizeof(none),
					.cancel_fd = cni->cancel_fd,
					.timeout_ms = cni->timeout_ms };
	AUTO(buf_done) struct buf args = { 0 };
	int r;

	*run = (struct run){ .cni = cni, .conf = conf };
	r = cni_copy_struct(&run->at, sizeof(run->at), at ? at : &none, "struct hw_attach", e);
	if (r < 0)
		return r;
	run->at.container_id = str_or(run->at.container_id, "");
	run->at.netns = str_or(run->at.netns, "");
	run->at.ifname = str_or(run->at.ifname, "");
	run->cancel_fd = run->at.cancel_fd > 0 ? run->at.cancel_fd : -1;
	run->deadline = time_deadline(run->at.timeout_ms);
	for (size_t i = 0; i < run->at.n_args; i++) {
		const char *key = run->at.args[i][0], *value = run->at.args[i][1];

		if (!key || !value)
			return err_text(e, -EINVAL, "CNI_ARGS: pair %zu has no %s", i,
					key ? "value" : "key");
		buf_printf(&args, "%s%s=%s", i ? ";" : "", key, value);
	}
	run->args = buf_take(&args);
	return 0;
}

void run_done(struct run *run)
{
	free(run->args);
}

static bool is_cancelled(const struct run *run)
{
	struct pollfd cancel = { .fd = run->cancel_fd, .events = POLLIN };

	return poll(&cancel, 1, 0) > 0;
}

int run_lock(const struct run *run, bool exclusive, int *ret_fd, struct hw_err *e)
{
	int64_t deadline = time_earlier(run->deadline, time_deadline(run->cni->lock_timeout_ms));
	autoclose int fd = -1;
	int r;

	do {
		int64_t slice = time_earlier(deadline, time_deadline(LOCK_SLICE_MS));

		if (is_cancelled(run))
			return err_text(e, -ECANCELED, "lock network \"%s\": cancelled",
					run->conf->name);
		r = fd >= 0 ? 0
			    : lock_acquire(run->cni->state_dir, run->conf->name, RUN_LOCK_HOLDER,
					   exclusive, slice, &fd, e);
		if (r >= 0 && !exclusive)
			r = lock_attachment(fd, run->at.container_id, run->at.ifname, slice, e);
	} while (r < 0 && err_wire(e) == HW_CNI_TRY_AGAIN && !time_has_passed(deadline));
	if (r < 0)
		return r;
	*ret_fd = take_fd(fd);
	return 0;
}

/* ---- one plugin ---------------------------------------------------------------- */

static int find_plugin(const struct run *run, size_t i, char **ret_path, struct hw_err *e)
{
	return exec_find(&run->cni->exec, run->conf->plugins[i].type,
			 (const char *const *)run->cni->plugin_dirs, ret_path, e);
}

static int call_plugin(const struct run *run, size_t i, const char *path, const char *command,
		       const struct conf_request *request, char **ret_output, size_t *ret_len,
		       struct hw_err *e)
{
	autofree char *input = NULL;
	int r;

	if (is_cancelled(run))
		return err_text(e, -ECANCELED, "not started: the call was cancelled");
	if (time_has_passed(run->deadline))
		return err_text(e, -ETIMEDOUT, "not started: the call timed out");
	r = conf_request(run->conf, i, request, &input, e);
	if (r < 0)
		return r;
	return exec_call(
		&(struct exec_call){
			.exec = &run->cni->exec,
			.plugin = path,
			.env = { .command = command,
				 .container_id = run->at.container_id,
				 .netns = run->at.netns,
				 .ifname = run->at.ifname,
				 .args = run->args,
				 .path = run->cni->path },
			.input = input,
			.input_len = strlen(input),
			.stderr_mode = run->cni->stderr_mode,
			.cancel_fd = run->cancel_fd,
			.deadline = run->deadline,
		},
		ret_output, ret_len, e);
}

int run_plugin(const struct run *run, size_t i, const char *command,
	       const struct conf_request *request, char **ret_output, size_t *ret_len,
	       struct hw_err *e)
{
	autofree char *path = NULL;
	int r;

	r = find_plugin(run, i, &path, e);
	if (r < 0)
		return r;
	return call_plugin(run, i, path, command, request, ret_output, ret_len, e);
}

/* Runs DEL or CHECK of plugin @i and ignores its output. */
static int run_without_output(const struct run *run, size_t i, const char *command,
			      const char *prev_result, struct hw_err *e)
{
	struct conf_request request = { .prev_result = prev_result,
					.capability_args = run->at.capability_args };
	autofree char *output = NULL;
	size_t len;

	return run_plugin(run, i, command, &request, &output, &len, e);
}

/* Prefixes an error of a list with the plugin. An error of a single plugin stays unchanged, as in
 * libcni. */
static int add_plugin_ctx(const struct run *run, size_t i, const char *verb, struct hw_err *e)
{
	const struct conf_plugin *plugin = &run->conf->plugins[i];

	if (!run->conf->list)
		return e->code;
	if (plugin->name)
		return err_ctx(e, "plugin type=\"%s\" name=\"%s\" failed (%s)", plugin->type,
			       plugin->name, verb);
	return err_ctx(e, "plugin type=\"%s\" failed (%s)", plugin->type, verb);
}

/* ---- ADD ----------------------------------------------------------------------- */

static int add_cache_ctx(const struct run *run, struct hw_err *e)
{
	return err_ctx(e, "failed to set network \"%s\" cached result", run->conf->name);
}

/* Makes all checks that are possible before the first plugin runs, and finds the plugins. */
static int prepare_add(const struct run *run, struct hw_strings *ret_paths, struct hw_err *e)
{
	AUTO(value_free) struct value *capability_args = NULL;
	autofree char *cache = NULL;

	if (run->conf->n_plugins == 0)
		return err_cni(e, HW_CNI_INVALID_CONFIG, "network \"%s\" has no plugins",
			       run->conf->name);
	for (size_t i = 0; i < run->conf->n_plugins; i++) {
		autofree char *path = NULL;

		if (find_plugin(run, i, &path, e) < 0)
			return add_plugin_ctx(run, i, "add", e);
		strings_add(ret_paths, path);
	}
	if (name_check_container(run->at.container_id, e) < 0 ||
	    name_check_network(run->conf->name, e) < 0 || name_check_ifname(run->at.ifname, e) < 0)
		return add_plugin_ctx(run, 0, "add", e);
	if (run->at.capability_args &&
	    conf_parse_object(run->at.capability_args, "capability arguments", &capability_args,
			      e) < 0)
		return e->code;
	/* valid names may still be too long for a file name */
	if (cache_path(run->cni->cache_dir, run->conf->name, &run->at, &cache, e) < 0)
		return add_cache_ctx(run, e);
	return 0;
}

/* Runs ADD of one plugin.
 * @result: the previous plugin's result, or NULL; replaced by the new result */
static int add_plugin(const struct run *run, size_t i, const char *path, struct hw_result **result,
		      struct hw_err *e)
{
	struct conf_request request = { .capability_args = run->at.capability_args };
	struct hw_result *answer = NULL;
	autofree char *output = NULL;
	autofree char *prev = NULL;
	size_t len;
	int r;

	if (*result) {
		r = hw_result_format(*result, (*result)->version, 0, &prev, e);
		if (r < 0)
			return r;
		request.prev_result = prev;
	}
	r = call_plugin(run, i, path, "ADD", &request, &output, &len, e);
	if (r < 0)
		return r;
	r = exec_result(output, len, run->conf->version, &answer, e);
	if (r < 0)
		return r;
	hw_result_free(*result);
	*result = answer;
	return 0;
}

/* @ret_n: number of plugins that succeeded, also after an error */
static int add_list(const struct run *run, const struct hw_strings *paths,
		    struct hw_result **result, size_t *ret_n, struct hw_err *e)
{
	autofree char *json = NULL;
	int r;

	for (*ret_n = 0; *ret_n < paths->n; ++*ret_n)
		if (add_plugin(run, *ret_n, paths->v[*ret_n], result, e) < 0)
			return add_plugin_ctx(run, *ret_n, "add", e);
	assert(*result); /* prepare_add() rejects a network without plugins */
	r = hw_result_format(*result, (*result)->version, 0, &json, e);
	if (r >= 0)
		r = cache_write(run->cni->cache_dir, run->conf, &run->at, json, e);
	return r < 0 ? add_cache_ctx(run, e) : 0;
}

static void add_detail(struct hw_err *e, const char *what, const char *text)
{
	err_details(e, "%s%s%s: %s", e->details, *e->details ? "; " : "", what, text);
}

/* Runs DEL of the first @n plugins of the list, in reverse order. */
static int del_plugins(const struct run *run, size_t n, const char *prev_result, struct hw_err *e)
{
	while (n-- > 0)
		if (run_without_output(run, n, "DEL", prev_result, e) < 0)
			return add_plugin_ctx(run, n, "delete", e);
	return 0;
}

/* Undoes a failed ADD by a DEL of the first @n plugins, with the last result that is known. */
static void undo_add(struct run *run, size_t n, const struct hw_result *result, struct hw_err *e)
{
	autofree char *prev = NULL;
	struct hw_err why;

	if (result && version_at_least(run->conf->version, "0.4.0"))
		(void)hw_result_format(result, run->conf->version, 0, &prev, &why);
	run->cancel_fd = -1;
	run->deadline = time_deadline(UNDO_TIMEOUT_MS);
	if (run->at.undo_deadline_ns)
		run->deadline = time_earlier(run->deadline, run->at.undo_deadline_ns);
	if (del_plugins(run, n, prev, &why) < 0)
		add_detail(e, "undo also failed", why.msg);
}

/* Return: true if an earlier ADD was not deleted by a DEL; its attachment may be in use */
static bool has_cache_file(const struct run *run)
{
	autofree char *path = NULL;
	struct hw_err ignored;
	struct stat st;

	return cache_path(run->cni->cache_dir, run->conf->name, &run->at, &path, &ignored) >= 0 &&
	       stat(path, &st) == 0 && st.st_size > 0;
}

int hw_add(const struct hw_cni *cni, const struct hw_conf *conf, const struct hw_attach *at,
	   unsigned flags, struct hw_result **ret_result, struct hw_err *e)
{
	AUTO(hw_strings_free) struct hw_strings paths = { 0 };
	AUTO(hw_result_free) struct hw_result *result = NULL;
	AUTO(run_done) struct run run = { 0 };
	autoclose int lock = -1;
	size_t succeeded;
	bool earlier;
	int r;

	if (flags & ~HW_ADD_UNDO)
		return err_text(e, -EINVAL, "hw_add: unsupported flags 0x%x", flags & ~HW_ADD_UNDO);
	r = run_init(&run, cni, conf, at, e);
	if (r < 0)
		return r;
	r = prepare_add(&run, &paths, e);
	if (r < 0)
		return r;
	r = run_lock(&run, false, &lock, e);
	if (r < 0)
		return r;
	earlier = has_cache_file(&run);
	r = add_list(&run, &paths, &result, &succeeded, e);
	if (r < 0 && !(flags & HW_ADD_UNDO))
		return r;
	if (r < 0) {
		if (earlier)
			add_detail(e, "not undone",
				   "the cache has an entry of an earlier ADD; run DEL first");
		else if (err_wire(e) == HW_CNI_ALREADY_ATTACHED)
			undo_add(&run, succeeded, result, e);
		else
			undo_add(&run, paths.n, result, e);
		return r;
	}
	if (ret_result)
		*ret_result = take_ptr(result);
	return 0;
}

/* ---- DEL ----------------------------------------------------------------------- */

int run_del(const struct run *run, const char *prev_result, struct hw_err *e)
{
	int r;

	r = del_plugins(run, run->conf->n_plugins, prev_result, e);
	if (r < 0)
		return r;
	/* a repeated DEL removes the file */
	if (cache_remove(run->cni->cache_dir, run->conf->name, &run->at, e) < 0 &&
	    has_cache_file(run))
		return e->code;
	return r;
}

/* The caller's result of the ADD, in the network's version. Return: 1; 0: none; or a negative errno */
static int given_result(const struct run *run, char **ret_json, struct hw_err *e)
{
	AUTO(hw_result_free) struct hw_result *result = NULL;
	const char *given = run->at.prev_result;
	int r;

	if (str_empty(given))
		return 0;
	r = hw_result_parse(given, strlen(given), NULL, &result, e);
	if (r == 0)
		r = hw_result_format(result, run->conf->version, 0, ret_json, e);
	return r < 0 ? err_ctx(e, "prev_result") : 1;
}

char *run_prev_result(const struct run *run)
{
	AUTO(hw_result_free) struct hw_result *result = NULL;
	autofree char *path = NULL;
	struct hw_err why, ignored;
	char *json = NULL;
	int r;

	if (!version_at_least(run->conf->version, "0.4.0"))
		return NULL;
	r = cache_result(run->cni->cache_dir, run->conf, &run->at, &result, &why);
	if (r > 0)
		r = hw_result_format(result, run->conf->version, 0, &json, &why);
	if (r < 0 && run->cni->damaged &&
	    cache_path(run->cni->cache_dir, run->conf->name, &run->at, &path, &ignored) >= 0)
		run->cni->damaged(run->cni->damaged_ctx, path, &why);
	if (!json)
		(void)given_result(run, &json, &ignored);
	return json;
}

int hw_del(const struct hw_cni *cni, const struct hw_conf *conf, const struct hw_attach *at,
	   struct hw_err *e)
{
	AUTO(run_done) struct run run = { 0 };
	autofree char *prev = NULL;
	autoclose int lock = -1;
	int r;

	r = run_init(&run, cni, conf, at, e);
	if (r < 0)
		return r;
	r = run_lock(&run, false, &lock, e);
	if (r < 0)
		return r;
	prev = run_prev_result(&run);
	return run_del(&run, prev, e);
}

/* ---- CHECK --------------------------------------------------------------------- */

int hw_check(const struct hw_cni *cni, const struct hw_conf *conf, const struct hw_attach *at,
	     struct hw_err *e)
{
	AUTO(hw_result_free) struct hw_result *result = NULL;
	AUTO(run_done) struct run run = { 0 };
	autofree char *prev = NULL;
	int r;

	r = run_init(&run, cni, conf, at, e);
	if (r < 0)
		return r;
	if (!version_at_least(conf->version, "0.4.0"))
		return err_text(e, -EOPNOTSUPP,
				"configuration version \"%s\" does not support the CHECK command",
				conf->version);
	if (conf->disable_check)
		return 0;
	r = cache_result(cni->cache_dir, conf, &run.at, &result, e);
	if (r > 0)
		r = hw_result_format(result, conf->version, 0, &prev, e);
	if (r < 0)
		err_ctx(e, "failed to get network \"%s\" cached result", conf->name);
	if (!prev && !str_empty(run.at.prev_result))
		r = given_result(&run, &prev, e);
	for (size_t i = 0; r >= 0 && i < conf->n_plugins; i++)
		r = run_without_output(&run, i, "CHECK", prev, e);
	return r < 0 ? r : 0;
}
