/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/store/verify.c - verify a stored layer against its recipe
 */
#include "image/store/verify.h"

#include <errno.h>
#include <string.h>

#include "base/os/proc.h"
#include "base/str.h"

#define REPORT_MAX (1 << 20)

/* Run hawser-layer, and add its report about a layer to @report. */
static int run_hawser_layer(const char *const *argv, const struct verify_options *how,
			    struct verify_report *report, struct hw_err *e)
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
	char status[64];
	int r;

	r = proc_run(&proc, &result, e);
	if (r < 0)
		return r;
	if (result.status != 0)
		return err_text(e, -EIO, "hawser-layer: %s: %.1024s",
				proc_status_format(result.status, status, sizeof(status)),
				str_or(result.errors.data, ""));
	r = hw_field_decode(verify_fields, str_or(result.output.data, ""), result.output.len, &more,
			    e);
	if (r < 0)
		return r;
	report->files += more.files;
	report->bytes += more.bytes;
	report->n_damaged += more.n_damaged;
	for (size_t i = 0; i < more.damaged.n && report->damaged.n < VERIFY_NAMED_MAX; i++)
		strings_add(&report->damaged, more.damaged.v[i]);
	return 0;
}

int verify_layer(struct store *s, const struct store_layer *layer, const struct verify_options *how,
		 struct verify_report *ret_report, struct hw_err *e)
{
	autofree char *dir =
		str_printf("%s/layers/%s", store_root(s), layer->chain_id + strlen("sha256:"));
	const char *const files[] = { how->program, "verify", dir, NULL };
	const char *const blob[] = { how->program, "verify-blob", dir, layer->blob, NULL };
	AUTO(verify_report_done) struct verify_report report = { 0 };
	int r = layer->rebuildable ? run_hawser_layer(files, how, &report, e) : 0;

	if (r == 0 && layer->blob_kept)
		r = run_hawser_layer(blob, how, &report, e);
	if (r < 0)
		return err_ctx(e, "verify layer %s", layer->diff_id);
	*ret_report = report;
	report = (struct verify_report){ 0 };
	return 0;
}
