/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/json/field-type.h - the types of field tables, for base/json/field.c
 */
#ifndef BASE_JSON_FIELD_TYPE_H
#define BASE_JSON_FIELD_TYPE_H

#include <hawser/field.h>

#include "base/err.h"
#include "base/json/value.h"

/* The path from the outermost object to a value, for messages. A NULL pointer stands for the
 * outermost object. */
struct field_path {
	const struct field_path *up;
	const struct hw_field *field; /* table entry; NULL for a member of a list or map */
	const char *key;	      /* NULL: entry number .index of a list */
	size_t index;
};

struct field_type {
	const char *name; /* for the documentation */
	size_t size;	  /* size of the member; 0: f->sub describes the member */
	/* The caller zeroes the member first. After a failure, clear() frees the member. */
	int (*decode)(const struct field_path *path, const struct value *v, void *p,
		      struct hw_err *e);
	/* Return: NULL if the member is empty */
	struct value *(*encode)(const struct hw_field *f, const void *p);
	const char *empty; /* the empty value as JSON text */
	void (*clear)(const struct hw_field *f, void *p);
	int64_t min, max; /* limits of a number type */
};

extern const struct field_type field_types[]; /* indexed by enum hw_type */

/* The limits of a number field, both inclusive. */
void field_limits(const struct hw_field *f, int64_t *ret_min, int64_t *ret_max);
/* Sets an error such as "plugins[1].mtu: PROBLEM". Return: -EINVAL */
int field_fail(const struct field_path *path, struct hw_err *e, const char *problem);
/* Return: 0 if the value is of this kind; -EINVAL with "PATH: expected ..., got ..." if not */
int field_expect(const struct field_path *path, enum value_kind kind, const struct value *v,
		 struct hw_err *e);

/* Defined in field.c. The decoders of objects and lists call it for the objects in them.
 * Return: 0, or -EINVAL; after a failure *out needs no hw_field_clear() */
int field_decode_at(const struct field_path *path, const struct hw_field *table,
		    const struct value *v, void *out, struct hw_err *e);

#endif
