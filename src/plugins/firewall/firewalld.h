/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/firewall/firewalld.h - sources of firewalld's zones, over D-Bus
 *
 * What:  an address in a zone as long as firewalld runs; whatever that zone allows
 *        is allowed to it.
 * How:   sd-bus of libsystemd, which is opened at run time, and only where there
 *        is a system bus.
 */
#ifndef PLUGINS_FIREWALL_FIREWALLD_H
#define PLUGINS_FIREWALL_FIREWALLD_H

#include <hawser/addr.h>
#include <hawser/err.h>

#include "base/mem.h"

struct firewalld;

/* Return: 1 when it runs; 0 when not, or when there is no bus. *ret is set in both cases, to NULL
 * without a bus; all calls but close() need one. */
int firewalld_open(struct firewalld **ret_firewalld, struct hw_err *e);
void firewalld_close(struct firewalld *firewalld);

/* In that zone already is a success. */
int firewalld_add(struct firewalld *firewalld, const char *zone, const struct hw_ip *ip,
		  struct hw_err *e);
/* Not in that zone, and no such zone, is a success. */
int firewalld_remove(struct firewalld *firewalld, const char *zone, const struct hw_ip *ip,
		     struct hw_err *e);
/* -ENOENT when it is not in that zone */
int firewalld_check(struct firewalld *firewalld, const char *zone, const struct hw_ip *ip,
		    struct hw_err *e);

AUTO_DEFINE(firewalld_close, struct firewalld);

#endif
