/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/save-service.h - hawser.v1.Images/Save: images as an archive
 */
#ifndef CRI_SAVE_SERVICE_H
#define CRI_SAVE_SERVICE_H

#include "cri/service.h"

int save_serve(struct daemon *d, struct rpc_call *call, const ProtobufCMessage *message,
	       struct hw_err *e);

#endif
