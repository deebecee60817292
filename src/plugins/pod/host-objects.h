/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/pod/host-objects.h - notes about host objects: objects created once per host
 *
 * What:  some objects that plugins create do not belong to one attachment: a
 *        bridge, the gateway link of a VLAN, the firewall's rules in FORWARD. A
 *        note is written for each, so that `hawser-plugin uninstall` removes
 *        exactly these objects.
 */
#ifndef PLUGINS_POD_HOST_OBJECTS_H
#define PLUGINS_POD_HOST_OBJECTS_H

#include <hawser/addr.h>
#include <hawser/err.h>

#define HOST_OBJECT_IPTABLES "iptables-rules" /* kind of a note about rules in FORWARD */

/*
 * Write a note; call this before the object is created. An earlier note with the same object name
 * is replaced.
 * @kind: "bridge" or "veth" for a link, or HOST_OBJECT_IPTABLES
 * @mac:  MAC address of the link; NULL: not compared when the link is removed
 */
int host_object_record(const char *kind, const char *name, const struct hw_mac *mac,
		       struct hw_err *e);

/*
 * Remove all objects that have a note, and print the name of each to standard output; then remove
 * unused locks and empty directories below the state directory. A failure does not stop the removal
 * of the remaining objects. The first error is returned; locks and directories are then kept. A
 * bridge that still has ports is not removed: -EBUSY.
 * @remove_rules: called for each note of kind HOST_OBJECT_IPTABLES; removes its rules. Must return
 *                1 if the rules were removed, 0 if they no longer existed, or a negative errno
 * Return: the number of removed objects
 */
int host_objects_remove(int (*remove_rules)(const char *name, struct hw_err *e), struct hw_err *e);

#endif
