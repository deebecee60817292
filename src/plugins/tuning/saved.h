/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/tuning/saved.h - the attributes that an interface had before tuning
 */
#ifndef PLUGINS_TUNING_SAVED_H
#define PLUGINS_TUNING_SAVED_H

#include <hawser/plugin.h>

#include "base/mem.h"

struct link;
struct tuning;

/* As upstream's file has them. */
struct saved {
	char *mac;
	bool has_promisc, promisc;
	int mtu;
	bool has_allmulti, allmulti;
	bool has_txqlen;
	int txqlen;
};

/* A file that is not there, or torn, says nothing. Return: 1 when there is one */
int saved_read(const struct hw_call *call, struct saved *ret, struct hw_err *e);
int saved_write(const struct hw_call *call, const struct saved *s, struct hw_err *e);
int saved_remove(const struct hw_call *call, struct hw_err *e);
/* What there is now of what will be changed, unless it says something already. */
void saved_fill(struct saved *s, const struct tuning *t, const struct link *link);
void saved_done(struct saved *s);

AUTO_VALUE_DEFINE(saved_done, struct saved);

#endif
