/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/serve.h - hawser-plugin serve: run plugins for a daemon
 */
#ifndef PLUGINS_SERVE_H
#define PLUGINS_SERVE_H

#include <hawser/plugin.h>

#include "base/err.h"

/* Serves until the daemon closes the socket, which is standard input. @plugins: all plugins of this
 * binary, NULL at the end. Return: 0, or a negative errno if it could not start */
int serve_run(const struct hw_plugin *const *plugins, struct hw_err *e);

#endif
