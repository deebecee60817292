/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/name.h - valid names of networks, containers and interfaces
 */
#ifndef CNI_NAME_H
#define CNI_NAME_H

#include <stdbool.h>

#include "base/err.h"

/* Code 7 for names, 3 and 4 for ids and interface names, texts as upstream's. */
int name_check_network(const char *name, struct hw_err *e);
int name_check_container(const char *id, struct hw_err *e);
int name_check_ifname(const char *ifname, struct hw_err *e);
bool name_is_valid(const char *s);

#endif
