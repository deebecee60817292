/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/rules.h - our nftables rules, for people: list, repair, remove
 */
#ifndef PLUGINS_RULES_H
#define PLUGINS_RULES_H

#include <hawser/plugin.h>

/* Which element is whose, to standard output. @plugins: NULL at the end */
int rules_list(const struct hw_plugin *const *plugins, bool json, struct hw_err *e);
/* Put back what somebody has flushed. Return: of how many attachments */
int rules_repair(const struct hw_plugin *const *plugins, struct hw_err *e);
/* Remove our tables, each told to standard output. Return: how many; -EBUSY while pods have elements */
int rules_remove(struct hw_err *e);

#endif
