/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/error.c - CNI error objects as JSON
 *
 * What:  converts {"code": 7, "msg": "...", "details": "..."} to struct hw_err
 *        and back (spec 1.1.0 "Error").
 * Rules: parsing is as lenient as libcni's: any key may be missing, unknown
 *        keys are ignored, only a wrong type is rejected. Texts that are too
 *        long for struct hw_err are truncated between two UTF-8 characters.
 */
#include "cni/error.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <hawser/field.h>

#include "base/str.h"

struct wire_error {
	int code;
	char *msg;
	char *details;
};

static const struct hw_field wire_error_fields[] = {
	{ "code", HW_INT, HW_AT(struct wire_error, code), .flags = HW_ALWAYS, .min = 0,
	  .max = INT_MAX },
	{ "msg", HW_STRING, HW_AT(struct wire_error, msg), .flags = HW_ALWAYS },
	{ "details", HW_STRING, HW_AT(struct wire_error, details) },
	{ 0 },
};

/* Return: the length of the longest prefix of s that fits into a buffer of size bytes, with its
 * NUL, and does not split a UTF-8 character */
static int truncated_len(const char *s, size_t size)
{
	size_t n = strnlen(s, size);

	if (n < size)
		return n;
	for (n = size - 1; n > 0 && (s[n] & 0xc0) == 0x80;)
		n--;
	return n;
}

int error_parse(const char *json, size_t len, struct hw_err *ret_err, struct hw_err *e)
{
	struct wire_error wire;
	const char *msg, *details;
	int r;

	r = hw_field_decode(wire_error_fields, json, len, &wire, e);
	if (r < 0)
		return r;
	msg = str_or(wire.msg, "");
	details = str_or(wire.details, "");
	err_cni(ret_err, wire.code, "%.*s", truncated_len(msg, sizeof(ret_err->msg)), msg);
	err_details(ret_err, "%.*s", truncated_len(details, sizeof(ret_err->details)), details);
	hw_field_clear(wire_error_fields, &wire);
	return 0;
}

char *error_format(const struct hw_err *err)
{
	struct wire_error wire = {
		.code = err_wire(err),
		.msg = (char *)err->msg,
		.details = (char *)err->details,
	};

	return hw_field_encode(wire_error_fields, &wire, HW_JSON_PRETTY);
}
