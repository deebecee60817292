/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/run/runtime.c - calls of an OCI runtime program, such as crun
 *
 * How:   a runtime has no exit statuses that tell errors apart, and the texts differ between versions.
 *        So after a kill or a delete that failed, the state decides whether there was anything to do.
 */
#include "oci/run/runtime.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "oci/run/pid.h"

#define OUTPUT_MAX (256 << 10) /* `crun state` prints annotations, and a seccomp filter is one */
#define TEXT_MAX   1000

const char *const runtime_env[] = {
	"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
	NULL,
};

void runtime_add_options(const struct runtime *rt, struct hw_strings *argv)
{
	strings_add(argv, "--root");
	strings_add(argv, rt->root);
	if (rt->systemd_cgroup)
		strings_add(argv, "--systemd-cgroup");
}

char *runtime_error_text(const char *text)
{
	AUTO(buf_done) struct buf line = { 0 };

	for (const char *c = str_or(text, ""); *c && line.len < TEXT_MAX; c++) {
		if (*c != '\n')
			buf_putc(&line, *c);
		else if (c[1 + strspn(c + 1, " \n")])
			buf_puts(&line, "; ");
	}
	return buf_take(&line);
}

int runtime_error_code(const char *text)
{
	static const struct {
		const char *what, *end; /* the text contains this, and ends with this; NULL: any */
		int code;
	} causes[] = {
		{ "executable file `", NULL, -EINVAL },
		{ "stat'ing file `", NULL, -EINVAL },
		{ "open executable", NULL, -EINVAL },
		{ "writing file `", "Invalid argument", -EINVAL },
		{ "writing file `", "Numerical result out of range", -EINVAL },
		{ "`cpuset.", "Permission denied", -EINVAL }, /* not in the parent's set */
		{ "writing file `", "Device or resource busy", -EBUSY }, /* less than is in use */
	};

	for (size_t i = 0; i < ARRAY_SIZE(causes); i++)
		if (strstr(text, causes[i].what) &&
		    (!causes[i].end || str_ends(text, causes[i].end)))
			return causes[i].code;
	return -EIO;
}

/* Runs the program with these words as arguments. Return: 0 if it succeeds; -EIO if it fails */
static int call_locked(const struct runtime *rt, const char *const *words, const char *input,
		       int lock, int64_t deadline, struct proc_result *ret, struct hw_err *e)
{
	AUTO(hw_strings_free) struct hw_strings argv = { 0 };
	AUTO(proc_result_done) struct proc_result result = { 0 };
	autofree char *text = NULL;
	struct proc p = {
		.path = rt->program,
		.env = runtime_env,
		.input = input,
		.input_len = input ? strlen(input) : 0,
		.output_max = OUTPUT_MAX,
		.cancel_fd = -1,
		.deadline = deadline,
		.lock = lock,
	};
	char status[64];
	int r;

	strings_add(&argv, rt->program);
	runtime_add_options(rt, &argv);
	for (size_t i = 0; words[i]; i++)
		strings_add(&argv, words[i]);
	argv.v = mem_resize(argv.v, argv.n + 1, sizeof(*argv.v));
	argv.v[argv.n] = NULL;
	p.argv = (const char *const *)argv.v;
	r = proc_run(&p, &result, e);
	if (r < 0)
		return err_ctx(e, "%s", words[0]);
	if (result.status) {
		text = runtime_error_text(result.errors.data);
		return err_text(e, -EIO, "%s %s: %s", rt->program, words[0],
				*text ? text
				      : proc_status_format(result.status, status, sizeof(status)));
	}
	if (ret) {
		*ret = result;
		result = (struct proc_result){ 0 };
	}
	return 0;
}

static int call(const struct runtime *rt, const char *const *words, int64_t deadline,
		struct proc_result *ret, struct hw_err *e)
{
	return call_locked(rt, words, NULL, 0, deadline, ret, e);
}

#define WORDS(...)                                                                                 \
	(const char *const[])                                                                      \
	{                                                                                          \
		__VA_ARGS__, NULL                                                                  \
	}

int runtime_start(const struct runtime *rt, const char *id, int64_t deadline, struct hw_err *e)
{
	return call(rt, WORDS("start", id), deadline, NULL, e);
}

int runtime_pause(const struct runtime *rt, const char *id, int64_t deadline, struct hw_err *e)
{
	return call(rt, WORDS("pause", id), deadline, NULL, e);
}

int runtime_resume(const struct runtime *rt, const char *id, int64_t deadline, struct hw_err *e)
{
	return call(rt, WORDS("resume", id), deadline, NULL, e);
}

int runtime_update(const struct runtime *rt, const char *id, const struct oci_limits *limits,
		   int lock, int64_t deadline, struct hw_err *e)
{
	autofree char *json = hw_field_encode(spec_limits_fields, limits, 0);

	int r;

	r = call_locked(rt, WORDS("update", "--resources", "/proc/self/fd/0", id), json, lock,
			deadline, NULL, e);
	return r == -EIO ? err_replace(e, -EIO, runtime_error_code(e->msg)) : r;
}

/* ---- state --------------------------------------------------------------------------------------- */

struct answer {
	char *status;
	int pid;
};

static const struct hw_field answer_fields[] = {
	{ "status", HW_STRING, HW_AT(struct answer, status), .flags = HW_REQUIRED },
	{ "pid", HW_INT, HW_AT(struct answer, pid) },
	{ 0 },
};

static const char *const status_names[] = {
	[RUNTIME_CREATED] = "created",
	[RUNTIME_RUNNING] = "running",
	[RUNTIME_PAUSED] = "paused",
	[RUNTIME_STOPPED] = "stopped",
};

/* The program keeps the state of each container in a directory. */
static bool has_directory(const struct runtime *rt, const char *id)
{
	autofree char *path = str_printf("%s/%s", rt->root, id);

	return access(path, F_OK) == 0 || errno != ENOENT;
}

static int parse_state(const struct buf *text, struct runtime_state *ret, struct hw_err *e)
{
	struct answer answer;
	int r;

	r = hw_field_decode(answer_fields, str_or(text->data, ""), text->len, &answer, e);
	if (r < 0)
		return err_replace(e, -EINVAL, -EBADMSG);
	r = err_text(e, -EBADMSG, "unknown status %.100s", answer.status);
	for (size_t i = 0; i < ARRAY_SIZE(status_names); i++)
		if (str_equal(answer.status, status_names[i])) {
			*ret = (struct runtime_state){ (enum runtime_status)i, answer.pid };
			r = 1;
		}
	hw_field_clear(answer_fields, &answer);
	return r;
}

/* `crun start` removes the fifo at which the first process waits, and then writes to it. Killed between these two,
 * it leaves a process that waits forever, and its state is "running". */
static bool waits_at_removed_fifo(const char *id, pid_t pid)
{
	autofree char *end = str_printf("/%s/exec.fifo (deleted)", id);

	return pid_has_open(pid, str_ends, end) > 0;
}

int runtime_get_state(const struct runtime *rt, const char *id, int64_t deadline,
		      struct runtime_state *ret_state, struct hw_err *e)
{
	AUTO(proc_result_done) struct proc_result result = { 0 };
	int r;

	r = call(rt, WORDS("state", id), deadline, &result, e);
	if (r == -EIO && !has_directory(rt, id))
		return 0;
	if (r < 0)
		return r;
	r = parse_state(&result.output, ret_state, e);
	if (r < 0)
		return err_ctx(e, "%s state", rt->program);
	if (ret_state->status == RUNTIME_RUNNING && waits_at_removed_fifo(id, ret_state->pid))
		ret_state->status = RUNTIME_CREATED;
	return r;
}

/* ---- ending -------------------------------------------------------------------------------------- */

/* Whether the container is stopped or does not exist. */
static bool is_over(const struct runtime *rt, const char *id, int64_t deadline)
{
	struct runtime_state state = { 0 };
	struct hw_err ignored;
	int r;

	r = runtime_get_state(rt, id, deadline, &state, &ignored);
	return r == 0 || (r > 0 && state.status == RUNTIME_STOPPED);
}

int runtime_kill(const struct runtime *rt, const char *id, int signal, bool all, int64_t deadline,
		 struct hw_err *e)
{
	char number[16];
	int r;

	snprintf(number, sizeof(number), "%d", signal);
	r = call(rt, all ? WORDS("kill", "--all", id, number) : WORDS("kill", id, number), deadline,
		 NULL, e);
	return r == -EIO && is_over(rt, id, deadline) ? 1 : r;
}

int runtime_delete(const struct runtime *rt, const char *id, int64_t deadline, struct hw_err *e)
{
	int r;

	r = call(rt, WORDS("delete", "--force", id), deadline, NULL, e);
	return r == -EIO && !has_directory(rt, id) ? 0 : r;
}
