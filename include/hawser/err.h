/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hawser/err.h - one error, on the caller's stack, with nothing to free
 *
 * What:  every function that can fail takes a struct hw_err * as its last
 *        argument and returns a negative errno; the text is in e->msg.
 * Rules: the pointer is never NULL; the struct is written only on failure,
 *        so it needs no initialisation before a call.
 */
#ifndef HAWSER_ERR_H
#define HAWSER_ERR_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What the shared library shows; everything else in it is hidden. */
#define HW_PUBLIC __attribute__((visibility("default")))

/* Whose code hw_err.wire is: a CNI 7 must not read as a gRPC 7. */
enum hw_domain {
	HW_DOMAIN_NONE,
	HW_DOMAIN_CNI,
	HW_DOMAIN_GRPC,
	HW_DOMAIN_HTTP,
};

/* CNI error codes (spec 1.1.0 "Error", and upstream's additions 8 and 999) */
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
};

struct hw_err {
	int code;	       /* negative errno */
	enum hw_domain domain; /* whose code wire is */
	int wire;	       /* that domain's own code */
	char msg[2048];	       /* what was being done, to what, why it failed */
	char details[2048];    /* more of the same, or "" */
};

/**
 * hw_err_set() - an error that a system call reported
 * @e:   the error to fill
 * @r:   negative errno
 * @fmt: what was being done; ": " and the errno's text are added
 *
 * Return: @r
 */
HW_PUBLIC int hw_err_set(struct hw_err *e, int r, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/**
 * hw_err_text() - an error in our own words
 * @e:   the error to fill
 * @r:   negative errno, for programs
 * @fmt: the whole text, for people
 *
 * Return: @r
 */
HW_PUBLIC int hw_err_text(struct hw_err *e, int r, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/**
 * hw_err_cni() - an error with a CNI code
 * @e:    the error to fill
 * @wire: the CNI code, enum hw_cni_code or a plugin's own from 100 on
 * @fmt:  the whole text
 *
 * Return: the negative errno nearest to @wire
 */
HW_PUBLIC int hw_err_cni(struct hw_err *e, int wire, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/**
 * hw_err_details() - add details to an error just set
 * @e:   the error
 * @fmt: the details; they replace those there were, and may be made of them
 *
 * Return: e->code
 */
HW_PUBLIC int hw_err_details(struct hw_err *e, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/**
 * hw_err_ctx() - put what was being done in front: "CONTEXT: MSG"
 * @e:   the error
 * @fmt: what was being done
 *
 * Return: e->code
 */
HW_PUBLIC int hw_err_ctx(struct hw_err *e, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/**
 * hw_err_wire() - the CNI code of an error, whatever set it
 *
 * Return: e->wire in the CNI domain, else HW_CNI_INTERNAL
 */
HW_PUBLIC int hw_err_wire(const struct hw_err *e);

/**
 * hw_err_format() - "msg" or "msg; details", as libcni prints an error object
 * @e:    the error
 * @buf:  where the text goes, cut off where it does not fit
 * @size: of @buf
 *
 * Return: @buf
 */
HW_PUBLIC const char *hw_err_format(const struct hw_err *e, char *buf, size_t size);

#ifdef __cplusplus
}
#endif

#endif
