/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/plugin/program.h - main() of a plugin
 */
#ifndef CNI_PLUGIN_PROGRAM_H
#define CNI_PLUGIN_PROGRAM_H

#include <hawser/plugin.h>

#include "cni/plugin/skel.h"

/*
 * @siblings: all plugins of this binary, NULL at the end; may be NULL
 *
 * Return: the exit status
 */
int program_main(int argc, char **argv, const struct hw_plugin *plugin,
		 const struct hw_plugin *const *siblings);

/* The parts of program_main(), for a process that calls plugins itself: what it does first, and a
 * request from the environment, without input. */
void program_init(void);
struct skel_request program_request(const struct hw_plugin *const *siblings);

/*
 * Finds a plugin that can be called without exec: a plugin of this binary, whose file is this binary.
 * @plugins: all plugins of this binary, NULL at the end; may be NULL
 * @self:    the file of this binary, which a long-lived process must remember: its path may lead to
 *           another file by now. NULL: look it up
 * @path:    the file of the plugin
 *
 * Return: the plugin; NULL if the file must be executed
 */
const struct hw_plugin *program_find(const struct hw_plugin *const *plugins,
				     const struct stat *self, const char *name, const char *path);

#endif
