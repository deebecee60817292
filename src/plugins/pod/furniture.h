/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/pod/furniture.h - what is made once per host and stays
 *
 * What:  remembers what the plugins have made that belongs to no attachment (a
 *        bridge, its gateway on a VLAN, the firewall's rules in FORWARD), so that
 *        uninstall can remove just these.
 */
#ifndef PLUGINS_POD_FURNITURE_H
#define PLUGINS_POD_FURNITURE_H

#include <hawser/addr.h>
#include <hawser/err.h>

/* Before it is made. mac: what a link will have; NULL: any */
int furniture_note(const char *kind, const char *name, const struct hw_mac *mac, struct hw_err *e);

#define FURNITURE_IPTABLES "iptables-rules" /* the kind of a note about rules in FORWARD */

/* Remove everything that was noted, each told to standard output; then the state directory as far
 * as it holds nothing else. A bridge that has ports stays: -EBUSY.
 * @remove_rules: removes what a note of kind FURNITURE_IPTABLES names. Return: 1 when rules were
 * removed, 0 when they were gone already */
int furniture_remove(int (*remove_rules)(const char *name, struct hw_err *e), struct hw_err *e);

#endif
