/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/daemon-config.c - the configuration of a daemon that runs, and what follows from it
 *
 * Rules: the loop's thread alone sets it, under the lock; others take references.
 */
#include "base/log.h"
#include "base/str.h"
#include "cri/daemon-parts.h"
#include "cri/pod-cidr.h"
#include "cri/service/pull.h"
#include "image/reference.h"

struct config *daemon_config(struct daemon *d)
{
	struct config *c;

	pthread_mutex_lock(&d->config_lock);
	c = config_ref(d->config);
	pthread_mutex_unlock(&d->config_lock);
	return c;
}

/* ---- the network from a template ---------------------------------------------------- */

int daemon_render_network(struct daemon *d, const char *cidr, struct hw_err *e)
{
	AUTO(config_unref) struct config *c = daemon_config(d);
	AUTO(network_view_put) struct network_view *view = network_view_get(d->network);
	int r;

	if (str_empty(c->cni_conf_template) || str_empty(cidr))
		return 0;
	if (view->name && !str_ends(view->file, "/" POD_CIDR_CONFLIST)) {
		log_event(LOG_DEBUG, "the template is not used: there is a network", "file",
			  view->file, NULL);
		return 0;
	}
	r = pod_cidr_render(cidr, c->cni_conf_template, c->cni_conf_dir, e);
	if (r == 1)
		log_event(LOG_INFO, "the network was made from the template", "cidr", cidr,
			  "template", c->cni_conf_template, NULL);
	return r < 0 ? r : 0;
}

/**
 * daemon_render_again() - with the CIDR that is kept
 */
void daemon_render_again(struct daemon *d)
{
	autofree char *cidr = NULL;
	struct hw_err e;
	int r;

	pthread_mutex_lock(&d->cidr_lock);
	r = pod_cidr_read(d->config->state, &cidr, &e);
	if (r == 1)
		r = daemon_render_network(d, cidr, &e);
	pthread_mutex_unlock(&d->cidr_lock);
	if (r < 0)
		log_error("%s", e.msg);
}

/* ---- reloading --------------------------------------------------------------------- */

/**
 * daemon_pin_images() - by complete names
 */
int daemon_pin_images(struct daemon *d, const struct config *c, struct hw_err *e)
{
	AUTO(hw_strings_free) struct hw_strings names = { 0 };

	for (size_t i = 0; i < c->pinned_images.n; i++) {
		AUTO(reference_done) struct reference ref = { 0 };
		autofree char *name = NULL;
		int r = reference_parse(c->pinned_images.v[i], &ref, e);

		if (r < 0)
			return r;
		name = reference_format(&ref);
		strings_add(&names, name);
	}
	return store_pin(d->store, &names, e);
}

static void left_as_it_is(void *ctx, const char *name)
{
	(void)ctx;
	log_event(LOG_WARN, "a new value needs a restart", "key", name, NULL);
}

static void set_level(const struct config *c)
{
	enum log_level level;

	if (log_level_parse(c->log_level, &level))
		log_set_level(level);
}

static bool same_pins(const struct config *a, const struct config *b)
{
	const struct hw_strings *left = &a->pinned_images, *right = &b->pinned_images;

	if (left->n != right->n)
		return false;
	for (size_t i = 0; i < left->n; i++)
		if (!str_equal(left->v[i], right->v[i]))
			return false;
	return true;
}

/**
 * daemon_reload() - what a signal asks for
 *
 * A file that was there and is gone is an error: somebody is about to write it. Images
 * are pinned anew only where that changes something, as the store may keep us waiting.
 */
void daemon_reload(struct daemon *d)
{
	AUTO(config_unref) struct config *next = NULL, *old = NULL;
	struct config_source source = d->source;
	struct config *merged;
	struct hw_err e;

	source.must_exist |= !str_empty(d->config->file);
	if (config_load(&source, &next, &e) < 0) {
		log_error("the configuration stays as it was: %s", e.msg);
		return;
	}
	merged = config_merge(d->config, next, left_as_it_is, NULL);
	pthread_mutex_lock(&d->config_lock);
	old = d->config;
	d->config = merged;
	pthread_mutex_unlock(&d->config_lock);
	set_level(merged);
	pull_configure(d->puller, merged);
	if (!same_pins(old, merged) && daemon_pin_images(d, merged, &e) < 0)
		log_error("pin images: %s", e.msg);
	log_event(LOG_INFO, "the configuration was read again", "file", merged->file, NULL);
}
