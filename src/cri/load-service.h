/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/load-service.h - hawser.v1.Images/Load: images out of an archive
 */
#ifndef CRI_LOAD_SERVICE_H
#define CRI_LOAD_SERVICE_H

#include "cri/daemon.h"

int load_serve(struct daemon *d, struct rpc_call *call, const ProtobufCMessage *message,
	       struct hw_err *e);

#endif
