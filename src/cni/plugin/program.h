/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/plugin/program.h - a plugin call as a program: arguments, environment, standard streams
 */
#ifndef CNI_PLUGIN_PROGRAM_H
#define CNI_PLUGIN_PROGRAM_H

#include <hawser/plugin.h>

/* Return: the exit status. @siblings: the plugins of this binary, NULL at the end, or NULL */
int program_main(int argc, char **argv, const struct hw_plugin *plugin,
		 const struct hw_plugin *const *siblings);

#endif
