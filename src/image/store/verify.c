/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/store/verify.c - is a layer still what was unpacked?
 */
#include "image/store/verify.h"

#include <errno.h>
#include <string.h>

#include "base/os/proc.h"
#include "base/str.h"

#define REPORT_MAX (1 << 20)

/* What the program said, if it ended well. */
static int take_report(const struct proc_result *result, struct verify_report *ret,
		       struct hw_err *e)
{
	char status[64];

	if (result->status != 0)
		return err_text(e, -EIO, "hawser-layer: %s: %.1024s",
				proc_status_format(result->status, status, sizeof(status)),
				str_or(result->errors.data, ""));
	return hw_field_decode(verify_fields, str_or(result->output.data, ""), result->output.len,
			       ret, e);
}

/* More of the same layer. */
static void add_report(struct verify_report *to, const struct verify_report *more)
{
	to->files += more->files;
	to->bytes += more->bytes;
	to->n_damaged += more->n_damaged;
	for (size_t i = 0; i < more->damaged.n && to->damaged.n < VERIFY_NAMED_MAX; i++)
		strings_add(&to->damaged, more->damaged.v[i]);
}

static int ask(const char *const *argv, const struct verify_how *how, struct verify_report *report,
	       struct hw_err *e)
{
	const struct proc proc = {
		.path = how->program,
		.argv = argv,
		.output_max = REPORT_MAX,
		.cancel_fd = how->cancel_fd,
		.deadline = how->deadline,
	};
	AUTO(proc_result_done) struct proc_result result = { 0 };
	AUTO(verify_report_done) struct verify_report more = { 0 };
	int r = proc_run(&proc, &result, e);

	if (r == 0)
		r = take_report(&result, &more, e);
	if (r == 0)
		add_report(report, &more);
	return r;
}

/**
 * verify_layer() - hash the files of a layer again, and its blob
 * @s:          the store
 * @layer:      of it
 * @how:        with what, and how long
 * @ret_report: to be ended with verify_report_done(), on success
 * @e:          the error
 */
int verify_layer(struct store *s, const struct store_layer *layer, const struct verify_how *how,
		 struct verify_report *ret_report, struct hw_err *e)
{
	autofree char *dir =
		str_printf("%s/layers/%s", store_root(s), layer->chain_id + strlen("sha256:"));
	const char *const files[] = { how->program, "verify", dir, NULL };
	const char *const blob[] = { how->program, "verify-blob", dir, layer->blob, NULL };
	AUTO(verify_report_done) struct verify_report report = { 0 };
	int r = layer->rebuildable ? ask(files, how, &report, e) : 0;

	if (r == 0 && layer->blob_kept)
		r = ask(blob, how, &report, e);
	if (r < 0)
		return err_ctx(e, "verify layer %s", layer->diff_id);
	*ret_report = report;
	report = (struct verify_report){ 0 };
	return 0;
}
