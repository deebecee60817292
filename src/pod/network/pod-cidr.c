/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/network/pod-cidr.c - the pod CIDR that kubelet assigns to this node
 *
 * Rules: if the rendered template is not a valid network configuration, no file
 *        changes. Files are not synced: kubelet sends the CIDR after each start, so
 *        files that a power cut has damaged are written again.
 */
#include "pod/network/pod-cidr.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

#include <hawser/addr.h>
#include <hawser/cni.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/os/file.h"
#include "base/str.h"
#include "cni/runtime/conf.h"
#include "pod/network/template.h"

#define FILE_NAME "pod-cidr"
#define CIDRS_MAX 16
#define TEXT_MAX  4096

/* ---- the CIDR ----------------------------------------------------------------------- */

/* Parses CIDRs separated by commas; "" gives an empty list. */
static int parse_cidrs(const char *text, struct hw_strings *ret_ranges, struct hw_err *e)
{
	AUTO(hw_strings_free) struct hw_strings list = { 0 };
	struct hw_prefix prefix;

	if (strlen(text) > TEXT_MAX)
		return err_text(e, -EINVAL, "pod_cidr: more than %d bytes", TEXT_MAX);
	if (*text)
		strings_split(text, ',', &list);
	if (list.n > CIDRS_MAX)
		return err_text(e, -EINVAL, "pod_cidr: more than %d CIDRs", CIDRS_MAX);
	for (size_t i = 0; i < list.n; i++)
		if (hw_prefix_parse(list.v[i], &prefix, e) < 0)
			return err_ctx(e, "pod_cidr \"%.100s\"", text);
	*ret_ranges = list;
	list = (struct hw_strings){ 0 };
	return 0;
}

static int save_cidr(const char *state, const char *text, struct hw_err *e)
{
	autofree char *path = str_printf("%s/" FILE_NAME, state);

	if (file_replace(AT_FDCWD, path, text, strlen(text), 0644, 0, e) < 0)
		return err_ctx(e, "save the pod CIDR");
	return 0;
}

/* Return: 1 if read, *ret_text is allocated; 0 if no pod CIDR was saved */
static int read_cidr(const char *state, char **ret_text, struct hw_err *e)
{
	autofree char *path = str_printf("%s/" FILE_NAME, state);
	AUTO(hw_strings_free) struct hw_strings ranges = { 0 };
	AUTO(buf_done) struct buf text = { 0 };
	int r;

	r = file_read_if_exists(AT_FDCWD, path, TEXT_MAX, &text, e);
	if (r < 0)
		return err_ctx(e, "read the pod CIDR");
	if (r == 0)
		return 0;
	if (parse_cidrs(str_or(text.data, ""), &ranges, e) < 0)
		return err_ctx(e, "%s", path);
	*ret_text = buf_take(&text);
	return 1;
}

/* ---- the configuration -------------------------------------------------------------- */

/* Adds a default route for each address family of the ranges, IPv4 first. */
static void add_default_routes(const struct hw_strings *ranges, struct hw_strings *routes)
{
	static const struct {
		int family;
		const char *default_route;
	} families[] = { { AF_INET, "0.0.0.0/0" }, { AF_INET6, "::/0" } };

	for (size_t f = 0; f < ARRAY_SIZE(families); f++) {
		bool found = false;

		for (size_t i = 0; !found && i < ranges->n; i++)
			found = (strchr(ranges->v[i], ':') ? AF_INET6 : AF_INET) ==
				families[f].family;
		if (found)
			strings_add(routes, families[f].default_route);
	}
}

static int render_template(const char *text, const char *file, struct buf *ret, struct hw_err *e)
{
	AUTO(hw_strings_free) struct hw_strings ranges = { 0 }, routes = { 0 };
	AUTO(hw_conf_free) struct hw_conf *conf = NULL;
	AUTO(buf_done) struct buf template = { 0 };
	struct template_data data = { .ranges = &ranges, .routes = &routes };
	int r;

	r = parse_cidrs(text, &ranges, e);
	if (r < 0)
		return r;
	r = file_read(AT_FDCWD, file, CONF_SIZE_MAX, &template, e);
	if (r < 0)
		return r;
	add_default_routes(&ranges, &routes);
	data.pod_cidr = ranges.n ? ranges.v[0] : "";
	if (template_render(str_or(template.data, ""), template.len, &data, ret, e) < 0)
		return err_ctx(e, "%s", file);
	if (hw_conf_parse(str_or(ret->data, ""), ret->len, &conf, e) < 0)
		return err_ctx(e, "%s rendered with pod CIDR %s", file, text);
	return 0;
}

/* Return: 1 if written; 0 if the file already has this content */
static int write_conflist(const char *text, const char *template_file, const char *conf_dir,
			  struct hw_err *e)
{
	autofree char *path = str_printf("%s/" POD_CIDR_CONFLIST, conf_dir);
	AUTO(buf_done) struct buf old = { 0 }, next = { 0 };
	struct hw_err ignored;
	int r;

	r = render_template(text, template_file, &next, e);
	if (r < 0)
		return err_ctx(e, "render the network template");
	if (file_read(AT_FDCWD, path, CONF_SIZE_MAX, &old, &ignored) == 0 && old.len == next.len &&
	    memcmp(str_or(old.data, ""), str_or(next.data, ""), old.len) == 0)
		return 0;
	r = file_mkdirs(AT_FDCWD, conf_dir, 0755, e);
	if (r == 0)
		r = file_replace(AT_FDCWD, path, next.data, next.len, 0644, 0, e);
	return r < 0 ? err_ctx(e, "write the network configuration") : 1;
}

/* The caller holds the lock. */
static int generate(const struct pod_cidr *p, const char *text, const char *template_file,
		    const struct network_view *view, struct hw_err *e)
{
	int r;

	if (str_empty(template_file) || str_empty(text))
		return 0;
	if (view->name && !str_equal(view->file, NETWORK_BUILT_IN) &&
	    !str_ends(view->file, "/" POD_CIDR_CONFLIST)) {
		log_event(LOG_DEBUG, "template not used: another network is configured", "file",
			  view->file, NULL);
		return 0;
	}
	r = write_conflist(text, template_file, p->conf_dir, e);
	if (r == 1)
		log_event(LOG_INFO, "network configuration generated from template", "cidr", text,
			  "template", template_file, NULL);
	return r;
}

/* ---- saving and generating ---------------------------------------------------------- */

void pod_cidr_init(struct pod_cidr *p, const char *state, const char *conf_dir)
{
	pthread_mutex_init(&p->lock, NULL);
	p->state = str_copy(state);
	p->conf_dir = str_copy(conf_dir);
}

void pod_cidr_done(struct pod_cidr *p)
{
	free(p->state);
	free(p->conf_dir);
	pthread_mutex_destroy(&p->lock);
}

int pod_cidr_set(struct pod_cidr *p, const char *text, const char *template_file,
		 const struct network_view *view, struct hw_err *e)
{
	AUTO(hw_strings_free) struct hw_strings ranges = { 0 };
	int r;

	r = parse_cidrs(text, &ranges, e);
	if (r < 0)
		return r;
	pthread_mutex_lock(&p->lock);
	r = save_cidr(p->state, text, e);
	if (r == 0)
		r = generate(p, text, template_file, view, e);
	pthread_mutex_unlock(&p->lock);
	return r;
}

int pod_cidr_restore(struct pod_cidr *p, const char *template_file, const struct network_view *view,
		     struct hw_err *e)
{
	autofree char *text = NULL;
	int r;

	pthread_mutex_lock(&p->lock);
	r = read_cidr(p->state, &text, e);
	if (r == 1)
		r = generate(p, text, template_file, view, e);
	pthread_mutex_unlock(&p->lock);
	return r;
}

int pod_cidr_ranges(struct pod_cidr *p, struct hw_strings *ret_ranges, struct hw_err *e)
{
	autofree char *text = NULL;
	int r;

	*ret_ranges = (struct hw_strings){ 0 };
	pthread_mutex_lock(&p->lock);
	r = read_cidr(p->state, &text, e);
	pthread_mutex_unlock(&p->lock);
	return r == 1 ? parse_cidrs(text, ret_ranges, e) : r;
}
