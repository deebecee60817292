/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/hawser/find.c - find pods and containers by name, ID or prefix of an ID
 *
 * What:  a word of the command line stands for a pod or a container. It is an ID, or a
 *        name, or a prefix of an ID; the first of these that matches decides. A pod may
 *        also be given as NAMESPACE/NAME, and a container as POD/NAME.
 * How:   all objects are listed and compared here. CRI's filters by ID differ: some
 *        runtimes accept prefixes, others do not.
 *        find_any() compares with pods and containers at once, and a name then stands for a pod
 *        rather than for a container. It also finds what is lost, by ID.
 * Rules: a kubelet keeps earlier attempts of a pod or a container, with the same name. A
 *        name stands for the latest attempt. If it still matches several objects, it is
 *        ambiguous, and nothing is done.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/cri-v1.pb-c.h"
#include "api/hawser-v1.pb-c.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/hawser/hawser.h"
#include "cli/text.h"
#include "rpc/grpc/status.h"

#define SHOWN_MAX 4 /* IDs in the message that a word is ambiguous */

/* A pod or a container. The texts belong to the list of the runtime, except .group. */
struct object {
	const char *id, *name;
	const char *space; /* namespace of a pod; NULL: a container */
	char *group;	   /* objects with the same group and name are attempts of one object */
	unsigned attempt;
};

struct objects {
	struct object *v;
	size_t n;
};

static void objects_done(struct objects *objects)
{
	for (size_t i = 0; i < objects->n; i++)
		free(objects->v[i].group);
	free(objects->v);
}

AUTO_VALUE_DEFINE(objects_done, struct objects);

/* ---- match ----------------------------------------------------------------------- */

static bool has_id(const struct object *o, const char *word)
{
	return str_equal(o->id, word);
}

static bool has_name(const struct object *o, const char *word)
{
	size_t len = o->space ? strlen(o->space) : 0;

	if (*word && str_equal(o->name, word))
		return true;
	return len && str_starts(word, o->space) && word[len] == '/' &&
	       str_equal(o->name, word + len + 1);
}

static bool has_prefix(const struct object *o, const char *word)
{
	return *word && str_starts(o->id, word);
}

static bool has_later_attempt(const struct objects *all, const struct object *o)
{
	for (size_t i = 0; i < all->n; i++) {
		const struct object *other = &all->v[i];

		if (other->attempt > o->attempt && str_equal(other->name, o->name) &&
		    str_equal(other->group, o->group))
			return true;
	}
	return false;
}

static int fail_ambiguous(const char *kind, const char *word, const struct object *const *found,
			  size_t n, struct hw_err *e)
{
	AUTO(buf_done) struct buf ids = { 0 };

	for (size_t i = 0; i < n && i < SHOWN_MAX; i++) {
		autofree char *id = text_short_id(found[i]->id);

		buf_printf(&ids, "%s%s", i ? ", " : "", id);
	}
	if (n > SHOWN_MAX)
		buf_printf(&ids, " and %zu more", n - SHOWN_MAX);
	return status_set(e, STATUS_INVALID_ARGUMENT, "%s \"%s\": ambiguous: it matches %s", kind,
			  word, ids.data);
}

/* Drops the containers if there are also pods. Return: how many objects are left */
static size_t prefer_pods(const struct object **found, size_t n)
{
	size_t pods = 0;

	for (size_t i = 0; i < n; i++)
		if (found[i]->space)
			found[pods++] = found[i];
	return pods ? pods : n;
}

/* @kind: for errors: "pod" or "container". Return: 0, or an error with STATUS_NOT_FOUND or
 * STATUS_INVALID_ARGUMENT */
static int find_object(const struct objects *all, const char *kind, const char *word,
		       const struct object **ret, struct hw_err *e)
{
	static bool (*const rules[])(const struct object *, const char *) = { has_id, has_name,
									      has_prefix };
	autofree const struct object **found = mem_new((all->n + 1) * sizeof(struct object *));
	size_t n = 0;

	for (size_t rule = 0; rule < ARRAY_SIZE(rules) && n == 0; rule++) {
		for (size_t i = 0; i < all->n; i++) {
			const struct object *o = &all->v[i];

			if (rules[rule](o, word) &&
			    !(rules[rule] == has_name && has_later_attempt(all, o)))
				found[n++] = o;
		}
		if (rules[rule] == has_name)
			n = prefer_pods(found, n);
	}
	if (n == 0)
		return status_set(e, STATUS_NOT_FOUND, "%s \"%s\": not found", kind, word);
	if (n > 1)
		return fail_ambiguous(kind, word, found, n, e);
	*ret = found[0];
	return 0;
}

/* Like find_object(). */
static int find_id(const struct objects *all, const char *kind, const char *word, char **ret_id,
		   struct hw_err *e)
{
	const struct object *o;
	int r;

	r = find_object(all, kind, word, &o, e);
	if (r == 0)
		*ret_id = str_copy(o->id);
	return r;
}

/* ---- pods ------------------------------------------------------------------------ */

int list_pods(struct cli *cli, Runtime__V1__ListPodSandboxResponse **ret, struct hw_err *e)
{
	Runtime__V1__ListPodSandboxRequest request = RUNTIME__V1__LIST_POD_SANDBOX_REQUEST__INIT;

	if (runtime_call(cli, "ListPodSandbox", &request.base, ret, e) < 0)
		return err_ctx(e, "list pods");
	return 0;
}

char *pod_label(const Runtime__V1__PodSandbox *pod)
{
	const Runtime__V1__PodSandboxMetadata *m = pod->metadata;

	if (!m)
		return str_copy(pod->id);
	return str_equal(m->namespace_, "default") ? str_copy(m->name)
						   : str_printf("%s/%s", m->namespace_, m->name);
}

static void add_pods(struct objects *objects, const Runtime__V1__ListPodSandboxResponse *list)
{
	objects->v = mem_resize(objects->v, objects->n + list->n_items + 1, sizeof(*objects->v));
	for (size_t i = 0; i < list->n_items; i++) {
		const Runtime__V1__PodSandbox *pod = list->items[i];
		const Runtime__V1__PodSandboxMetadata *m = pod->metadata;

		objects->v[objects->n++] = (struct object){
			.id = pod->id,
			.name = m ? m->name : "",
			.space = m ? m->namespace_ : "",
			.group = m ? str_printf("%s/%s", m->namespace_, m->uid) : NULL,
			.attempt = m ? m->attempt : 0,
		};
	}
}

int find_pod(struct cli *cli, const char *word, char **ret_id, struct hw_err *e)
{
	AUTO(api_free) Runtime__V1__ListPodSandboxResponse *list = NULL;
	AUTO(objects_done) struct objects all = { 0 };
	int r;

	r = list_pods(cli, &list, e);
	if (r < 0)
		return r;
	add_pods(&all, list);
	return find_id(&all, "pod", word, ret_id, e);
}

/* ---- containers ------------------------------------------------------------------ */

int list_containers(struct cli *cli, Runtime__V1__ContainerFilter *filter,
		    Runtime__V1__ListContainersResponse **ret, struct hw_err *e)
{
	Runtime__V1__ListContainersRequest request = RUNTIME__V1__LIST_CONTAINERS_REQUEST__INIT;

	request.filter = filter;
	if (runtime_call(cli, "ListContainers", &request.base, ret, e) < 0)
		return err_ctx(e, "list containers");
	return 0;
}

static void add_containers(struct objects *objects, const Runtime__V1__ListContainersResponse *list)
{
	objects->v =
		mem_resize(objects->v, objects->n + list->n_containers + 1, sizeof(*objects->v));
	for (size_t i = 0; i < list->n_containers; i++) {
		const Runtime__V1__Container *c = list->containers[i];

		objects->v[objects->n++] = (struct object){
			.id = c->id,
			.name = c->metadata ? c->metadata->name : "",
			.group = str_copy(c->pod_sandbox_id),
			.attempt = c->metadata ? c->metadata->attempt : 0,
		};
	}
}

/* @word: POD/NAME */
static int find_in_pod(struct cli *cli, const struct objects *all, const char *word, char **ret_id,
		       struct hw_err *e)
{
	const char *name = strrchr(word, '/') + 1;
	autofree char *pod_word = str_ncopy(word, (size_t)(name - 1 - word)), *pod = NULL;
	int r;

	r = find_pod(cli, pod_word, &pod, e);
	if (r < 0)
		return err_ctx(e, "container \"%s\"", word);
	for (size_t i = 0; i < all->n; i++) {
		const struct object *o = &all->v[i];

		if (!str_equal(o->group, pod) || !has_name(o, name) || has_later_attempt(all, o))
			continue;
		*ret_id = str_copy(o->id);
		return 0;
	}
	return status_set(e, STATUS_NOT_FOUND, "container \"%s\": not found", word);
}

int find_container(struct cli *cli, const char *word, char **ret_id, struct hw_err *e)
{
	AUTO(api_free) Runtime__V1__ListContainersResponse *list = NULL;
	AUTO(objects_done) struct objects all = { 0 };
	int r;

	r = list_containers(cli, NULL, &list, e);
	if (r < 0)
		return r;
	add_containers(&all, list);
	r = find_id(&all, "container", word, ret_id, e);
	if (r < 0 && e->wire == STATUS_NOT_FOUND && strchr(word, '/'))
		r = find_in_pod(cli, &all, word, ret_id, e);
	return r;
}

/* ---- both ------------------------------------------------------------------------ */

static const char any[] = "pod or container";

/* Finds a pod or a container that CRI does not list. */
static int find_lost(struct cli *cli, const char *word, struct found *ret, struct hw_err *e)
{
	AUTO(details_done) struct details details = { 0 };
	AUTO(objects_done) struct objects all = { 0 };
	size_t n_pods, n_containers;
	const struct object *o;
	int r;

	r = details_get(cli, &details, e);
	if (r < 0)
		return r;
	n_pods = details.pods ? details.pods->n_pods : 0;
	n_containers = details.containers ? details.containers->n_containers : 0;
	all.v = mem_new((n_pods + n_containers + 1) * sizeof(*all.v));
	for (size_t i = 0; i < n_pods; i++)
		if (details_is_lost(details.pods->pods[i]))
			all.v[all.n++] = (struct object){ .id = details.pods->pods[i]->id,
							  .name = "",
							  .space = "" };
	for (size_t i = 0; i < n_containers; i++)
		all.v[all.n++] =
			(struct object){ .id = details.containers->containers[i]->id, .name = "" };
	r = find_object(&all, any, word, &o, e);
	if (r == 0)
		*ret = (struct found){ str_copy(o->id), o->space != NULL, true };
	return r;
}

int find_any(struct cli *cli, const char *word, struct found *ret, struct hw_err *e)
{
	AUTO(api_free) Runtime__V1__ListContainersResponse *containers = NULL;
	AUTO(api_free) Runtime__V1__ListPodSandboxResponse *pods = NULL;
	AUTO(objects_done) struct objects all = { 0 };
	const struct object *o;
	char *id;
	int r;

	r = list_pods(cli, &pods, e);
	if (r == 0)
		r = list_containers(cli, NULL, &containers, e);
	if (r < 0)
		return r;
	add_pods(&all, pods);
	add_containers(&all, containers);
	r = find_object(&all, any, word, &o, e);
	if (r == 0)
		*ret = (struct found){ str_copy(o->id), o->space != NULL, false };
	if (r == 0 || e->wire != STATUS_NOT_FOUND)
		return r;
	if (strchr(word, '/')) {
		r = find_in_pod(cli, &all, word, &id, e);
		if (r == 0)
			*ret = (struct found){ id, false, false };
		return r;
	}
	return find_lost(cli, word, ret, e);
}

/* ---- commands for several objects ------------------------------------------------ */

int each_container(struct cli *cli, char **words, const char *done, container_action *act,
		   struct hw_err *e)
{
	struct value *ids = value_new_array(), *all = value_new_object();
	struct errors errors = { 0 };

	value_set(all, done, ids);
	for (; *words; words++) {
		autofree char *id = NULL, *clean = text_clean(*words);
		int r;

		r = find_container(cli, *words, &id, e);
		if (r == 0)
			r = act(cli, *words, id, e);
		if (r < 0)
			errors_add(&errors, e);
		else if (cli->json)
			value_append(ids, value_new_string(id));
		else
			printf("%s\n", clean);
	}
	if (cli->json)
		print_json(all);
	else
		value_free(all);
	return errors_result(&errors, e);
}

/* ---- completion ------------------------------------------------------------------ */

/* Adds the names, or the IDs of objects whose names are ambiguous. */
static void add_words(const struct objects *all, struct hw_strings *words)
{
	for (size_t i = 0; i < all->n; i++) {
		const struct object *o = &all->v[i];
		autofree char *id = NULL, *word = NULL;
		struct hw_err ignored;

		if (has_later_attempt(all, o))
			continue;
		word = text_clean(find_id(all, "", o->name, &id, &ignored) == 0 ? o->name : o->id);
		if (*word)
			strings_add(words, word);
	}
}

int complete_pods(struct cli *cli, const char *word, struct hw_strings *words, struct hw_err *e)
{
	AUTO(api_free) Runtime__V1__ListPodSandboxResponse *list = NULL;
	AUTO(objects_done) struct objects all = { 0 };
	int r;

	(void)word;
	r = runtime_complete(cli, e);
	if (r < 0)
		return r;
	r = list_pods(cli, &list, e);
	if (r < 0)
		return r;
	add_pods(&all, list);
	add_words(&all, words);
	return 0;
}

int complete_containers(struct cli *cli, const char *word, struct hw_strings *words,
			struct hw_err *e)
{
	AUTO(api_free) Runtime__V1__ListContainersResponse *list = NULL;
	AUTO(objects_done) struct objects all = { 0 };
	int r;

	(void)word;
	r = runtime_complete(cli, e);
	if (r < 0)
		return r;
	r = list_containers(cli, NULL, &list, e);
	if (r < 0)
		return r;
	add_containers(&all, list);
	add_words(&all, words);
	return 0;
}
