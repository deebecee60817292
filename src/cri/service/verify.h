/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/service/verify.h - hawser.v1.Images/Verify: hash again what is stored
 */
#ifndef CRI_SERVICE_VERIFY_H
#define CRI_SERVICE_VERIFY_H

#include "cri/service/service.h"

int verify_serve(struct daemon *d, struct rpc_call *call, const ProtobufCMessage *message,
		 struct hw_err *e);

#endif
