/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/name.h - validation of network names, container IDs and interface names
 */
#ifndef CNI_NAME_H
#define CNI_NAME_H

#include <stdbool.h>

#include "base/err.h"

/* Return: true if @s matches [a-zA-Z0-9][a-zA-Z0-9_.-]* */
bool name_is_valid(const char *s);

/* Each function returns 0, or a negative errno with upstream's text and the CNI code named here. */
int name_check_network(const char *name, struct hw_err *e);  /* code 7 */
int name_check_container(const char *id, struct hw_err *e);  /* code 3 if missing, else 4 */
int name_check_ifname(const char *ifname, struct hw_err *e); /* code 4 */

#endif
