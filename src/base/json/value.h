/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/json/value.h - JSON values as trees
 *
 * What:  parse, change and format JSON that no field table describes, such as the
 *        configuration of a foreign plugin, which is only passed on.
 * How:   a value is jansson's json_t, but only value.c depends on that. Values are
 *        reference counted: value_free() drops one reference.
 * Rules: keys keep their order. Integers have 64 bits. Size, depth and number of
 *        values are checked before memory is allocated. The last duplicate of a
 *        key is used. value_set() and value_append() take over the caller's
 *        reference; functions that look up a member return a borrowed one.
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
#define VALUE_COUNT_MAX (1 << 18) /* members of all arrays and objects of a text */

struct value;

/* Seeds jansson's hash tables from the random bytes that the kernel gives every process. This saves
 * a read of /dev/urandom. Only main() may call it, at its start: the library must not change the
 * seed of the program that calls it. */
void value_seed(void);

/* From now on the memory of values is overwritten before it is freed, for programs whose texts contain
 * secrets. Only main() may call it, at its start. */
void value_wipe_freed(void);

enum value_kind {
	VALUE_NULL,
	VALUE_BOOL,
	VALUE_INT,
	VALUE_REAL,
	VALUE_STRING,
	VALUE_ARRAY,
	VALUE_OBJECT,
};

/* Parses one JSON value of any kind; white space around it is allowed. Return: 0; -EINVAL if the
 * text is malformed, with line and column in the message; -EFBIG if it exceeds a VALUE_ limit */
int value_parse(const char *json, size_t len, struct value **ret_value, struct hw_err *e);
/* Parses trusted text: a constant, or output of value_format(). No limits; malformed text is a
 * programming error and aborts. */
struct value *value_literal(const char *json);
/* flags: HW_JSON_PRETTY, HW_JSON_SORTED. Return: the text, without a newline at the end; to be
 * freed by the caller */
char *value_format(const struct value *v, unsigned flags);
void value_free(struct value *v); /* accepts NULL */
struct value *value_ref(struct value *v);
struct value *value_copy(const struct value *v);		/* deep copy */
bool value_equal(const struct value *a, const struct value *b); /* the order of keys is ignored */

enum value_kind value_kind(const struct value *v);
const char *value_kind_name(enum value_kind kind); /* "a string", "a number" ... */

struct value *value_new_null(void);
struct value *value_new_bool(bool b);
struct value *value_new_int(int64_t n);
struct value *value_new_string(const char *s); /* invalid UTF-8 is replaced by U+FFFD */
struct value *value_new_array(void);
struct value *value_new_object(void);

bool value_bool(const struct value *v);		 /* false if the value is not a boolean */
int64_t value_int(const struct value *v);	 /* 0 if the value is not an integer */
const char *value_string(const struct value *v); /* NULL if the value is not a string */

/* Objects */
/* The member with exactly this key. NULL: not found */
struct value *value_get(const struct value *object, const char *key);
/* The member that Go's encoding/json would decode into a field of this name: the last one whose key
 * is equal if case is ignored. NULL: not found */
struct value *value_find(const struct value *object, const char *key);
bool value_keys_match(const char *a, const char *b); /* compares like value_find() */
/* Adds a member, or replaces its value. */
void value_set(struct value *object, const char *key, struct value *v);
void value_remove(struct value *object, const char *key); /* a missing key is ignored */
/* for (void *i = NULL; value_next(object, &i, &key, &v);) ...
 * Iterates in the order of the keys. ret_key and ret_v may be NULL. The object must not be changed
 * during the iteration. Return: false after the last member, or if @object is not an object */
bool value_next(const struct value *object, void **i, const char **ret_key, struct value **ret_v);

/* Arrays */
size_t value_count(const struct value *v); /* number of members of an array or object, else 0 */
struct value *value_at(const struct value *array, size_t i); /* NULL beyond the end */
void value_append(struct value *array, struct value *v);

AUTO_DEFINE(value_free, struct value);

#endif
