/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/store/verify.c - verify a stored layer against its recipe
 */
#include "image/store/verify.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "image/protocol/job.h"

/* Run hawser-layer, and add its report about a layer to @report. */
static int run_hawser_layer(const char *const *argv, const struct verify_options *how,
			    struct verify_report *report, struct hw_err *e)
{
	const struct job_answer answer = { .name = "hawser-layer",
					   .type = JOB_REPORT,
					   .failed = -EIO,
					   .cancel_fd = how->cancel_fd,
					   .deadline = how->deadline };
	AUTO(helper_free) struct helper *helper = NULL;
	AUTO(job_message_done) struct job_message m = { .fd = -1 };
	AUTO(verify_report_done) struct verify_report more = { 0 };
	int r;

	r = helper_start(&(struct helper_start){ .argv = argv }, &helper, e);
	if (r < 0)
		return r;
	r = job_receive_answer(helper, &answer, &m, e);
	if (r < 0)
		return r;
	r = job_decode(&m, verify_fields, &more, e);
	if (r < 0)
		return r;
	report->files += more.files;
	report->bytes += more.bytes;
	report->n_damaged += more.n_damaged;
	for (size_t i = 0; i < more.damaged.n && report->damaged.n < VERIFY_NAMED_MAX; i++)
		strings_add(&report->damaged, more.damaged.v[i]);
	return 0;
}

/* Adds a missing file of the layer's directory to the report, so that a lost layer does not end the
 * verification. Return: whether the file exists, or another error is left to hawser-layer */
static bool find_file(const char *dir, const char *name, struct verify_report *report)
{
	autofree char *path = str_printf("%s/%s", dir, name), *text = NULL;

	if (faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT)
		return true;
	text = str_printf("%s: missing", name);
	strings_add(&report->damaged, text);
	report->n_damaged++;
	return false;
}

int verify_layer(struct store *s, const struct store_layer *layer, const struct verify_options *how,
		 struct verify_report *ret_report, struct hw_err *e)
{
	autofree char *dir =
		str_printf("%s/layers/%s", store_root(s), layer->chain_id + strlen("sha256:"));
	const char *const files[] = { how->program, "verify", dir, NULL };
	const char *const blob[] = { how->program, "verify-blob", dir, layer->blob, NULL };
	AUTO(verify_report_done) struct verify_report report = { 0 };
	bool complete;
	int r = 0;

	complete = find_file(dir, "root", &report);
	if (layer->rebuildable)
		complete = find_file(dir, "recipe", &report) && complete;
	if (layer->rebuildable && complete)
		r = run_hawser_layer(files, how, &report, e);
	if (r == 0 && layer->blob_kept)
		r = run_hawser_layer(blob, how, &report, e);
	if (r < 0)
		return err_ctx(e, "verify layer %s", layer->diff_id);
	*ret_report = report;
	report = (struct verify_report){ 0 };
	return 0;
}
