/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/spec/process.c - the process of a container
 */
#include "oci/spec/process.h"

#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "oci/oom-score.h"

#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

static void add_strings(struct hw_strings *list, const struct hw_strings *more)
{
	for (size_t i = 0; more && i < more->n; i++)
		strings_add(list, more->v[i]);
}

static bool is_empty(const struct hw_strings *list)
{
	return !list || list->n == 0;
}

static int set_args(struct oci_process *process, const struct spec_process *p, struct hw_err *e)
{
	struct hw_strings *args = &process->args;

	add_strings(args, is_empty(p->command) ? p->entrypoint : p->command);
	if (!is_empty(p->args))
		add_strings(args, p->args);
	else if (is_empty(p->command))
		add_strings(args, p->cmd);
	if (args->n == 0 || str_empty(args->v[0]))
		return err_text(e, -EINVAL,
				"no command: neither the request nor the image has one");
	return 0;
}

/* ---- environment ------------------------------------------------------------------------------- */

int spec_check_env(const char *name, const void *value, size_t len, struct hw_err *e)
{
	autofree char *text = str_ncopy(len > 0 ? value : "", len);
	const char *at = text;
	size_t n;

	if (str_empty(name) || strchr(name, '='))
		return err_text(e, -EINVAL, "invalid name of an environment variable: \"%.200s\"",
				str_or(name, ""));
	if (strlen(text) != len)
		return err_text(e, -EINVAL, "environment variable %.200s: contains a NUL", name);
	for (; *at; at += n) {
		n = str_utf8_len(at);
		if (n == 0)
			return err_text(e, -EINVAL, "environment variable %.200s: not UTF-8", name);
	}
	return 0;
}

/* @entry: NAME=VALUE. Replaces the entry of the same name. */
static void set_variable(struct hw_strings *env, const char *entry)
{
	size_t len = strcspn(entry, "=");

	for (size_t i = 0; i < env->n; i++)
		if (strcspn(env->v[i], "=") == len && memcmp(env->v[i], entry, len) == 0) {
			free(env->v[i]);
			env->v[i] = str_copy(entry);
			return;
		}
	strings_add(env, entry);
}

static int set_env(struct oci_process *process, const struct spec_process *p, struct hw_err *e)
{
	struct hw_strings *env = &process->env;

	strings_add(env, "PATH=" DEFAULT_PATH);
	if (!str_empty(p->hostname)) {
		autofree char *entry = str_printf("HOSTNAME=%s", p->hostname);

		strings_add(env, entry);
	}
	if (!str_empty(p->home)) {
		autofree char *entry = str_printf("HOME=%s", p->home);

		strings_add(env, entry);
	}
	if (p->terminal)
		strings_add(env, "TERM=xterm");
	for (size_t i = 0; p->image_env && i < p->image_env->n; i++)
		set_variable(env, p->image_env->v[i]);
	for (size_t i = 0; p->env && i < p->env->n; i++) {
		const char *name = p->env->keys[i], *value = p->env->values[i];
		autofree char *entry = str_printf("%s=%s", name, value);

		if (spec_check_env(name, value, strlen(value), e) < 0)
			return e->code;
		set_variable(env, entry);
	}
	return 0;
}

/* ---- the rest ---------------------------------------------------------------------------------- */

static int set_cwd(struct oci_process *process, const struct spec_process *p, struct hw_err *e)
{
	const char *cwd = !str_empty(p->cwd)	     ? p->cwd
			  : !str_empty(p->image_cwd) ? p->image_cwd
						     : "/";

	if (*cwd != '/')
		return err_text(e, -EINVAL, "working directory %.200s: not an absolute path", cwd);
	process->cwd = str_copy(cwd);
	return 0;
}

static void set_user(struct oci_user *user, const struct spec_process *p)
{
	user->uid = p->uid;
	user->gid = p->gid;
	for (size_t i = 0; i < p->n_groups; i++)
		*(uint32_t *)spec_append(&user->additional_gids, sizeof(uint32_t)) = p->groups[i];
}

static void set_rlimits(struct oci_process *process, const struct hw_list *rlimits)
{
	const struct oci_rlimit *v = rlimits ? rlimits->v : NULL;

	for (size_t i = 0; v && i < rlimits->n; i++)
		*(struct oci_rlimit *)spec_append(&process->rlimits, sizeof(*v)) =
			(struct oci_rlimit){ str_copy(v[i].type), v[i].soft, v[i].hard };
}

int spec_set_process(struct oci_spec *s, const struct spec_process *p, struct hw_err *e)
{
	struct oci_process *process = &s->process;
	int r;

	r = set_args(process, p, e);
	if (r == 0)
		r = set_env(process, p, e);
	if (r == 0)
		r = set_cwd(process, p, e);
	if (r == 0)
		r = oom_score_clamp(p->oom_score_adj, &process->oom_score_adj, e);
	if (r < 0)
		return r;
	process->has_oom_score_adj = true;
	process->terminal = p->terminal;
	process->no_new_privileges = p->no_new_privileges;
	set_user(&process->user, p);
	set_rlimits(process, p->rlimits);
	return 0;
}
