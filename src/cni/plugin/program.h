/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/plugin/program.h - main() of a plugin
 */
#ifndef CNI_PLUGIN_PROGRAM_H
#define CNI_PLUGIN_PROGRAM_H

#include <hawser/plugin.h>

/*
 * @siblings: all plugins of this binary, NULL at the end; may be NULL
 *
 * Return: the exit status
 */
int program_main(int argc, char **argv, const struct hw_plugin *plugin,
		 const struct hw_plugin *const *siblings);

#endif
