/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/service/error-status.c - gRPC status codes for the errors of a call
 */
#include "cri/service/error-status.h"

#include <errno.h>

#include "api/call.h"
#include "base/mem.h"
#include "rpc/grpc/status.h"

#define REGISTRY_UNAVAILABLE "RegistryUnavailable" /* kubelet shows it as the reason */

/* Other errors are INTERNAL. ENOENT is one of them: it means a missing file or program of this
 * machine; ENODATA is for an image that does not exist. UNIMPLEMENTED is for unknown calls only. */
static const struct {
	int code;
	enum status_code status;
	const char *text; /* put before the message, because clients look for it; or NULL */
} statuses[] = {
	{ -ECANCELED, STATUS_CANCELLED, NULL },
	{ -EINVAL, STATUS_INVALID_ARGUMENT, NULL },
	{ -ETIMEDOUT, STATUS_DEADLINE_EXCEEDED, NULL },
	{ -ENODATA, STATUS_NOT_FOUND, NULL },
	{ -ENOTUNIQ, STATUS_ALREADY_EXISTS, NULL },
	{ -ENETDOWN, STATUS_UNAVAILABLE, NULL },
	{ -EACCES, STATUS_PERMISSION_DENIED, NULL },
	{ -EUSERS, STATUS_RESOURCE_EXHAUSTED, NULL },
	{ -ENOSPC, STATUS_RESOURCE_EXHAUSTED, API_DISK_FULL },
	{ -EDQUOT, STATUS_RESOURCE_EXHAUSTED, API_DISK_FULL },
	{ -EMFILE, STATUS_RESOURCE_EXHAUSTED, NULL },
	{ -ENFILE, STATUS_RESOURCE_EXHAUSTED, NULL },
	{ -EAGAIN, STATUS_RESOURCE_EXHAUSTED, NULL },
	{ -EMSGSIZE, STATUS_RESOURCE_EXHAUSTED, NULL },
	{ -EFBIG, STATUS_FAILED_PRECONDITION, NULL }, /* it does not help to try again */
	{ -EBUSY, STATUS_FAILED_PRECONDITION, NULL },
	{ -EPERM, STATUS_FAILED_PRECONDITION, NULL },
	{ -ENOKEY, STATUS_FAILED_PRECONDITION, NULL },
	{ -EOPNOTSUPP, STATUS_FAILED_PRECONDITION, NULL },
	{ -ECOMM, STATUS_UNAVAILABLE, REGISTRY_UNAVAILABLE },
	{ -EPROTO, STATUS_UNAVAILABLE, REGISTRY_UNAVAILABLE },
	{ -EBADMSG, STATUS_DATA_LOSS, NULL },
	{ -EKEYREJECTED, STATUS_UNAUTHENTICATED, NULL },
};

void error_status_set(struct hw_err *e)
{
	if (e->domain == HW_DOMAIN_GRPC)
		return;
	e->domain = HW_DOMAIN_GRPC;
	e->wire = STATUS_INTERNAL;
	for (size_t i = 0; i < ARRAY_SIZE(statuses); i++) {
		if (statuses[i].code != e->code)
			continue;
		e->wire = (int)statuses[i].status;
		if (statuses[i].text)
			err_ctx(e, "%s", statuses[i].text);
	}
}
