/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/json/field.h - the field tables of <hawser/field.h> applied to parsed values
 */
#ifndef BASE_JSON_FIELD_H
#define BASE_JSON_FIELD_H

#include <hawser/field.h>

#include "base/err.h"
#include "base/json/value.h"

/* Decodes a value into a struct, like hw_field_decode(). Return: 0; -EINVAL with the path of the
 * invalid key in the message: "plugins[1].mtu: ..." */
int field_decode(const struct hw_field *table, const struct value *v, void *out, struct hw_err *e);
/* Encodes a struct, like hw_field_encode(). Return: the object, owned by the caller */
struct value *field_encode(const struct hw_field *table, const void *in);
/* Checks that the table has every key of an object and of the objects in it, in exactly the same
 * case. For configuration files. Values of a wrong type are accepted here; field_decode() rejects
 * them.
 * Return: 0; -EINVAL with the path of the first unknown key in the message */
int field_check_known(const struct hw_field *table, const struct value *v, struct hw_err *e);
void field_map_free(struct hw_map *map); /* frees the strings and empties the map */

#endif
