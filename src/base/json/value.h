/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/json/value.h - JSON values as trees
 *
 * What:  parse, change and format JSON that no field table describes, such as the
 *        configuration of a plugin that we only pass on.
 * How:   a value is jansson's json_t; only value.c knows. Values are reference
 *        counted: value_free() drops one reference.
 * Rules: keys keep their order, integers have 64 bits; size, depth and number of
 *        values are bounded before anything is allocated; the last duplicate key
 *        wins. value_set() and value_append() take over the reference they are
 *        given; the functions that look up a member return a borrowed one.
 *        The value_new_ functions never return NULL.
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
#define VALUE_COUNT_MAX (1 << 18) /* members of all arrays and objects together */

struct value;

/* Seeds the hash tables from the random bytes that the kernel gives every process; saves a read of
 * /dev/urandom. For the start of main() only: the library must not change the jansson of a host
 * program. */
void value_seed(void);

enum value_kind {
	VALUE_NULL,
	VALUE_BOOL,
	VALUE_INT,
	VALUE_REAL,
	VALUE_STRING,
	VALUE_ARRAY,
	VALUE_OBJECT,
};

/* Parses one JSON value of any kind, with white space around it. Return: 0; -EINVAL if it is
 * malformed, with line and column in the message; -EFBIG if it exceeds a limit above */
int value_parse(const char *json, size_t len, struct value **ret_value, struct hw_err *e);
/* Parses trusted text: a constant, or output of value_format(). No limits; malformed text is a
 * programming error and aborts. */
struct value *value_literal(const char *json);
/* flags: HW_JSON_PRETTY, HW_JSON_SORTED. Return: the text, without a newline at the end; to be
 * freed by the caller */
char *value_format(const struct value *v, unsigned flags);
void value_free(struct value *v); /* accepts NULL */
struct value *value_ref(struct value *v);
struct value *value_copy(const struct value *v);		/* deep */
bool value_equal(const struct value *a, const struct value *b); /* the order of keys is ignored */

enum value_kind value_kind(const struct value *v);
const char *value_kind_name(enum value_kind kind); /* "a string", "a number" ... */

struct value *value_new_null(void);
struct value *value_new_bool(bool b);
struct value *value_new_int(int64_t n);
struct value *value_new_string(const char *s); /* invalid UTF-8 is replaced by U+FFFD */
struct value *value_new_array(void);
struct value *value_new_object(void);

bool value_bool(const struct value *v);		 /* false if it is not a boolean */
int64_t value_int(const struct value *v);	 /* 0 if it is not an integer */
const char *value_string(const struct value *v); /* NULL if it is not a string */

/* Objects */
struct value *value_get(const struct value *object, const char *key); /* exact; NULL: not found */
/* The member that Go's encoding/json would decode into a field of this name: the last one whose key
 * is equal after case folding. NULL: not found */
struct value *value_find(const struct value *object, const char *key);
bool value_keys_match(const char *a, const char *b); /* as value_find() compares */
void value_set(struct value *object, const char *key, struct value *v); /* adds or replaces */
void value_remove(struct value *object, const char *key); /* a missing key is ignored */
/* for (void *i = NULL; value_next(object, &i, &key, &v);) ...
 * In the order of the keys. ret_key and ret_v may be NULL. The object must not be changed during
 * the iteration. Return: false after the last member, and if it is not an object */
bool value_next(const struct value *object, void **i, const char **ret_key, struct value **ret_v);

/* Arrays */
size_t value_count(const struct value *v); /* members of an array or object; else 0 */
struct value *value_at(const struct value *array, size_t i); /* NULL beyond the end */
void value_append(struct value *array, struct value *v);

AUTO_DEFINE(value_free, struct value);

#endif
