/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/service/save.h - hawser.v1.Images/Save: images as an archive
 */
#ifndef CRI_SERVICE_SAVE_H
#define CRI_SERVICE_SAVE_H

#include "cri/service/service.h"

int save_serve(struct daemon *d, struct rpc_call *call, const ProtobufCMessage *message,
	       struct hw_err *e);

#endif
