/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/service/error-status.h - gRPC status codes for the errors of a call
 *
 * What:  the one place where errors of the store, of pulls and of networks get the status
 *        code that clients see. The meaning of each errno is described at struct job_failed
 *        in image/protocol/job.h.
 */
#ifndef CRI_SERVICE_ERROR_STATUS_H
#define CRI_SERVICE_ERROR_STATUS_H

#include "base/err.h"

/* Sets the gRPC status code of an error. The messages of some errors get a text in front that clients
 * look for. An error that has a status code does not change. */
void error_status_set(struct hw_err *e);

#endif
