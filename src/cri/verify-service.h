/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/verify-service.h - hawser.v1.Images/Verify: hash again what is stored
 */
#ifndef CRI_VERIFY_SERVICE_H
#define CRI_VERIFY_SERVICE_H

#include "cri/service.h"

int verify_serve(struct daemon *d, struct rpc_call *call, const ProtobufCMessage *message,
		 struct hw_err *e);

#endif
