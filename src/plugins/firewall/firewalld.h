/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/firewall/firewalld.h - client for firewalld's D-Bus interface: sources of zones
 *
 * What:  adds an address to a zone of firewalld as a source. The rules of the zone
 *        then apply to the address, until firewalld is restarted or reloaded.
 * How:   uses sd-bus of libsystemd. The library is loaded at run time, and only if
 *        the host has a system bus.
 */
#ifndef PLUGINS_FIREWALL_FIREWALLD_H
#define PLUGINS_FIREWALL_FIREWALLD_H

#include <hawser/addr.h>
#include <hawser/err.h>

#include "base/mem.h"

struct firewalld;

/* Connect to the system bus. If there is no bus, *ret_firewalld is set to NULL; only
 * firewalld_close() accepts NULL.
 * Return: 1 if firewalld is running, 0 if it is not running or if there is no bus */
int firewalld_open(struct firewalld **ret_firewalld, struct hw_err *e);
void firewalld_close(struct firewalld *firewalld);

/* Add an address to a zone. Succeeds if the zone already has it. */
int firewalld_add(struct firewalld *firewalld, const char *zone, const struct hw_ip *ip,
		  struct hw_err *e);
/* Remove an address from a zone. Succeeds if the zone does not have it, or does not exist. */
int firewalld_remove(struct firewalld *firewalld, const char *zone, const struct hw_ip *ip,
		     struct hw_err *e);
/* Return: 0; -ENOENT if the address is not in the zone */
int firewalld_check(struct firewalld *firewalld, const char *zone, const struct hw_ip *ip,
		    struct hw_err *e);

AUTO_DEFINE(firewalld_close, struct firewalld);

#endif
