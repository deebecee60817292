/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/pod/host-objects.h - notes about host objects: objects created once per host
 *
 * What:  some objects that plugins create do not belong to one attachment: a
 *        bridge, the gateway link of a VLAN, rules in chains of iptables. A
 *        note is written for each, so that `hawser-plugin uninstall` removes
 *        exactly these objects.
 */
#ifndef PLUGINS_POD_HOST_OBJECTS_H
#define PLUGINS_POD_HOST_OBJECTS_H

#include <hawser/addr.h>
#include <hawser/err.h>

/* Kinds of notes about objects that are not links */
#define HOST_OBJECT_IPTABLES   "iptables-rules"	     /* the firewall's rules in FORWARD */
#define HOST_OBJECT_FORWARD    "iptables-chain"	     /* chain FORWARD */
#define HOST_OBJECT_MASQUERADE "iptables-masquerade" /* ipMasq's rule in POSTROUTING */

/* How to remove objects of a kind. remove() must return 1 if the object was removed, 0 if it no longer
 * existed or is kept, or a negative errno. */
struct host_object_kind {
	const char *kind;
	int (*remove)(const char *name, struct hw_err *e);
};

/*
 * Write a note; call this before the object is created. An earlier note with the same object name
 * is replaced.
 * @kind: "bridge" or "veth" for a link, or HOST_OBJECT_...
 * @mac:  MAC address of the link; NULL: not compared when the link is removed
 */
int host_object_record(const char *kind, const char *name, const struct hw_mac *mac,
		       struct hw_err *e);

/*
 * Remove all objects that have a note, and print the name of each to standard output; then remove
 * unused locks and empty directories below the state directory. A failure does not stop the removal
 * of the remaining objects. The first error is returned; locks and directories are then kept. A
 * bridge that still has ports is not removed: -EBUSY.
 * @kinds: the kinds other than links, in the order in which to remove them; the last entry is zero
 * Return: the number of removed objects
 */
int host_objects_remove(const struct host_object_kind *kinds, struct hw_err *e);

#endif
