/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/plugins.h - the plugins of hawser-plugin, one file each
 */
#ifndef PLUGINS_PLUGINS_H
#define PLUGINS_PLUGINS_H

#include <hawser/plugin.h>

extern const struct hw_plugin bandwidth_plugin;
extern const struct hw_plugin bridge_plugin;
extern const struct hw_plugin firewall_plugin;
extern const struct hw_plugin host_local_plugin;
extern const struct hw_plugin loopback_plugin;
extern const struct hw_plugin noop_plugin;
extern const struct hw_plugin portmap_plugin;
extern const struct hw_plugin ptp_plugin;
extern const struct hw_plugin static_plugin;
extern const struct hw_plugin tuning_plugin;

#endif
