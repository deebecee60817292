/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/install.h - installation of hawser-plugin and its symbolic links in a plugin directory
 */
#ifndef PLUGINS_INSTALL_H
#define PLUGINS_INSTALL_H

#include <stdbool.h>

#include <hawser/plugin.h>

/*
 * Copy the running binary to a directory, with a symbolic link for each plugin.
 * @force:   replace foreign files (install.c defines "foreign")
 * @plugins: array that ends with NULL
 * Return: 0; -EEXIST if a name is used by a directory, or by a foreign file and @force is not set.
 *         Nothing is changed in that case.
 */
int install_into(const char *dir, bool force, const struct hw_plugin *const *plugins,
		 struct hw_err *e);
/*
 * Remove all symbolic links to hawser-plugin in the directory, including those for plugins that
 * this version does not contain. Then remove the binary. If the directory has no such link, the
 * binary was not installed by install_into() and is kept.
 * Return: the number of removed links
 */
int install_remove(const char *dir, struct hw_err *e);

#endif
