/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/service/load.h - hawser.v1.Images/Load: images out of an archive
 */
#ifndef CRI_SERVICE_LOAD_H
#define CRI_SERVICE_LOAD_H

#include "cri/daemon.h"

int load_serve(struct daemon *d, struct rpc_call *call, const ProtobufCMessage *message,
	       struct hw_err *e);

#endif
