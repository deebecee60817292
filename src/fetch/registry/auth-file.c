/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/registry/auth-file.c - file with credentials for registries
 *
 * What:  the format of Docker's config.json and containers/image's auth.json:
 *        {"auths":{"HOST":{"auth":"BASE64 OF USER:PASSWORD"}}}.
 * How:   a key may be a URL, as Docker writes it, or include a part of the repository, as podman
 *        writes it; the longest key that is a prefix of the image's name is used.
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

/* Other names that credentials files use for docker.io. */
static const char *const hub_names[] = { "index." HUB, "registry-1." HUB, "registry." HUB };

/* "https://index.docker.io/v1/" becomes "docker.io" */
static char *normalize_key(const char *key)
{
	static const char *const suffixes[] = { "/", "/v1", "/v2" };
	const char *rest = strstr(key, "://");
	char *plain = str_copy(rest ? rest + 3 : key);

	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++)
		if (str_ends(plain, suffixes[i]))
			plain[strlen(plain) - strlen(suffixes[i])] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(hub_names); i++)
		if (str_equal(plain, hub_names[i])) {
			free(plain);
			return str_copy(HUB);
		}
	return plain;
}

static const struct value *find_entry(const struct value *auths, const char *name)
{
	const struct value *best = NULL;
	struct value *entry;
	size_t best_len = 0;
	const char *key;

	for (void *i = NULL; value_next(auths, &i, &key, &entry);) {
		autofree char *plain = normalize_key(key);
		size_t len = strlen(plain);

		if (len > best_len && str_starts(name, plain) &&
		    (name[len] == '/' || name[len] == '\0')) {
			best = entry;
			best_len = len;
		}
	}
	return best;
}

static char *get_text(const struct value *entry, const char *key)
{
	const char *text = value_string(value_get(entry, key));

	return str_empty(text) ? NULL : str_copy(text);
}

static int read_file(const char *path, const char *name, struct credentials *c, struct hw_err *e)
{
	AUTO(value_free) struct value *v = NULL;
	AUTO(buf_done) struct buf text = { 0 };
	const struct value *entry;
	AUTO(str_wipe) char *auth = NULL;
	int r;

	r = file_read_if_exists(AT_FDCWD, path, FILE_MAX, &text, e);
	if (r <= 0)
		return r;
	r = value_parse(text.data, text.len, &v, e);
	explicit_bzero(text.data, text.len);
	if (r < 0)
		return r;
	entry = find_entry(value_get(v, "auths"), name);
	if (!entry)
		return 0;
	c->identity_token = get_text(entry, "identitytoken");
	c->registry_token = get_text(entry, "registrytoken");
	auth = get_text(entry, "auth");
	if (auth)
		return credentials_decode(c, auth, e);
	c->username = get_text(entry, "username");
	c->password = get_text(entry, "password");
	return 0;
}

int auth_file_read(const char *path, const char *name, struct credentials *ret_credentials,
		   struct hw_err *e)
{
	AUTO(credentials_done) struct credentials c = { 0 };
	int r;

	r = read_file(path, name, &c, e);
	if (r < 0) {
		err_replace(e, -EINVAL, -ENOKEY);
		return err_ctx(e, "credentials for %s in %s", name, path);
	}
	*ret_credentials = c;
	c = (struct credentials){ 0 };
	return 0;
}
