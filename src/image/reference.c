/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/reference.c - image references
 *
 * How:   split at the first '@', '/' and ':' into digest, domain, path and tag;
 *        then check each part. The grammar is that of Go's distribution/reference:
 *
 *	domain     = ( label *( "." label ) / "[" 1*( hex / ":" ) "]" ) [ ":" 1*digit ]
 *	label      = letter or digit, with "-" inside
 *	path       = component *( "/" component )
 *	component  = 1*alnum *( ( "." / "_" / "__" / 1*"-" ) 1*alnum )      lower case
 *	tag        = ( alnum / "_" ) *127( alnum / "_" / "." / "-" )
 *
 * Rules: the part before the first '/' is a domain if it contains a dot, a colon
 *        or an upper case letter, or is "localhost". If not, it belongs to the path,
 *        and the domain is docker.io.
 */
#include "image/reference.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/str.h"
#include "image/digest.h"

#define DIGITS "0123456789"
#define LOWER  "abcdefghijklmnopqrstuvwxyz"
#define UPPER  "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

#define TEXT_MAX 1024 /* length of a reference; a digest has at most 135 characters */
#define HUB	 "docker.io"

static bool has_only(const char *s, const char *allowed)
{
	return s[strspn(s, allowed)] == '\0';
}

/* ---- domain ---------------------------------------------------------------- */

static bool label_is_valid(const char *s, size_t n)
{
	return n > 0 && strspn(s, DIGITS LOWER UPPER "-") >= n && s[0] != '-' && s[n - 1] != '-';
}

static bool domain_is_valid(const char *s)
{
	const char *bracket = strchr(s, ']');
	const char *port = strchr(bracket ? bracket : s, ':');
	size_t n = port ? (size_t)(port - s) : strlen(s); /* length of the host */

	if (port && (!port[1] || !has_only(port + 1, DIGITS)))
		return false;
	if (s[0] == '[')
		return n > 2 && s[n - 1] == ']' && strspn(s + 1, DIGITS "abcdefABCDEF:") == n - 2;
	for (;;) {
		size_t label = strcspn(s, ".");

		if (label >= n)
			return label_is_valid(s, n);
		if (!label_is_valid(s, label))
			return false;
		s += label + 1;
		n -= label + 1;
	}
}

/* ---- path and tag ---------------------------------------------------------- */

static bool path_is_valid(const char *s)
{
	for (;;) {
		size_t n = strspn(s, LOWER DIGITS);

		if (n == 0)
			return false;
		s += n;
		if (*s == '\0')
			return true;
		if (*s == '-')
			s += strspn(s, "-");
		else if (*s == '_')
			s += s[1] == '_' ? 2 : 1;
		else if (*s == '.' || *s == '/')
			s++;
		else
			return false;
	}
}

static bool tag_is_valid(const char *s)
{
	return *s && *s != '.' && *s != '-' && has_only(s, DIGITS LOWER UPPER "_.-") &&
	       strlen(s) <= REFERENCE_TAG_MAX;
}

/* ---- whole references ------------------------------------------------------ */

static void split_reference(const char *text, struct reference *ref)
{
	const char *at = strchr(text, '@');
	autofree char *name = at ? str_ncopy(text, (size_t)(at - text)) : str_copy(text);
	autofree char *first = NULL;
	char *path = name;
	char *slash = strchr(name, '/');
	char *colon = strchr(slash ? slash : name, ':');

	if (at)
		ref->digest = str_copy(at + 1);
	if (colon) {
		*colon = '\0';
		ref->tag = str_copy(colon + 1);
	} else if (!at) {
		ref->tag = str_copy("latest");
	}
	if (slash)
		first = str_ncopy(name, (size_t)(slash - name));
	if (first && (str_equal(first, "localhost") || strpbrk(first, ".:" UPPER))) {
		ref->domain = str_copy(str_equal(first, "index." HUB) ? HUB : first);
		path = slash + 1;
	} else {
		ref->domain = str_copy(HUB);
	}
	if (str_equal(ref->domain, HUB) && !strchr(path, '/'))
		ref->path = str_printf("library/%s", path);
	else
		ref->path = str_copy(path);
}

static int parse_text(const char *text, struct reference *ref, struct hw_err *e)
{
	if (!*text)
		return err_text(e, -EINVAL, "empty reference");
	if (strlen(text) > TEXT_MAX)
		return err_text(e, -EINVAL, "longer than %d characters", TEXT_MAX);
	if (strlen(text) == 64 && has_only(text, DIGITS "abcdef"))
		return err_text(e, -EINVAL, "64 hex digits are an image ID, not a reference");
	split_reference(text, ref);
	if (!domain_is_valid(ref->domain))
		return err_text(e, -EINVAL, "invalid registry \"%s\"", ref->domain);
	if (strpbrk(ref->path, UPPER))
		return err_text(e, -EINVAL, "repository name \"%s\" must be lowercase", ref->path);
	if (!path_is_valid(ref->path))
		return err_text(e, -EINVAL, "invalid repository name \"%s\"", ref->path);
	if (strlen(ref->path) > REFERENCE_PATH_MAX)
		return err_text(e, -EINVAL, "repository name is longer than %d characters",
				REFERENCE_PATH_MAX);
	if (ref->tag && !tag_is_valid(ref->tag))
		return err_text(e, -EINVAL, "invalid tag \"%s\"", ref->tag);
	return ref->digest ? digest_check(ref->digest, e) : 0;
}

int reference_parse(const char *text, struct reference *ret_ref, struct hw_err *e)
{
	AUTO(reference_done) struct reference ref = { 0 };

	if (parse_text(text, &ref, e) < 0)
		return err_ctx(e, "image reference \"%.256s\"", text);
	*ret_ref = ref;
	ref = (struct reference){ 0 };
	return 0;
}

void reference_done(struct reference *ref)
{
	free(ref->domain);
	free(ref->path);
	free(ref->tag);
	free(ref->digest);
	*ref = (struct reference){ 0 };
}

char *reference_name(const struct reference *ref)
{
	return str_printf("%s/%s", ref->domain, ref->path);
}

char *reference_format(const struct reference *ref)
{
	return str_printf("%s/%s%s%s%s%s", ref->domain, ref->path, ref->tag ? ":" : "",
			  str_or(ref->tag, ""), ref->digest ? "@" : "", str_or(ref->digest, ""));
}

const char *reference_version(const struct reference *ref)
{
	return ref->digest ? ref->digest : ref->tag;
}

const char *reference_host(const struct reference *ref)
{
	return str_equal(ref->domain, HUB) ? "registry-1." HUB : ref->domain;
}
