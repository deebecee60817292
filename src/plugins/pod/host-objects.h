/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/pod/host-objects.h - notes about host objects: objects created once per host
 *
 * What:  some objects that plugins create do not belong to one attachment: a
 *        bridge, the gateway link of a VLAN, rules in chains of iptables. A
 *        note is written for each, so that `hawser-plugin uninstall` removes
 *        exactly these objects.
 * How:   the note about a link has its index, which no other link ever gets. It
 *        is not known before the link exists: until then the note is unfinished,
 *        and means only a link that is down, as after its creation.
 */
#ifndef PLUGINS_POD_HOST_OBJECTS_H
#define PLUGINS_POD_HOST_OBJECTS_H

#include <hawser/err.h>

struct link;
struct link_new;
struct rtnl;

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
 * Write a note about an object that is not a link; call this before the object is created. An earlier
 * note with the same object name is replaced.
 * @kind: HOST_OBJECT_...
 */
int host_object_record(const char *kind, const char *name, struct hw_err *e);

/*
 * Create a link of the host, and write a note about it. Call this function also for a link that exists
 * and is down: an ADD that was killed, or that runs at the same time, may just have created it.
 * @new:      the link to create
 * @ret_link: the link, which another program may have created instead, and of any kind
 * Return: 1 if created, 0 if a link with the name existed, or a negative errno
 */
int host_object_create_link(struct rtnl *nl, const struct link_new *new, struct link *ret_link,
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
