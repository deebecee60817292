/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/protocol/verify-report.h - what hawser-layer says of a layer that it has looked at
 */
#ifndef IMAGE_PROTOCOL_VERIFY_REPORT_H
#define IMAGE_PROTOCOL_VERIFY_REPORT_H

#include <stdint.h>

#include <hawser/field.h>

#include "base/mem.h"

#define VERIFY_NAMED_MAX 100 /* files that a report names; the rest it counts */

struct verify_report {
	int64_t files, bytes; /* that were read */
	int64_t n_damaged;
	struct hw_strings damaged; /* "PATH: why" of the first of them */
};

extern const struct hw_field verify_fields[];

void verify_report_done(struct verify_report *report);

AUTO_VALUE_DEFINE(verify_report_done, struct verify_report);

#endif
