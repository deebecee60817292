/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/registry/auth-file.c - a file that says who we are to registries
 *
 * What:  reads it from a file as Docker's config.json and containers/image's
 *        auth.json: {"auths":{"HOST":{"auth":"BASE64 OF USER:PASSWORD"}}}.
 * How:   a key may be a URL, as Docker writes it, or have a part of the path, as
 *        podman does; the longest that the image's name begins with counts.
 */
#include "fetch/registry/auth-file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/json/value.h"
#include "base/os/file.h"
#include "base/str.h"

#define FILE_MAX (1 << 20)
#define HUB	 "docker.io"

/* The names that docker.io has had. */
static const char *const hubs[] = { "index." HUB, "registry-1." HUB, "registry." HUB };

/* "https://index.docker.io/v1/" is "docker.io" */
static char *plain_key(const char *key)
{
	static const char *const ends[] = { "/", "/v1", "/v2" };
	const char *rest = strstr(key, "://");
	char *plain = str_copy(rest ? rest + 3 : key);

	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		if (str_ends(plain, ends[i]))
			plain[strlen(plain) - strlen(ends[i])] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(hubs); i++)
		if (str_equal(plain, hubs[i])) {
			free(plain);
			return str_copy(HUB);
		}
	return plain;
}

static bool covers(const char *key, const char *name)
{
	size_t len = strlen(key);

	return len > 0 && str_starts(name, key) && (name[len] == '/' || name[len] == '\0');
}

static const struct value *find_entry(const struct value *auths, const char *name)
{
	const struct value *best = NULL;
	struct value *each;
	size_t best_len = 0;
	const char *key;

	for (void *i = NULL; value_next(auths, &i, &key, &each);) {
		autofree char *plain = plain_key(key);

		if (covers(plain, name) && strlen(plain) > best_len) {
			best = each;
			best_len = strlen(plain);
		}
	}
	return best;
}

static char *member(const struct value *entry, const char *key)
{
	const char *text = value_string(value_get(entry, key));

	return str_empty(text) ? NULL : str_copy(text);
}

static int take_entry(const struct value *entry, struct credentials *c, struct hw_err *e)
{
	autofree char *auth = member(entry, "auth");

	c->identity_token = member(entry, "identitytoken");
	c->registry_token = member(entry, "registrytoken");
	if (auth)
		return credentials_decode(c, auth, e);
	c->username = member(entry, "username");
	c->password = member(entry, "password");
	return 0;
}

static int read_file(const char *path, const char *name, struct credentials *c, struct hw_err *e)
{
	AUTO(value_free) struct value *v = NULL;
	AUTO(buf_done) struct buf text = { 0 };
	const struct value *entry;
	int r = file_read(AT_FDCWD, path, FILE_MAX, &text, e);

	if (r == -ENOENT)
		return 0;
	if (r == 0)
		r = value_parse(text.data, text.len, &v, e);
	if (r < 0)
		return r;
	entry = find_entry(value_get(v, "auths"), name);
	return entry ? take_entry(entry, c, e) : 0;
}

/**
 * auth_file_read() - what a file has for an image
 * @path: one that is not there has nothing
 * @name: domain and path of the image, or a host
 *
 * Return: 0, with what was found, maybe nothing; or negative errno
 */
int auth_file_read(const char *path, const char *name, struct credentials *ret_credentials,
		   struct hw_err *e)
{
	AUTO(credentials_done) struct credentials c = { 0 };

	if (read_file(path, name, &c, e) < 0)
		return err_ctx(e, "credentials for %s in %s", name, path);
	*ret_credentials = c;
	c = (struct credentials){ 0 };
	return 0;
}
