/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/json/field-type.h - the types of field tables, for base/json/field.c
 */
#ifndef BASE_JSON_FIELD_TYPE_H
#define BASE_JSON_FIELD_TYPE_H

#include <hawser/field.h>

#include "base/err.h"
#include "base/json/value.h"

/* The path from the outermost object to a value, for messages. NULL is the outermost object. */
struct field_path {
	const struct field_path *up;
	const struct hw_field *field; /* its table entry; NULL for a member of a list or map */
	const char *key;	      /* NULL: the entry number index of a list */
	size_t index;
};

struct field_type {
	const char *name; /* for people */
	size_t size;	  /* of the member; 0: f->sub describes it */
	/* The member is zeroed before. On failure it holds only what clear() frees. */
	int (*decode)(const struct field_path *path, const struct value *v, void *p,
		      struct hw_err *e);
	/* Return: NULL if the member is empty */
	struct value *(*encode)(const struct hw_field *f, const void *p);
	const char *empty; /* the empty value as JSON text */
	void (*clear)(const struct hw_field *f, void *p);
	int64_t min, max; /* of numbers */
};

extern const struct field_type field_types[]; /* by enum hw_type */

/* The limits of a number, both inclusive. */
void field_limits(const struct hw_field *f, int64_t *ret_min, int64_t *ret_max);
/* Fails with "plugins[1].mtu: PROBLEM". Return: -EINVAL */
int field_fail(const struct field_path *path, struct hw_err *e, const char *problem);
/* Return: 0 if the value is of this kind; -EINVAL with "PATH: expected ..., got ..." if not */
int field_expect(const struct field_path *path, enum value_kind kind, const struct value *v,
		 struct hw_err *e);

/* In field.c; the decoders of objects and lists call it for what they contain.
 * Return: 0; -EINVAL with nothing left in *out that needs hw_field_clear() */
int field_decode_at(const struct field_path *path, const struct hw_field *table,
		    const struct value *v, void *out, struct hw_err *e);

#endif
