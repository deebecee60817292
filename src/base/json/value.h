/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/json/value.h - a JSON value as a tree
 *
 * What:  read, change and write JSON whose shape no table describes, such as
 *        a plugin's configuration on its way through us.
 * How:   a value is jansson's json_t; this file and field.c are the only ones
 *        that know. Values are reference counted: value_free() drops one.
 * Rules: keys keep their order, integers their 64 bits; depth and size are
 *        bounded before anything is allocated; the last duplicate wins.
 *        Setters take over the reference they are given.
 */
#ifndef BASE_JSON_VALUE_H
#define BASE_JSON_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hawser/field.h>

#include "base/err.h"
#include "base/mem.h"

#define VALUE_DEPTH_MAX 64
#define VALUE_SIZE_MAX	(4 << 20)
#define VALUE_COUNT_MAX (1 << 18) /* of members of all arrays and objects */

struct value;

void value_seed(void); /* once, at the start of a program; saves a read of /dev/urandom */

enum value_kind {
	VALUE_NULL,
	VALUE_BOOL,
	VALUE_INT,
	VALUE_REAL,
	VALUE_STRING,
	VALUE_ARRAY,
	VALUE_OBJECT,
};

/* -EINVAL: not JSON (with line and column); -EFBIG: too deep or too large. */
int value_parse(const char *json, size_t len, struct value **ret_value, struct hw_err *e);
struct value *value_literal(const char *json); /* our own text; asserts that it is JSON */
char *value_format(const struct value *v, unsigned flags); /* HW_JSON_PRETTY, HW_JSON_SORTED */
void value_free(struct value *v);
struct value *value_ref(struct value *v);
struct value *value_copy(const struct value *v); /* deep */
bool value_equal(const struct value *a, const struct value *b);

enum value_kind value_kind(const struct value *v);
const char *value_kind_name(enum value_kind kind); /* "a string", "a number" ... */

struct value *value_new_null(void);
struct value *value_new_bool(bool b);
struct value *value_new_int(int64_t n);
struct value *value_new_string(const char *s);
struct value *value_new_array(void);
struct value *value_new_object(void);

bool value_bool(const struct value *v); /* false unless true */
int64_t value_int(const struct value *v);
const char *value_string(const struct value *v); /* NULL unless a string */

/* object; borrowed references come out */
struct value *value_get(const struct value *object, const char *key); /* exact */
struct value *value_find(const struct value *object,
			 const char *key);	   /* as Go: case-folded, last */
bool value_same_key(const char *a, const char *b); /* as value_find() compares */
void value_set(struct value *object, const char *key, struct value *v);
void value_remove(struct value *object, const char *key);
/* for (void *i = NULL; value_next(obj, &i, &key, &v);) */
bool value_next(const struct value *object, void **i, const char **ret_key, struct value **ret_v);

/* array */
size_t value_count(const struct value *v); /* of an array or object */
struct value *value_at(const struct value *array, size_t i);
void value_append(struct value *array, struct value *v);

AUTO_DEFINE(value_free, struct value);

#endif
