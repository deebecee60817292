/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/config/check.h - what the table of a configuration cannot say
 */
#ifndef CRI_CONFIG_CHECK_H
#define CRI_CONFIG_CHECK_H

#include "cri/config/config.h"

/* The error begins with the key that is wrong. */
int config_check(const struct config *c, struct hw_err *e);

#endif
