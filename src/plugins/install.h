/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/install.h - hawser-plugin and its links in a directory of plugins
 */
#ifndef PLUGINS_INSTALL_H
#define PLUGINS_INSTALL_H

#include <stdbool.h>

#include <hawser/plugin.h>

int install_into(const char *dir, bool force, const struct hw_plugin *const *plugins,
		 struct hw_err *e);
int install_remove(const char *dir, struct hw_err *e);

#endif
