/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/plugins.h - the plugins that consist of a single file
 */
#ifndef PLUGINS_PLUGINS_H
#define PLUGINS_PLUGINS_H

#include <hawser/plugin.h>

extern const struct hw_plugin loopback_plugin;
extern const struct hw_plugin noop_plugin;
extern const struct hw_plugin ptp_plugin;
extern const struct hw_plugin static_plugin;

#endif
