/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hawser/err.h - error structs on the caller's stack; nothing to free
 *
 * What:  every function that can fail takes a struct hw_err * as its last
 *        argument and returns a negative errno; the text is in e->msg.
 * Rules: the pointer must not be NULL. The struct is written only on failure, so
 *        it needs no initialisation before a call.
 */
#ifndef HAWSER_ERR_H
#define HAWSER_ERR_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Marks the symbols that the shared library exports. */
#define HW_PUBLIC __attribute__((visibility("default")))

/* The protocol that hw_err.wire belongs to: CNI code 7 must not be read as gRPC code 7. */
enum hw_domain {
	HW_DOMAIN_NONE,
	HW_DOMAIN_CNI,
	HW_DOMAIN_GRPC,
	HW_DOMAIN_HTTP,
};

/* CNI error codes (spec 1.1.0 "Error", upstream's additions 8 and 999, and one of our own) */
enum hw_cni_code {
	HW_CNI_UNKNOWN = 0,
	HW_CNI_INCOMPATIBLE_VERSION = 1,
	HW_CNI_UNSUPPORTED_FIELD = 2,
	HW_CNI_UNKNOWN_CONTAINER = 3,
	HW_CNI_INVALID_ENV = 4,
	HW_CNI_IO_FAILURE = 5,
	HW_CNI_DECODE_FAILURE = 6,
	HW_CNI_INVALID_CONFIG = 7,
	HW_CNI_INVALID_NETNS = 8,
	HW_CNI_TRY_AGAIN = 11,
	HW_CNI_NOT_AVAILABLE = 50,
	HW_CNI_LIMITED = 51,
	HW_CNI_INTERNAL = 999,
	/* Our own: ADD of an attachment that exists; nothing was changed. Call DEL first. */
	HW_CNI_ALREADY_ATTACHED = 1017,
};

struct hw_err {
	int code;	       /* negative errno */
	enum hw_domain domain; /* protocol of wire */
	int wire;	       /* error code of that protocol */
	char msg[2048];	       /* what failed, on which object, and why */
	char details[2048];    /* further explanation, or "" */
};

/**
 * hw_err_set() - set an error that a system call reported
 * @e:   the error to fill
 * @r:   negative errno
 * @fmt: what failed; ": " and the text of the errno are appended
 *
 * Return: @r
 */
HW_PUBLIC int hw_err_set(struct hw_err *e, int r, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/**
 * hw_err_text() - set an error with a given text
 * @e:   the error to fill
 * @r:   negative errno
 * @fmt: the complete text; nothing is appended
 *
 * Return: @r
 */
HW_PUBLIC int hw_err_text(struct hw_err *e, int r, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/**
 * hw_err_cni() - set an error with a CNI code
 * @e:    the error to fill
 * @wire: the CNI code: enum hw_cni_code, or a code of 100 or above that the plugin defines
 * @fmt:  the complete text
 *
 * Return: the negative errno that is closest to @wire
 */
HW_PUBLIC int hw_err_cni(struct hw_err *e, int wire, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/**
 * hw_err_details() - set the details of an error
 * @e:   the error
 * @fmt: the new details; the arguments may include the old details
 *
 * Return: e->code
 */
HW_PUBLIC int hw_err_details(struct hw_err *e, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/**
 * hw_err_ctx() - add context in front of the message: "CONTEXT: MSG"
 * @e:   the error
 * @fmt: the context
 *
 * Return: e->code
 */
HW_PUBLIC int hw_err_ctx(struct hw_err *e, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/**
 * hw_err_wire() - get the CNI code of an error
 *
 * Return: e->wire if the error has a CNI code, else HW_CNI_INTERNAL
 */
HW_PUBLIC int hw_err_wire(const struct hw_err *e);

/**
 * hw_err_format() - format an error as libcni prints it: "msg" or "msg; details"
 * @e:    the error
 * @buf:  receives the text, truncated if it does not fit
 * @size: size of @buf
 *
 * Return: @buf
 */
HW_PUBLIC const char *hw_err_format(const struct hw_err *e, char *buf, size_t size);

#ifdef __cplusplus
}
#endif

#endif
