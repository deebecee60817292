/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/object.h - what pods and containers have in common: an ID, an owner, and a view for readers
 *
 * What:  a table of objects, by ID and by name. An operation owns an object from object_begin() to
 *        object_end(), so operations on one object exclude each other. Readers get an immutable list of
 *        views and never wait.
 * How:   struct pod and struct container start with a struct object, and their views with a struct
 *        object_view. A change of one object copies the list, and shares the views of all others.
 * Rules: the lock of the table is held for a few instructions, never while an operation works or waits.
 */
#ifndef POD_OBJECT_H
#define POD_OBJECT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/list.h"
#include "base/map.h"
#include "base/shared.h"

struct pods;

#define OBJECT_ID 65 /* 64 hex digits and a NUL */

/* Immutable. */
struct object_view {
	struct shared shared;
	char id[OBJECT_ID];
};

/* Immutable. */
struct object_list {
	struct shared shared;
	size_t n;
	const struct object_view *v[]; /* sorted by ID */
};

struct object_table {
	struct pods *pods; /* that the table is a part of */
	pthread_mutex_t lock;
	struct map *by_id;   /* struct object */
	struct map *by_name; /* struct object; not all objects have a name */
	struct slot list;    /* struct object_list */
};

struct object {
	struct shared shared; /* the table has a reference, and so has every operation */
	struct object_table *table;
	char id[OBJECT_ID];
	char *name; /* NULL: it has no name */

	/* protected by table->lock */
	bool busy;		/* an operation owns the object */
	bool gone;		/* not in the table any more */
	pthread_cond_t changed; /* busy has become false, or the object has otherwise changed */
	int cancel_fd;		/* eventfd that ends the running create; -1: none runs */
	struct hw_err *error;	/* of a failed create, for callers that wait for it; NULL: none */
	const struct object_view *view; /* NULL: not published yet */

	/* for finish.c, protected by its lock */
	struct list finish_link;
	int64_t finish_at;
	int finish_delay_ms;
};

void object_table_init(struct object_table *t, struct pods *pods);
void object_table_done(struct object_table *t);

/* Return: 64 random hex digits in @ret_id */
int object_new_id(char ret_id[OBJECT_ID], struct hw_err *e);
bool object_is_id(const char *text);

/* @name: NULL, or a text that the object owns from now on. @free: as in shared_init(); it calls
 * object_done(). */
void object_init(struct object *o, struct object_table *t, const char *id, char *name,
		 void (*free)(void *object));
void object_done(struct object *o);

/* ---- the table ---------------------------------------------------------------------- */

/* Adds an object. Return: NULL; or, if its name is taken, a new reference to the object that has the
 * name, and then @o was not added */
struct object *object_add(struct object *o);
/* Removes an object from the table and from the list. */
void object_remove(struct object *o);
/* Return: a new reference to the object with this ID or unambiguous prefix of an ID; NULL if there is no
 * such object, or it is not published */
void *object_get(struct object_table *t, const char *id);
/* Finds the object that a client means by an ID or a prefix of one. Return: 1 with a new reference; 0 if there is no
 * such object; -EINVAL if several objects have this prefix */
int object_get_unique(struct object_table *t, const char *id, struct object **ret_object,
		      struct hw_err *e);

/* Takes over the reference to @view. */
void object_publish(struct object *o, const struct object_view *view);
/* Return: a new reference to the current list */
const struct object_list *object_list(struct object_table *t);
/* Finds a view by its ID or an unambiguous prefix of it. Return: NULL if it does not exist */
const struct object_view *object_list_find(const struct object_list *list, const char *id);

/* ---- ownership ---------------------------------------------------------------------- */

/* Waits until no other operation owns the object. Return: 0; 1: the object is gone, and is not owned;
 * -ETIMEDOUT */
int object_begin(struct object *o, int64_t deadline, struct hw_err *e);
void object_end(struct object *o);
/* Waits for a change of the object. The caller holds the lock. Return: false at the deadline */
bool object_wait(struct object *o, int64_t deadline);

/* A create that can be cancelled: object_begin_create() is called before object_add(), and makes the caller
 * the owner. object_cancel() makes .cancel_fd readable. From object_end_create() on it has no effect. */
int object_begin_create(struct object *o, struct hw_err *e);
void object_cancel(struct object *o);
void object_end_create(struct object *o);
/* Keeps the error of a failed create for object_join(). */
void object_set_error(struct object *o, const struct hw_err *error);
/* Waits for the end of a running create. Return: 0 if none runs, or it has succeeded; 1 if the object is
 * gone; the error of that create; or -ETIMEDOUT */
int object_join(struct object *o, int64_t deadline, struct hw_err *e);

#endif
