/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/json/yaml.h - YAML text as the trees of base/json/value.h
 *
 * What:  one document of YAML, for the same tables that decode JSON. An error that
 *        base/json/field.h finds in the tree gets its line with yml_line().
 * Rules: bounded in size, depth and members before anything is allocated; no
 *        aliases, no tags but !!str, no key twice, one document.
 *        Plain words are null, true, false or a decimal number where YAML 1.2 says so
 *        and every reader agrees; all else, such as yes, 0755 and 1.10, is text.
 *        The names here are yml_: yaml_ is libyaml's.
 */
#ifndef BASE_JSON_YAML_H
#define BASE_JSON_YAML_H

#include <stddef.h>

#include "base/err.h"
#include "base/json/value.h"

#define YML_SIZE_MAX (1 << 20)

/* An empty document is null. -EINVAL, -EFBIG with line and column in the message. */
int yml_parse(const char *text, size_t len, struct value **ret_value, struct hw_err *e);
/* The line, from 1 on, of the value that a message of base/json/field.h begins with, such as
 * "plugins[1].mtu: expected ..."; of what is around it, if it is not there itself. */
size_t yml_line(const char *text, size_t len, const char *message);

#endif
