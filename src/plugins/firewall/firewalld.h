/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/firewall/firewalld.h - client for firewalld's D-Bus interface: sources of zones
 *
 * What:  adds an address to a zone of firewalld, until firewalld is restarted or
 *        reloaded. Whatever the zone allows is then allowed to the address.
 * How:   sd-bus of libsystemd, which is loaded at run time, and only if there is a
 *        system bus.
 */
#ifndef PLUGINS_FIREWALL_FIREWALLD_H
#define PLUGINS_FIREWALL_FIREWALLD_H

#include <hawser/addr.h>
#include <hawser/err.h>

#include "base/mem.h"

struct firewalld;

/* Connect to the system bus. Without a bus, *ret_firewalld is NULL; all functions except
 * firewalld_close() need one.
 * Return: 1 if firewalld is running, 0 if it is not, or if there is no bus */
int firewalld_open(struct firewalld **ret_firewalld, struct hw_err *e);
void firewalld_close(struct firewalld *firewalld);

/* Add an address to a zone. Succeeds if it is already there. */
int firewalld_add(struct firewalld *firewalld, const char *zone, const struct hw_ip *ip,
		  struct hw_err *e);
/* Remove an address from a zone. Succeeds if it is not there, or if the zone does not exist. */
int firewalld_remove(struct firewalld *firewalld, const char *zone, const struct hw_ip *ip,
		     struct hw_err *e);
/* -ENOENT if the address is not in the zone */
int firewalld_check(struct firewalld *firewalld, const char *zone, const struct hw_ip *ip,
		    struct hw_err *e);

AUTO_DEFINE(firewalld_close, struct firewalld);

#endif
