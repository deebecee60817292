/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/json/yaml.h - YAML parsed into the values of base/json/value.h
 *
 * What:  parses one YAML document for the same field tables that decode JSON. For
 *        an error message of base/json/field.h, yml_line() finds the line.
 * Rules: size, depth and number of members are limited. Aliases, tags other than
 *        !!str, duplicate keys and further documents are rejected. So are U+0085,
 *        U+2028 and U+2029, which are line breaks in YAML 1.1 only; escape sequences
 *        for them are accepted.
 *        A plain scalar is read as null, true, false or a decimal integer only if it
 *        is one in YAML 1.2 and in all YAML parsers. All other plain scalars, such
 *        as yes, 0755 and 1.10, are strings.
 *        The prefix is yml_, because libyaml uses yaml_.
 */
#ifndef BASE_JSON_YAML_H
#define BASE_JSON_YAML_H

#include <stddef.h>

#include "base/err.h"
#include "base/json/value.h"

#define YML_SIZE_MAX (1 << 20)

/* Parses one document; an empty document is null. Return: 0 with a value owned by the caller;
 * -EINVAL if the text is malformed or unsupported YAML, -EFBIG if it exceeds a limit. The message
 * has line and column, unless the text is too large. */
int yml_parse(const char *text, size_t len, struct value **ret_value, struct hw_err *e);
/* Finds the line of the value that an error message of base/json/field.h refers to, such as
 * "plugins[1].mtu: expected ...". yml_parse() must have accepted @text.
 * Return: the line number, from 1. If the value is not in the text, the line of its nearest parent;
 * 1 if there is no parent in the text */
size_t yml_line(const char *text, size_t len, const char *message);

#endif
