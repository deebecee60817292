/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/verify.c - is a layer still what was unpacked?
 */
#include "image/verify.h"

#include <errno.h>
#include <string.h>

#include "base/proc.h"
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

/**
 * verify_layer() - hash the files of a layer again
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
	const char *const argv[] = { how->program, "verify", dir, NULL };
	const struct proc proc = {
		.path = how->program,
		.argv = argv,
		.output_max = REPORT_MAX,
		.cancel_fd = how->cancel_fd,
		.deadline = how->deadline,
	};
	AUTO(proc_result_done) struct proc_result result = { 0 };
	int r;

	if (!layer->rebuildable) {
		*ret_report = (struct verify_report){ 0 };
		return 0;
	}
	r = proc_run(&proc, &result, e);
	if (r == 0)
		r = take_report(&result, ret_report, e);
	return r < 0 ? err_ctx(e, "verify layer %s", layer->diff_id) : 0;
}
