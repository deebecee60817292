/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/pod/host-objects.h - notes about host objects: objects created once per host
 *
 * What:  notes the objects that plugins create and that belong to no attachment
 *        (a bridge, its gateway in a VLAN, the firewall's rules in FORWARD), so
 *        that `hawser-plugin uninstall` removes exactly these.
 */
#ifndef PLUGINS_POD_HOST_OBJECTS_H
#define PLUGINS_POD_HOST_OBJECTS_H

#include <hawser/addr.h>
#include <hawser/err.h>

#define HOST_OBJECT_IPTABLES "iptables-rules" /* kind of a note about rules in FORWARD */

/*
 * Write a note, before the object is created. It replaces an earlier note of the same name.
 * @kind: "bridge" or "veth", the kind of a link, or HOST_OBJECT_IPTABLES
 * @mac:  MAC address of the link; NULL: any
 */
int host_object_record(const char *kind, const char *name, const struct hw_mac *mac,
		       struct hw_err *e);

/*
 * Remove all objects that have a note, and print each to standard output; then remove unused locks
 * and empty directories below the state directory. A failure does not keep the other objects, and
 * the first one is returned: -EBUSY if a bridge has ports, which is then kept.
 * @remove_rules: removes the rules of a note of kind HOST_OBJECT_IPTABLES. Return: 1 if removed, 0 if
 *                they no longer existed
 * Return: how many objects were removed
 */
int host_objects_remove(int (*remove_rules)(const char *name, struct hw_err *e), struct hw_err *e);

#endif
