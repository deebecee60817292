/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/handler.c - runtime handlers: the OCI runtimes that run containers
 *
 * How:   `PROGRAM features` prints the features as JSON (OCI runtime specification, "features").
 *        crun has this command since 1.8.6; the features of earlier versions follow from the version.
 */
#include "oci/handler.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/os/proc.h"
#include "base/str.h"
#include "base/time.h"

#define PROBE_MS   10000
#define OUTPUT_MAX (64 << 10)

int handler_parse(const char *text, char **ret_name, const char **ret_program, struct hw_err *e)
{
	size_t len = strcspn(text, "=");

	if (!text[len] || text[len + 1] != '/')
		return err_text(e, -EINVAL, "%.200s: expected NAME=/PATH/OF/PROGRAM", text);
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)text[i]) && !strchr("-._", text[i]))
			return err_text(e, -EINVAL, "%.200s: invalid character in the name", text);
	if (len == 0 || len > 63)
		return err_text(e, -EINVAL, "%.200s: a name has 1 to 63 characters", text);
	*ret_name = str_ncopy(text, len);
	*ret_program = text + len + 1;
	return 0;
}

/* Runs PROGRAM WORD. Return: 0 with its standard output; a negative errno if it fails */
static int ask(const char *program, const char *word, struct buf *ret, struct hw_err *e)
{
	const char *const argv[] = { program, word, NULL };
	AUTO(proc_result_done) struct proc_result result = { 0 };
	struct proc p = {
		.path = program,
		.argv = argv,
		.output_max = OUTPUT_MAX,
		.drop_excess = true,
		.cancel_fd = -1,
		.deadline = time_deadline(PROBE_MS),
	};
	char status[64];
	int r;

	r = proc_run(&p, &result, e);
	if (r < 0)
		return err_ctx(e, "%s %s", program, word);
	if (result.status)
		return err_text(e, -EIO, "%s %s: %s", program, word,
				proc_status_format(result.status, status, sizeof(status)));
	*ret = result.output;
	result.output = (struct buf){ 0 };
	return 0;
}

/* ---- features ---------------------------------------------------------------------------------- */

struct features {
	struct hw_strings mount_options;
	bool idmap;
	bool has_seccomp, seccomp;
};

static const struct hw_field idmap_fields[] = {
	{ "enabled", HW_BOOL, HW_AT(struct features, idmap) },
	{ 0 },
};
static const struct hw_field extension_fields[] = {
	{ "idmap", HW_OBJECT, 0, .sub = idmap_fields },
	{ 0 },
};
static const struct hw_field seccomp_fields[] = {
	{ "enabled", HW_BOOL, HW_AT(struct features, seccomp),
	  .has = HW_HAS(struct features, has_seccomp) },
	{ 0 },
};
static const struct hw_field linux_fields[] = {
	{ "mountExtensions", HW_OBJECT, 0, .sub = extension_fields },
	{ "seccomp", HW_OBJECT, 0, .sub = seccomp_fields },
	{ 0 },
};
static const struct hw_field features_fields[] = {
	{ "mountOptions", HW_STRINGS, HW_AT(struct features, mount_options) },
	{ "linux", HW_OBJECT, 0, .sub = linux_fields },
	{ 0 },
};

/* rro and idmapped mounts need mount_setattr(), which Linux has since 5.12. */
static bool has_mount_setattr(void)
{
	return syscall(SYS_mount_setattr, -1, "", 0, NULL, 0) < 0 && errno != ENOSYS;
}

#define CRUN_VERSION "crun version "

/* "crun version 1.8.1": 1008; 0 for another program, and for "crun version UNKNOWN" */
static long get_crun_version(const char *version)
{
	char *end = NULL;
	long major;

	if (!str_starts(version, CRUN_VERSION))
		return 0;
	major = strtol(version + strlen(CRUN_VERSION), &end, 10);
	return major * 1000 + (*end == '.' ? strtol(end + 1, NULL, 10) : 0);
}

static void set_mount_features(struct oci_handler *h, const struct features *f, long crun)
{
	if (!has_mount_setattr())
		return;
	if (f) {
		h->rro = strings_has(&f->mount_options, "rro");
		h->idmap = f->idmap				     ? OCI_IDMAP_ANY
			   : strings_has(&f->mount_options, "idmap") ? OCI_IDMAP_SAME
								     : OCI_IDMAP_NONE;
		return;
	}
	/* crun: rro since 1.4, idmap since 1.5; uidMappings of its own for a mount since 1.9 */
	h->rro = crun >= 1004;
	h->idmap = crun >= 1005 ? OCI_IDMAP_SAME : OCI_IDMAP_NONE;
}

/* crun takes compiled filters since 0.17. If it was built without libseccomp, its list of features lacks
 * "+SECCOMP", and it ignores profiles silently. */
static enum oci_seccomp find_seccomp(const struct features *f, long crun, const char *version)
{
	if ((f && f->has_seccomp && !f->seccomp) ||
	    (str_starts(version, CRUN_VERSION) && !strstr(version, "+SECCOMP")))
		return OCI_SECCOMP_NONE;
	return crun ? OCI_SECCOMP_FILTER : OCI_SECCOMP_PROFILE;
}

/* @version: all that PROGRAM --version prints */
static void set_features(struct oci_handler *h, const char *version)
{
	const long crun = get_crun_version(h->version);
	struct features f = { 0 };
	AUTO(buf_done) struct buf text = { 0 };
	struct hw_err ignored;
	bool has;

	has = ask(h->program, "features", &text, &ignored) == 0 &&
	      hw_field_decode(features_fields, str_or(text.data, ""), text.len, &f, &ignored) == 0;
	set_mount_features(h, has ? &f : NULL, crun);
	h->seccomp = find_seccomp(has ? &f : NULL, crun, version);
	hw_field_clear(features_fields, &f);
}

/* ---- the list ---------------------------------------------------------------------------------- */

/* Takes ownership of @name. */
static void add_handler(struct oci_handlers *h, char *name, const char *program)
{
	struct oci_handler handler = { .name = name, .program = str_copy(str_or(program, "")) };
	AUTO(buf_done) struct buf text = { 0 };
	struct hw_err e;

	if (!program)
		handler.message = str_copy("crun not found");
	else if (ask(program, "--version", &text, &e) < 0)
		handler.message = str_copy(e.msg);
	handler.criu = strstr(str_or(text.data, ""), "+CRIU") != NULL;
	handler.version = str_ncopy(str_or(text.data, ""), strcspn(str_or(text.data, ""), "\n"));
	if (!handler.message)
		set_features(&handler, str_or(text.data, ""));
	h->v = mem_resize(h->v, h->n + 1, sizeof(*h->v));
	h->v[h->n++] = handler;
}

void handlers_probe(const char *default_program, const struct hw_strings *given,
		    struct oci_handlers *ret)
{
	struct oci_handlers all = { 0 };

	add_handler(&all, str_copy(""), default_program);
	for (size_t i = 0; i < given->n; i++) {
		const char *program;
		struct hw_err e;
		char *name;
		int r;

		r = handler_parse(given->v[i], &name, &program, &e);
		assert(r == 0);
		add_handler(&all, name, program);
	}
	*ret = all;
}

void handlers_done(struct oci_handlers *h)
{
	for (size_t i = 0; i < h->n; i++) {
		free(h->v[i].name);
		free(h->v[i].program);
		free(h->v[i].version);
		free(h->v[i].message);
	}
	free(h->v);
	*h = (struct oci_handlers){ 0 };
}

const struct oci_handler *handlers_find(const struct oci_handlers *h, const char *name)
{
	for (size_t i = 0; i < h->n; i++)
		if (str_equal(h->v[i].name, str_or(name, "")))
			return &h->v[i];
	return NULL;
}
