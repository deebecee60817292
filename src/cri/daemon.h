/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/daemon.h - the hawser-cri daemon
 */
#ifndef CRI_DAEMON_H
#define CRI_DAEMON_H

#include "base/err.h"
#include "cri/config/config.h"

/* Serves until SIGTERM or SIGINT. @source must stay valid; takes ownership of the
 * reference to @config. Return: 0 after a signal; negative errno if the daemon could not start */
int daemon_run(const struct config_source *source, struct config *config, struct hw_err *e);

#endif
