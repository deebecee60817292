/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/rules.h - commands of hawser-plugin for our nftables rules: list, repair, remove
 */
#ifndef PLUGINS_RULES_H
#define PLUGINS_RULES_H

#include <hawser/plugin.h>

/* Print every element with its owner to standard output, as text or as a JSON array.
 * @plugins: array that ends with NULL */
int rules_list(const struct hw_plugin *const *plugins, bool json, struct hw_err *e);
/* Load our rules again if they were deleted or flushed, then add each attachment's elements again.
 * Return: the number of repaired attachments */
int rules_repair(const struct hw_plugin *const *plugins, struct hw_err *e);
/* Delete our tables, and print the name of each to standard output.
 * Return: the number of deleted tables; -EBUSY if a table still has elements of pods */
int rules_remove(struct hw_err *e);

#endif
