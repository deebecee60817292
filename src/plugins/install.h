/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/install.h - installation of hawser-plugin and its links in a plugin directory
 */
#ifndef PLUGINS_INSTALL_H
#define PLUGINS_INSTALL_H

#include <stdbool.h>

#include <hawser/plugin.h>

/*
 * Copy the running binary to a directory, with a symbolic link for each plugin.
 * @force:   replace foreign files
 * @plugins: NULL at the end
 * Return: 0; -EEXIST if foreign files exist and @force is not set: nothing is changed
 */
int install_into(const char *dir, bool force, const struct hw_plugin *const *plugins,
		 struct hw_err *e);
/*
 * Remove the links to the directory's hawser-plugin, also those of plugins that this version does not
 * have, and then the binary. If there are no such links, hawser-plugin was not put there by install
 * and stays.
 * Return: how many links were removed
 */
int install_remove(const char *dir, struct hw_err *e);

#endif
