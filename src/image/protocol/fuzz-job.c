/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/protocol/fuzz-job.c - fuzz test: payloads of the messages between the daemon and its helpers
 *
 * The first byte of the input is the type of the message, the others are its payload. A payload is
 * either rejected with -EBADMSG, or its struct is the same after encoding and decoding it. Errors
 * contain no control characters.
 */
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/str.h"
#include "image/digest.h"
#include "image/protocol/job.h"
#include "image/protocol/layer-report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

union payload {
	struct fetch_job job;
	struct job_plan plan;
	struct job_resolved resolved;
	struct job_step step;
	struct job_failed failed;
	struct verify_report report;
};

static const struct hw_field *const tables[JOB_TYPES] = {
	[JOB_JOB] = job_fields,		  [JOB_PLAN] = job_plan_fields,
	[JOB_FETCH] = job_step_fields,	  [JOB_RESOLVED] = job_resolved_fields,
	[JOB_PROGRESS] = job_step_fields, [JOB_FETCHED] = job_step_fields,
	[JOB_LAYER] = job_step_fields,	  [JOB_FAILED] = job_failed_fields,
	[JOB_BLOB] = job_step_fields,	  [JOB_REPORT] = verify_fields,
};

static void check_error(int r, int want, const struct hw_err *e)
{
	assert(r < 0 && r == want && e->code == r);
	for (const char *c = e->msg; *c; c++)
		assert((unsigned char)*c >= ' ' && *c != 0x7f);
}

static void decode_table(const struct job_message *m, const struct hw_field *table)
{
	union payload first = { 0 }, second = { 0 };
	struct job_message again;
	struct hw_err e = { 0 };
	int r;

	r = job_decode(m, table, &first, &e);
	if (r < 0) {
		check_error(r, -EBADMSG, &e);
		return;
	}
	autofree char *text = hw_field_encode(table, &first, 0);
	again = (struct job_message){ .data = { text, strlen(text), 0 } };
	r = job_decode(&again, table, &second, &e);
	assert(r == 0);
	autofree char *same = hw_field_encode(table, &second, 0);
	assert(str_equal(text, same));
	hw_field_clear(table, &first);
	hw_field_clear(table, &second);
}

static void decode_failed(const struct job_message *m)
{
	struct hw_err e = { 0 };
	int r;

	r = job_decode_failed(m, &e);
	check_error(r, r, &e);
}

static void check_equal(const struct unpacked *a, const struct unpacked *b)
{
	assert(str_equal(a->diff_id, b->diff_id) && a->archive == b->archive &&
	       a->content == b->content && a->disk == b->disk && a->inodes == b->inodes &&
	       a->skipped == b->skipped && a->rebuildable == b->rebuildable &&
	       a->opaque == b->opaque && a->implied.n == b->implied.n);
	for (size_t i = 0; i < a->implied.n; i++)
		assert(str_equal(a->implied.v[i], b->implied.v[i]));
}

/* the part of LAYER that describes the files */
static void decode_unpacked(const char *data, size_t len)
{
	AUTO(unpacked_done) struct unpacked first = { 0 }, second = { 0 };
	struct hw_err e = { 0 };
	int r;

	r = unpacked_decode(data, len, &first, &e);
	if (r < 0) {
		assert(r == -EBADMSG && e.code == r && e.msg[0] && !first.diff_id);
		return;
	}
	assert(digest_is_sha256(first.diff_id) && first.archive >= 0 && first.content >= 0 &&
	       first.disk >= 0 && first.inodes >= 0 && first.skipped >= 0);
	autofree char *text = unpacked_encode(&first);
	r = unpacked_decode(text, strlen(text), &second, &e);
	assert(r == 0);
	check_equal(&first, &second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(job_message_done) struct job_message m = { .fd = -1 };

	if (size == 0)
		return 0;
	m.type = data[0] % JOB_TYPES;
	buf_add(&m.data, data + 1, size - 1);
	if (tables[m.type])
		decode_table(&m, tables[m.type]);
	if (m.type == JOB_FAILED)
		decode_failed(&m);
	if (m.type == JOB_NONE) /* no such message */
		decode_unpacked(str_or(m.data.data, ""), m.data.len);
	return 0;
}
