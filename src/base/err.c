/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/err.c - error structs on the caller's stack, and lists of errors joined into one
 *
 * What:  fill a struct hw_err, put context in front of its message while it is
 *        returned from caller to caller, and join several errors into one.
 * Rules: every text is formatted into a separate buffer first, so an argument may
 *        point into the error that is being written. A text that is too long is
 *        truncated, but the errno text at its end is kept.
 *        The errno texts are glibc's untranslated ones: they do not depend on the
 *        locale of the calling program and use no buffer shared between threads.
 */
#include "base/err.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define ERR_TEXT_MAX sizeof(((struct hw_err *)0)->msg)

static int err_fill(struct hw_err *e, int r, enum hw_domain domain, int wire, const char *msg)
{
	assert(r < 0);
	e->code = r;
	e->domain = domain;
	e->wire = wire;
	e->details[0] = '\0';
	snprintf(e->msg, sizeof(e->msg), "%s", msg);
	return r;
}

int hw_err_set(struct hw_err *e, int r, const char *fmt, ...)
{
	char reason[128];
	char text[ERR_TEXT_MAX];
	const char *known = strerrordesc_np(-r);
	size_t room;
	va_list ap;

	if (known)
		snprintf(reason, sizeof(reason), ": %s", known);
	else
		snprintf(reason, sizeof(reason), ": Unknown error %d", -r);

	room = sizeof(text) - strlen(reason);
	va_start(ap, fmt);
	vsnprintf(text, room, fmt, ap);
	va_end(ap);
	snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s", reason);
	return err_fill(e, r, HW_DOMAIN_NONE, 0, text);
}

int hw_err_text(struct hw_err *e, int r, const char *fmt, ...)
{
	char text[ERR_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return err_fill(e, r, HW_DOMAIN_NONE, 0, text);
}

static int errno_from_cni(int wire)
{
	static const struct {
		int wire;
		int r;
	} table[] = {
		{ HW_CNI_INCOMPATIBLE_VERSION, -EPROTONOSUPPORT },
		{ HW_CNI_UNSUPPORTED_FIELD, -EOPNOTSUPP },
		{ HW_CNI_UNKNOWN_CONTAINER, -ENOENT },
		{ HW_CNI_INVALID_ENV, -EINVAL },
		{ HW_CNI_IO_FAILURE, -EIO },
		{ HW_CNI_DECODE_FAILURE, -EINVAL },
		{ HW_CNI_INVALID_CONFIG, -EINVAL },
		{ HW_CNI_INVALID_NETNS, -EINVAL },
		{ HW_CNI_TRY_AGAIN, -EAGAIN },
		{ HW_CNI_NOT_AVAILABLE, -EHOSTDOWN },
		{ HW_CNI_LIMITED, -EHOSTDOWN },
		{ HW_CNI_ALREADY_ATTACHED, -EEXIST },
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].wire == wire)
			return table[i].r;
	return -EIO;
}

int hw_err_cni(struct hw_err *e, int wire, const char *fmt, ...)
{
	char text[ERR_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return err_fill(e, errno_from_cni(wire), HW_DOMAIN_CNI, wire, text);
}

int err_recode(struct hw_err *e, int wire)
{
	e->code = errno_from_cni(wire);
	e->domain = HW_DOMAIN_CNI;
	e->wire = wire;
	return e->code;
}

int hw_err_details(struct hw_err *e, const char *fmt, ...)
{
	char text[sizeof(e->details)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	snprintf(e->details, sizeof(e->details), "%s", text);
	return e->code;
}

int hw_err_ctx(struct hw_err *e, const char *fmt, ...)
{
	char context[ERR_TEXT_MAX / 2];
	size_t len, kept;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(context, sizeof(context), fmt, ap);
	va_end(ap);

	len = strlen(context);
	kept = strnlen(e->msg, sizeof(e->msg) - len - sizeof(": "));
	memmove(e->msg + len + 2, e->msg, kept);
	memcpy(e->msg, context, len);
	memcpy(e->msg + len, ": ", 2);
	e->msg[len + 2 + kept] = '\0';
	return e->code;
}

int err_replace(struct hw_err *e, int from, int to)
{
	if (e->code == from)
		e->code = to;
	return e->code;
}

int hw_err_wire(const struct hw_err *e)
{
	return e->domain == HW_DOMAIN_CNI ? e->wire : HW_CNI_INTERNAL;
}

const char *hw_err_format(const struct hw_err *e, char *buf, size_t size)
{
	snprintf(buf, size, "%s%s%s", e->msg, e->details[0] ? "; " : "", e->details);
	return buf;
}

#define ERRORS_TAIL sizeof("\nand 18446744073709551615 more")

void errors_add(struct errors *errors, const struct hw_err *e)
{
	char text[sizeof(e->msg) + sizeof(e->details)];
	char *msg = errors->all.msg;
	size_t at, room;

	err_format(e, text, sizeof(text));
	if (errors->n++ == 0) {
		errors->all = *e;
		errors->all.details[0] = '\0';
		snprintf(msg, sizeof(e->msg) - ERRORS_TAIL, "%s", text);
		return;
	}
	at = strlen(msg);
	room = sizeof(e->msg) - ERRORS_TAIL - at;
	if (strlen(text) + sizeof("\n") > room)
		errors->left_out++;
	else
		snprintf(msg + at, room, "\n%s", text);
}

int errors_result(const struct errors *errors, struct hw_err *e)
{
	size_t at;

	if (errors->n == 0)
		return 0;
	*e = errors->all;
	at = strlen(e->msg);
	if (errors->left_out)
		snprintf(e->msg + at, sizeof(e->msg) - at, "\nand %zu more", errors->left_out);
	return e->code;
}
