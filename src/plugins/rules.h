/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/rules.h - commands of hawser-plugin for our nftables rules: list, repair, remove
 */
#ifndef PLUGINS_RULES_H
#define PLUGINS_RULES_H

#include <hawser/plugin.h>

/* Print every element with its owner to standard output, as text or as a JSON array.
 * @plugins: NULL at the end */
int rules_list(const struct hw_plugin *const *plugins, bool json, struct hw_err *e);
/* Load our rules where they were deleted or flushed, then add each attachment's elements again.
 * Return: the number of attachments that were repaired */
int rules_repair(const struct hw_plugin *const *plugins, struct hw_err *e);
/* Delete our tables, and print each of them to standard output.
 * Return: the number of tables; -EBUSY while pods have elements */
int rules_remove(struct hw_err *e);

#endif
