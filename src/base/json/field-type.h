/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/json/field-type.h - what base/json/field.c needs to know of a type
 */
#ifndef BASE_JSON_FIELD_TYPE_H
#define BASE_JSON_FIELD_TYPE_H

#include <hawser/field.h>

#include "base/err.h"
#include "base/json/value.h"

/* The way from the outermost object to the value at hand. */
struct field_where {
	const struct field_where *up;
	const struct hw_field *field; /* what decodes the value; NULL for a plain string or bool */
	const char *key;	      /* NULL: entry number index */
	size_t index;
};

struct field_type {
	const char *name; /* for people */
	size_t size;	  /* of the member; 0: f->sub describes it */
	int (*decode)(const struct field_where *w, const struct value *v, void *p,
		      struct hw_err *e);
	struct value *(*encode)(const struct hw_field *f, const void *p); /* NULL: empty */
	const char *empty; /* how to say that, as JSON text */
	void (*clear)(const struct hw_field *f, void *p);
	int64_t min, max; /* of numbers */
};

extern const struct field_type field_types[]; /* by enum hw_type */

void field_limits(const struct hw_field *f, int64_t *ret_min, int64_t *ret_max);
int field_fail(const struct field_where *w, struct hw_err *e, const char *what);
int field_expect(const struct field_where *w, enum value_kind kind, const struct value *v,
		 struct hw_err *e);

/* in field.c; objects and lists of them come back to it */
int field_decode_at(const struct field_where *w, const struct hw_field *table,
		    const struct value *v, void *out, struct hw_err *e);

#endif
