/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/json/field.h - the tables of <hawser/field.h> on values that are already read
 */
#ifndef BASE_JSON_FIELD_H
#define BASE_JSON_FIELD_H

#include <hawser/field.h>

#include "base/err.h"
#include "base/json/value.h"

int field_decode(const struct hw_field *table, const struct value *v, void *out, struct hw_err *e);
struct value *field_encode(const struct hw_field *table, const void *in);
/* For what people write: -EINVAL for a key that no table names, letter by letter. */
int field_known(const struct hw_field *table, const struct value *v, struct hw_err *e);
void field_map_free(struct hw_map *map);

#endif
