/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/object.c - what pods and containers have in common: an ID, an owner, and a view for readers
 */
#include "pod/object.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/os/thread.h"
#include "base/str.h"

/* ---- lists -------------------------------------------------------------------------- */

static void list_free(void *object)
{
	struct object_list *list = object;

	for (size_t i = 0; i < list->n; i++)
		shared_unref(list->v[i]);
	free(list);
}

static struct object_list *list_new(size_t room)
{
	struct object_list *list =
		mem_new(sizeof(*list) + room * sizeof(const struct object_view *));

	shared_init(&list->shared, list_free);
	return list;
}

/* The position of @id, or where it would be inserted. */
static size_t list_position(const struct object_list *list, const char *id)
{
	size_t low = 0, high = list->n;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (strcmp(list->v[middle]->id, id) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Publishes the list that follows the current one: with @next, or without the object if it is NULL.
 * Takes over the reference to @next. The caller holds the lock. */
static void replace_view(struct object_table *t, const char *id, const struct object_view *next)
{
	AUTO(shared_unref) const struct object_list *old = object_list(t);
	struct object_list *list = list_new(old->n + 1);
	size_t at = list_position(old, id);
	size_t after = at + (at < old->n && str_equal(old->v[at]->id, id));

	for (size_t i = 0; i < at; i++)
		list->v[list->n++] = shared_ref(old->v[i]);
	if (next)
		list->v[list->n++] = next;
	for (size_t i = after; i < old->n; i++)
		list->v[list->n++] = shared_ref(old->v[i]);
	slot_publish(&t->list, &list->shared);
}

void object_publish(struct object *o, const struct object_view *view)
{
	pthread_mutex_lock(&o->table->lock);
	shared_unref(o->view);
	o->view = shared_ref(view);
	replace_view(o->table, o->id, view);
	pthread_mutex_unlock(&o->table->lock);
}

const struct object_list *object_list(struct object_table *t)
{
	return slot_get(&t->list);
}

/* Return: the number of IDs with this prefix; at most 2. @ret_at: the first one */
static int count_ids(const struct object_list *list, const char *id, size_t *ret_at)
{
	size_t at = list_position(list, id);

	*ret_at = at;
	if (str_empty(id) || at == list->n || !str_starts(list->v[at]->id, id))
		return 0;
	/* IDs have the same length, so the next one may have the same prefix */
	return at + 1 < list->n && str_starts(list->v[at + 1]->id, id) ? 2 : 1;
}

const struct object_view *object_list_find(const struct object_list *list, const char *id)
{
	size_t at;

	return count_ids(list, id, &at) == 1 ? list->v[at] : NULL;
}

/* ---- table -------------------------------------------------------------------------- */

static void unref_object(void *object)
{
	shared_unref(object);
}

void object_table_init(struct object_table *t, struct pods *pods)
{
	t->pods = pods;
	pthread_mutex_init(&t->lock, NULL);
	t->by_id = map_new(unref_object);
	t->by_name = map_new(NULL);
	slot_init(&t->list, &list_new(0)->shared);
}

void object_table_done(struct object_table *t)
{
	map_free(t->by_name);
	map_free(t->by_id);
	slot_done(&t->list);
	pthread_mutex_destroy(&t->lock);
}

struct object *object_add(struct object *o)
{
	struct object *found = NULL;

	pthread_mutex_lock(&o->table->lock);
	if (o->name)
		found = map_find(o->table->by_name, o->name);
	if (found) {
		shared_ref(found);
	} else {
		map_set(o->table->by_id, o->id, shared_ref(o));
		if (o->name)
			map_set(o->table->by_name, o->name, o);
	}
	pthread_mutex_unlock(&o->table->lock);
	return found;
}

void object_remove(struct object *o)
{
	struct object_table *t = o->table;
	struct object *taken;

	pthread_mutex_lock(&t->lock);
	if (o->name && map_find(t->by_name, o->name) == o)
		map_take(t->by_name, o->name);
	o->gone = true;
	replace_view(t, o->id, NULL);
	taken = map_take(t->by_id, o->id);
	pthread_cond_broadcast(&o->changed);
	pthread_mutex_unlock(&t->lock);
	shared_unref(taken);
}

int object_get_unique(struct object_table *t, const char *id, struct object **ret_object,
		      struct hw_err *e)
{
	AUTO(shared_unref) const struct object_list *list = object_list(t);
	struct object *o;
	size_t at;
	int n;

	n = count_ids(list, id, &at);
	if (n > 1)
		return err_text(e, -EINVAL, "several IDs begin with %.80s", id);
	if (n == 0)
		return 0;
	pthread_mutex_lock(&t->lock);
	o = map_find(t->by_id, list->v[at]->id);
	if (o)
		shared_ref(o);
	pthread_mutex_unlock(&t->lock);
	*ret_object = o;
	return o != NULL;
}

void *object_get(struct object_table *t, const char *id)
{
	struct object *o = NULL;
	struct hw_err ignored;

	return object_get_unique(t, id, &o, &ignored) > 0 ? o : NULL;
}

/* ---- objects ------------------------------------------------------------------------ */

int object_new_id(char ret_id[OBJECT_ID], struct hw_err *e)
{
	static const char digits[] = "0123456789abcdef";
	unsigned char bytes[(OBJECT_ID - 1) / 2];

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return err_set(e, -errno, "get random bytes");
	for (size_t i = 0; i < sizeof(bytes); i++) {
		ret_id[2 * i] = digits[bytes[i] >> 4];
		ret_id[2 * i + 1] = digits[bytes[i] & 15];
	}
	ret_id[OBJECT_ID - 1] = '\0';
	return 0;
}

bool object_is_id(const char *text)
{
	return strlen(text) == OBJECT_ID - 1 && strspn(text, "0123456789abcdef") == OBJECT_ID - 1;
}

void object_init(struct object *o, struct object_table *t, const char *id, char *name,
		 void (*free)(void *object))
{
	shared_init(&o->shared, free);
	o->table = t;
	snprintf(o->id, sizeof(o->id), "%s", id);
	o->name = name;
	o->cancel_fd = -1;
	list_init(&o->finish_link);
	cond_init(&o->changed);
}

void object_done(struct object *o)
{
	shared_unref(o->view);
	pthread_cond_destroy(&o->changed);
	mem_close_fd(&o->cancel_fd);
	free(o->error);
	free(o->name);
}

/* ---- ownership ---------------------------------------------------------------------- */

bool object_wait(struct object *o, int64_t deadline)
{
	return cond_wait_until(&o->changed, &o->table->lock, deadline);
}

int object_begin(struct object *o, int64_t deadline, struct hw_err *e)
{
	bool in_time = true;
	int r = 0;

	pthread_mutex_lock(&o->table->lock);
	while (o->busy && in_time)
		in_time = object_wait(o, deadline);
	if (o->busy)
		r = -ETIMEDOUT;
	else if (o->gone)
		r = 1;
	else
		o->busy = true;
	pthread_mutex_unlock(&o->table->lock);
	if (r < 0)
		return err_text(e, r, "%s: another operation has not ended in time", o->id);
	return r;
}

void object_end(struct object *o)
{
	pthread_mutex_lock(&o->table->lock);
	o->busy = false;
	pthread_cond_broadcast(&o->changed);
	pthread_mutex_unlock(&o->table->lock);
}

int object_begin_create(struct object *o, struct hw_err *e)
{
	int fd;

	fd = eventfd(0, EFD_CLOEXEC);
	if (fd < 0)
		return err_set(e, -errno, "create an eventfd");
	o->cancel_fd = fd;
	o->busy = true;
	return 0;
}

void object_cancel(struct object *o)
{
	pthread_mutex_lock(&o->table->lock);
	if (o->cancel_fd >= 0)
		eventfd_write(o->cancel_fd, 1);
	pthread_mutex_unlock(&o->table->lock);
}

void object_end_create(struct object *o)
{
	autoclose int fd = -1;

	pthread_mutex_lock(&o->table->lock);
	fd = take_fd(o->cancel_fd);
	pthread_mutex_unlock(&o->table->lock);
}

void object_set_error(struct object *o, const struct hw_err *error)
{
	struct hw_err *copy = mem_new(sizeof(*copy));

	*copy = *error;
	pthread_mutex_lock(&o->table->lock);
	o->error = copy;
	pthread_mutex_unlock(&o->table->lock);
}

int object_join(struct object *o, int64_t deadline, struct hw_err *e)
{
	bool in_time = true, waited = false;
	int r = 0;

	pthread_mutex_lock(&o->table->lock);
	while (o->cancel_fd >= 0 && in_time) {
		waited = true;
		in_time = object_wait(o, deadline);
	}
	while (waited && o->busy && in_time)
		in_time = object_wait(o, deadline);
	if (!in_time)
		r = err_text(e, -ETIMEDOUT, "%s is still being created", o->id);
	else if (waited && o->error)
		*e = *o->error, r = e->code;
	else if (o->gone)
		r = 1;
	pthread_mutex_unlock(&o->table->lock);
	return r;
}
