/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/error.c - the error object that a plugin prints, both ways
 *
 * What:  {"code": 7, "msg": "...", "details": "..."} into struct hw_err and out
 *        of it (spec 1.1.0 "Error").
 * Rules: reading is as forgiving as libcni's: any key may be missing, unknown
 *        ones are ignored, only a wrong type is refused. A text that does not
 *        fit is cut between two characters.
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

/* How much of s fits into size bytes with its NUL, in whole characters. */
static int fit(const char *s, size_t size)
{
	size_t n = strnlen(s, size);

	if (n < size)
		return n;
	for (n = size - 1; n > 0 && (s[n] & 0xc0) == 0x80;)
		n--;
	return n;
}

/**
 * error_parse() - what a plugin printed when it failed
 * @json:    its stdout, @len bytes
 * @ret_err: its error, in the CNI domain
 *
 * Return: 0, or a negative errno in @e when the text is not an error object
 */
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
	err_cni(ret_err, wire.code, "%.*s", fit(msg, sizeof(ret_err->msg)), msg);
	err_details(ret_err, "%.*s", fit(details, sizeof(ret_err->details)), details);
	hw_field_clear(wire_error_fields, &wire);
	return 0;
}

/**
 * error_format() - what a plugin prints when it fails
 *
 * Return: the text, four spaces, no newline at its end; to be freed by the caller
 */
char *error_format(const struct hw_err *err)
{
	struct wire_error wire = {
		.code = err_wire(err),
		.msg = (char *)err->msg,
		.details = (char *)err->details,
	};

	return hw_field_encode(wire_error_fields, &wire, HW_JSON_PRETTY);
}
