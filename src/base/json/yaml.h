/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/json/yaml.h - YAML parsed into the values of base/json/value.h
 *
 * What:  parses one YAML document for the same field tables that decode JSON. For
 *        an error that base/json/field.h reports, yml_line() finds the line.
 * Rules: size, depth and number of members are bounded before anything is
 *        allocated. Aliases, tags other than !!str, duplicate keys and further
 *        documents are rejected.
 *        A plain scalar is null, true, false or a decimal integer only where YAML
 *        1.2 says so and all YAML parsers agree; everything else, such as yes, 0755
 *        and 1.10, is a string.
 *        The prefix is yml_, because yaml_ is libyaml's.
 */
#ifndef BASE_JSON_YAML_H
#define BASE_JSON_YAML_H

#include <stddef.h>

#include "base/err.h"
#include "base/json/value.h"

#define YML_SIZE_MAX (1 << 20)

/* An empty document is null. Return: 0 with a value owned by the caller; -EINVAL if the text is
 * malformed or unsupported YAML, -EFBIG if it exceeds a limit; the message has line and column */
int yml_parse(const char *text, size_t len, struct value **ret_value, struct hw_err *e);
/* Finds the line of the value that a message of base/json/field.h is about, such as
 * "plugins[1].mtu: expected ...". @text must be accepted by yml_parse().
 * Return: the line, from 1; if the value is not in the text, the line of its nearest parent, else
 * 1 */
size_t yml_line(const char *text, size_t len, const char *message);

#endif
