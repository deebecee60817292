/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/protocol/verify-report.c - what hawser-layer says of a layer that it has looked at
 */
#include "image/protocol/verify-report.h"

const struct hw_field verify_fields[] = {
	{ "files", HW_INT64, HW_AT(struct verify_report, files) },
	{ "bytes", HW_INT64, HW_AT(struct verify_report, bytes) },
	{ "damaged_count", HW_INT64, HW_AT(struct verify_report, n_damaged) },
	{ "damaged", HW_STRINGS, HW_AT(struct verify_report, damaged) },
	{ 0 },
};

void verify_report_done(struct verify_report *report)
{
	hw_field_clear(verify_fields, report);
}
